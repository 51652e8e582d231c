"""The homestak-style site tree: read, validated as one model, and resolved.

`discovery` finds the tree, `document` reads YAML with the place of every value, `load` turns the files into
the entities of `entities`, `checks` looks at what they say of one another, and `resolver` gives what others
need: the `Desired` model, variables for OpenTofu and for Ansible, and specs. Nothing here changes or connects
to anything.

The names below are imported when they are used: pydantic takes longer to load than a small command runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stackyard.site.load import Site
    from stackyard.site.resolver import ConfigResolver

__all__ = ["ConfigResolver", "Site"]

_PLACES = {"ConfigResolver": "stackyard.site.resolver", "Site": "stackyard.site.load"}


def __getattr__(name: str) -> Any:
    import importlib  # lazy: most of the package is used without these names

    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACES[name]), name)
