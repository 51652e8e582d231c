"""The homestak-style site: read, validated as one model, and resolved.

`discovery` finds the folder. `document` reads YAML with the place of every value. `load` converts the files
to the entities of `entities`, and `checks` verifies the references between them. `resolver` returns the
results: the `Desired` model, variables for OpenTofu and for Ansible, and specs. Nothing here changes or
connects to anything.

The names below are imported when they are used: pydantic takes longer to load than a small command runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stackyard.sources.site.load import Site
    from stackyard.sources.site.resolver import ConfigResolver

__all__ = ["ConfigResolver", "Site"]

_PLACES = {"ConfigResolver": "stackyard.sources.site.resolver", "Site": "stackyard.sources.site.load"}


def __getattr__(name: str) -> Any:
    import importlib  # lazy: most of the package is used without these names

    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACES[name]), name)
