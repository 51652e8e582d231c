"""`proxmox_node_config`: the notes of a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.provider.checks import matches
from stackyard.provider.fields import Field, Form
from stackyard.provider.schema import Rule
from stackyard.provider.singletons import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.values import Object

__all__ = ["RESOURCE", "config_path", "read_notes"]


def config_path(state: Object) -> str:
    """Return the path of the configuration of a node."""
    return f"/nodes/{proxmox.quote(state['node_name'])}/config"


def read_notes(found: Mapping[str, Any]) -> str:
    """Return the notes in the configuration of a node; Proxmox ends them with a newline of its own."""
    return str(found.get("description") or "").removesuffix("\n")


RESOURCE = Settings(
    path=config_path,
    fields=(Field(attribute="description", form=Form(write=str, read=str)),),
    identity=lambda state: str(state["node_name"]),
    own_state=lambda known, found: {"description": read_notes(found) or None},
).resource(
    ("proxmox_node_config",),
    identify=lambda given: {"id": given, "node_name": given},
    rules={
        "id": Rule(keep=True),
        "node_name": Rule(replace=True, check=matches(r"(?s).+", "not be empty")),
        "description": Rule(check=matches(r"(?s).*[^\n]", "have a text that does not end with a newline")),
    },
)
