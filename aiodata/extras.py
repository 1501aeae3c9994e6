"""Optional dependencies: loaded when they are needed, and named when they are missing."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["load"]


def load(module: str, extra: str, method: str, package: str | None = None) -> Any:
    """Import a module of an optional dependency.

    Args:
        module: Its full name.
        extra: The extra of this distribution that brings it.
        method: Who needs it, for the error.
        package: The name that it is installed by, where that is not the first part of the module's.

    Raises:
        ImportError: It is not installed; says how to install it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        found = package or module.partition(".")[0]
        raise ImportError(f"{method} needs {found}: pip install 'aiodata-pipeline[{extra}]'", name=module) from error
