"""Desired state as OpenTofu JSON: the same bytes for the same model, and no secret in any of them.

The names below are imported when they are used: `render.cluster` needs none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stackyard.render.configuration import Provider, Rendered, Variable, render, render_guests

__all__ = ["Provider", "Rendered", "Variable", "render", "render_guests"]


def __getattr__(name: str) -> Any:
    import importlib  # lazy: as above

    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.configuration"), name)
