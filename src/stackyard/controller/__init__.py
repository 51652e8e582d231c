"""The controller: specs, repositories and state of a site over one HTTPS endpoint.

`service` assembles it (`controller` runs one for the length of a block). `app` answers requests by the
table of `routes`. `specs` and `repositories` hold what is served, `admission` and `tokens` decide who gets
it, and `guest` is the client of a guest. This package neither prints nor reads a command line.

The names below are imported when they are used: a guest that fetches its spec needs no server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stackyard.controller.options import ControllerOptions
    from stackyard.controller.service import RunningController, controller

__all__ = ["ControllerOptions", "RunningController", "controller"]

_PLACES = {
    "ControllerOptions": "stackyard.controller.options",
    "RunningController": "stackyard.controller.service",
    "controller": "stackyard.controller.service",
}


def __getattr__(name: str) -> Any:
    import importlib  # lazy: most of the package is used without these names

    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACES[name]), name)
