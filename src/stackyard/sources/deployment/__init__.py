"""The deployment object: one versioned desired state for all guests, written by one session at a time.

`settings.find_place` finds it. `fetch.fetch` reads the whole object or fails. `validate.check` checks it
against the schema and converts it to the `Desired` model. `writing.write` is the only way to change it:
lease, fetch, change, validate, difference, confirmation, conditional upload. The stores are in `embedded`
(SQLite, memory) and `bucket` (plain JSON in S3). This package does not know plans and states.

The names below are imported when they are used: stacks need the texts of this package alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stackyard.sources.deployment.fetch import Object, fetch, rules_of
    from stackyard.sources.deployment.settings import ObjectLocation, find_place
    from stackyard.sources.deployment.validate import ValidatedObject, check

__all__ = ["Object", "ObjectLocation", "ValidatedObject", "check", "fetch", "find_place", "rules_of"]

_MODULES = {
    "Object": "fetch",
    "ObjectLocation": "settings",
    "ValidatedObject": "validate",
    "check": "validate",
    "fetch": "fetch",
    "find_place": "settings",
    "rules_of": "fetch",
}


def __getattr__(name: str) -> Any:
    import importlib  # lazy: most of the package is used without these names

    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
