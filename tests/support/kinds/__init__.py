"""The cases of `tests.support.parity`, one file for each family of kinds, with its `CASES`."""

from __future__ import annotations

import importlib
import pkgutil

from tests.support.parity import Case

__all__ = ["find_cases"]


def find_cases() -> list[Case]:
    """Return the cases of all families."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__, f"{__name__}."))
    return [case for name in names for case in importlib.import_module(name).CASES]
