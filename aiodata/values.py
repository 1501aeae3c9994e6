"""Values as JSON, exactly: what a position holds of a stage's own state.

Numbers, text, None, numpy scalars and arrays, and structures of them come back with their types, dtypes, shapes and
bits. Plain finite numbers, str, None and tuples look as in JSON; everything else is an object with one name in it.
"""

from __future__ import annotations

import json
import math
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from aiodata.errors import StateError
from aiodata.structure import is_namedtuple

__all__ = ["as_json", "check_json", "decode", "encode", "is_plain_dtype"]

_EXACT = 1 << 63
"""Integers from here on are written in hexadecimal; long decimal ones are not read back by Python's `json`."""
_PLAIN = (bool, str, type(None))
_BYTES = "biufcmMSU"
"""Kinds of dtype whose values are their bytes."""


def is_plain_dtype(dtype: np.dtype[Any]) -> bool:
    """Tell whether the values of a dtype are their bytes: numbers, dates, and text of fixed width."""
    return dtype.kind in _BYTES


def encode(value: Any, owner: str) -> Any:
    """Give a value as JSON.

    Args:
        value: A structure (tuple, named tuple, dict) of Python numbers, `bytes`, `str`, None, and numpy scalars and
            arrays, also object arrays of those.
        owner: What the value is to the reader of an error, such as `the state of scan(add)`.

    Raises:
        StateError: There is something else in it; names the owner, the component and the type.

    >>> encode((np.float32(1), {"x": b"a"}, float("nan")), "the state")
    [{'scalar': 'AACAPw==', 'dtype': '<f4'}, {'dict': [['x', {'bytes': 'YQ=='}]]}, {'float': 'nan'}]
    """
    return _encode(value, owner, "")


def _encode(value: Any, owner: str, path: str) -> Any:
    if isinstance(value, tuple):
        fields = getattr(value, "_fields", None)
        names = [f"[{number}]" for number in range(len(value))] if fields is None else [f".{name}" for name in fields]
        return [_encode(part, owner, path + name) for part, name in zip(value, names, strict=True)]
    if isinstance(value, dict):
        pairs = [(key, part, f"{path}[{key!r}]") for key, part in value.items()]
        return {"dict": [[_encode(key, owner, where), _encode(part, owner, where)] for key, part, where in pairs]}
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is int:
        return value if -_EXACT <= value < _EXACT else {"int": hex(value)}
    if kind is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if kind is complex:
        return {"complex": [_encode(value.real, owner, path), _encode(value.imag, owner, path)]}
    if kind is bytes:
        return {"bytes": _text(value)}
    if kind is np.str_ or kind is np.bytes_:
        # As text, for numpy drops zeros from the end of what it reads from memory, and in `str`.
        return {"numpy": value[:] if kind is np.str_ else {"bytes": _text(bytes(value))}}
    if isinstance(value, (np.ndarray, np.generic)):
        return _encode_array(value, owner, path)
    _refuse(value, owner, path)


def _encode_array(value: Any, owner: str, path: str) -> dict[str, Any]:
    if type(value) is np.ndarray and value.dtype == object:
        items = [_encode(item, owner, f"{path}[{number}]") for number, item in enumerate(value.ravel())]
        return {"objects": items, "shape": list(value.shape)}
    if not is_plain_dtype(value.dtype) or not (type(value) is np.ndarray or isinstance(value, np.generic)):
        _refuse(value, owner, path)  # records, or a subclass such as a masked array, whose bytes are not all of it
    if isinstance(value, np.generic):
        return {"scalar": _text(value.tobytes()), "dtype": value.dtype.str}
    return {"array": _text(value.tobytes()), "dtype": value.dtype.str, "shape": list(value.shape)}


def _text(data: bytes) -> str:
    return b64encode(data).decode()


