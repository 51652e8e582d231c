"""What the data sources of ACME plugins have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.provider.resources.certificates.plugins import DATA

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.values import Object

__all__ = ["SAME_PICTURE_S", "plugin_values"]

# Anyone who asks twice within one plan gets the same picture.
SAME_PICTURE_S = 1.0


def plugin_values(found: Mapping[str, Any]) -> Object:
    """Return the attributes of a plugin; what it has no value of is empty."""
    data = found.get("data")
    return {
        **{key: found.get(key) or "" for key in ("api", "digest", "plugin", "type")},
        "data": None if data is None else DATA.read(data),
        "validation_delay": int(found.get("validation-delay") or 0),
    }
