"""Names of a package that are loaded when they are first used, so that importing it costs next to nothing."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any


def lazy_name(package: str, modules: Mapping[str, str], name: str) -> Any:
    """Return what a name of a package stands for. `modules` names the module below the package that defines each.

    Raises `AttributeError` for another name.
    """
    if name not in modules:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return getattr(import_module(f"{package}.{modules[name]}"), name)
