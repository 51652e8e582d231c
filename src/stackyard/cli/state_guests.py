"""The guests that the states of a target have, whatever its input says by now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.documents.jsontext import parse_json
from stackyard.render.names import key_of
from stackyard.render.references import guest_kind

if TYPE_CHECKING:
    from stackyard.state import StateService

__all__ = ["list_state_guests"]


def list_state_guests(service: StateService, kind: str, name: str, node: str | None = None) -> list[str]:
    """Return the guests of a target by their keys.

    Args:
        service: The states.
        kind: The kind of the target; any when empty.
        name: Its name.
        node: The node that it is on; any when absent.

    Raises:
        StoreError: The store cannot say.
    """
    found: list[str] = []
    for head in service.heads():
        parts = head.name.split("/")
        is_meant = kind in ("", parts[0]) and name in parts[1:2] and node in (None, *parts[2:3])
        content = service.contents.read(head.name) if is_meant and head.tombstone is None else None
        if content is not None:
            resources = parse_json(content.body.data).get("resources", ())
            guests = [one for one in resources if guest_kind(one.get("type", ""))]
            found += [key_of(one["name"]) for one in guests if one.get("instances")]
    return found
