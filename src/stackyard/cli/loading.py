"""Loading the module of a command, which takes longer than many a command."""

from __future__ import annotations

import gc
import importlib
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["load_module"]


def load_module(name: str) -> ModuleType:
    """Return a module, loaded where it is not yet.

    Meanwhile nobody looks for garbage: what is loaded stays, and to look costs a tenth of the time.
    """
    if name in sys.modules:
        return sys.modules[name]
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        if was_enabled:
            gc.freeze()
            gc.enable()
