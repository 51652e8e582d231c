"""Objects of clusters and nodes as resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.desired import Secret
from stackyard.render.names import address
from stackyard.render.names import label as label_of
from stackyard.render.networks import FINALIZER, SDN
from stackyard.render.terms import Json, literal, template

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stackyard.desired import ClusterObject, ObjectKey

__all__ = ["address_of_object", "object_resources"]


def address_of_object(key: ObjectKey) -> str:
    """Return the address of an object."""
    return address(key.type, key.name)


def object_resources(objects: Iterable[ClusterObject]) -> dict[str, dict[str, Json]]:
    """Return the resources by type and label; what applies changes of the SDN comes with its networks."""
    resources: dict[str, dict[str, Json]] = {}
    for one in objects:
        after = [address_of_object(key) for key in one.after]
        if one.key.type.startswith(SDN):
            # What is written is pending until it is applied, and so is a removal.
            after.append(FINALIZER)
        resource = {
            **{name: _term(value) for name, value in one.attributes.items() if value is not None},
            **{name: template((secret,)) for name, secret in one.secrets.items()},
        }
        if after:
            resource["depends_on"] = after
        resources.setdefault(one.key.type, {})[label_of(one.key.name)] = resource
    return resources


def _term(value: Any) -> Json:
    if isinstance(value, str):
        return literal(value)
    if isinstance(value, Secret):
        return template((value,))
    if isinstance(value, dict):
        return {name: _term(part) for name, part in value.items() if part is not None}
    return [_term(part) for part in value] if isinstance(value, list | tuple) else value
