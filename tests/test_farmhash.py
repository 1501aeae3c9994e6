"""FarmHash's fingerprint is Google's own, at every length."""

from __future__ import annotations

import hashlib

import pytest

from aiodata.farmhash import fingerprint64


def text(size: int) -> bytes:
    return bytes(33 + (i * i * 7 + size * 13) % 90 for i in range(size))


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, 11160318154034397263),
        (1, 15830612087174379815),
        (3, 1556218088694307227),
        (4, 16951050189102710314),
        (7, 15553404133465070654),
        (8, 14126051470229765249),
        (16, 15585112094950197326),
        (17, 3745299795019576539),
        (32, 13059234945599810841),
        (33, 2385344679850928246),
        (64, 9500502060307403481),
        (65, 15600307726615299721),
        (128, 4587795686150446570),
        (129, 4427165472841795355),
        (1000, 3179616008687114424),
    ],
)
def test_around_the_lengths_at_which_the_way_of_hashing_changes(size: int, expected: int) -> None:
    assert fingerprint64(text(size)) == expected


def test_a_thousand_lengths_are_as_the_c_library_has_them() -> None:
    # The digest was made with pyfarmhash 0.5.1, which is Google's C++ code.
    digest = hashlib.sha256(b"".join(fingerprint64(text(size)).to_bytes(8, "little") for size in range(1000)))
    assert digest.hexdigest() == "c5c7cc0c0dc0131066fd34a7ed710fa5dde8ab4ee75efd3d729279ad9dd63263"


@pytest.mark.parametrize(
    ("data", "signed"),
    [
        (b"1footrue", -1541654101129638711),
        (b"2applefalse", 2794438866806483259),
        (b"3true", -4880158226897771312),
    ],
)
def test_the_examples_of_bigquerys_documentation(data: bytes, signed: int) -> None:
    assert fingerprint64(data) == signed % 2**64