def _refuse(value: Any, owner: str, path: str) -> NoReturn:
    where = f"component {path} of {owner}" if path else owner
    dtype = f" of dtype {value.dtype}" if isinstance(value, (np.ndarray, np.generic)) else ""
    raise StateError(
        f"{where} is a {type(value).__name__}{dtype}, which a saved state cannot hold; it holds Python and numpy "
        "numbers, text, None, and arrays, tuples and dicts of them"
    )


def decode(saved: Any, like: Any = None) -> Any:
    """Give back what was encoded; arrays are fresh and writable.

    Args:
        saved: What `encode` gave, also after a way through JSON.
        like: A value of the same structure. Named tuples come back where it has them, else as plain tuples.

    Raises:
        StateError: `saved` is nothing that `encode` gives.

    >>> decode([{"array": "AQI=", "dtype": "|u1", "shape": [2]}, {"float": "nan"}])
    (array([1, 2], dtype=uint8), nan)
    """
    try:
        return _decode(saved, like)
    except (KeyError, TypeError, ValueError) as error:
        raise StateError(f"this is not a saved value: {saved!r:.80} ({error})") from None


def _decode(saved: Any, like: Any) -> Any:
    if isinstance(saved, list):
        fits = isinstance(like, tuple) and len(like) == len(saved)
        parts = [_decode(part, like[number] if fits else None) for number, part in enumerate(saved)]
        kind: Any = type(like)
        return kind._make(parts) if fits and is_namedtuple(like) else tuple(parts)
    if not isinstance(saved, dict):
        return saved
    if "dict" in saved:
        decoded = [(_decode(key, None), part) for key, part in saved["dict"]]
        known = like if isinstance(like, dict) else {}
        return {key: _decode(part, known.get(key)) for key, part in decoded}
    if "int" in saved:
        return int(saved["int"], 16)
    if "float" in saved:
        return float(saved["float"])
    if "complex" in saved:
        return complex(*[_decode(part, None) for part in saved["complex"]])
    if "bytes" in saved:
        return b64decode(saved["bytes"], validate=True)
    if "numpy" in saved:
        text = _decode(saved["numpy"], None)
        return np.str_(text) if isinstance(text, str) else np.bytes_(text)
    if "objects" in saved:
        items = np.empty(len(saved["objects"]), object)
        for number, item in enumerate(saved["objects"]):
            items[number] = _decode(item, None)
        return items.reshape(saved["shape"])
    data = bytearray(b64decode(saved["scalar" if "scalar" in saved else "array"], validate=True))
    values = np.frombuffer(data, np.dtype(saved["dtype"]))
    return values[0] if "scalar" in saved else values.reshape(saved["shape"])


def check_json(value: Any, where: str) -> None:
    """Refuse what JSON would not give back as it is, but that a tuple comes back as a list.

    Args:
        value: Anything.
        where: What it is to the reader of an error.

    Raises:
        TypeError: Something in it is no JSON value, or a key is not text; says where.
        ValueError: A number is not finite.
    """
    if value is None or isinstance(value, (str, int)):
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{where} is {value!r}, which JSON has no number for")
    elif isinstance(value, (list, tuple)):
        for number, part in enumerate(value):
            check_json(part, f"{where}[{number}]")
    elif isinstance(value, dict):
        for key, part in value.items():
            if not isinstance(key, str):
                raise TypeError(f"{where} has the key {key!r}, and JSON's keys are text")
            check_json(part, f"{where}[{key!r}]")
    else:
        raise TypeError(f"{where} is of type {type(value).__name__}, which JSON cannot hold")


def as_json(state: Any, encode_state: Callable[[Any], Any] | None, owner: str) -> Any:
    """Give a copy of a user's own state as a JSON value, by the user's own encoder if there is one.

    Raises:
        StateError: It is none, or the encoder failed; names the owner.
    """
    try:
        written = state if encode_state is None else encode_state(state)
        check_json(written, owner)
    except Exception as error:
        advice = "; encode_state may turn it into what it can" if encode_state is None else " (after encode_state)"
        raise StateError(f"a saved state cannot hold {owner}: {error}{advice}") from error
    return json.loads(json.dumps(written))
