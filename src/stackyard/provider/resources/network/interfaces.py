"""What the interfaces of a node have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.fields.properties import flag
from stackyard.provider.checks import at_least, is_address, is_cidr
from stackyard.provider.crud import Collection
from stackyard.provider.fields import FLAG, NUMBER, TEXT, TRIMMED, Field, Form
from stackyard.provider.problems import ImportIdError
from stackyard.provider.schema import Rule
from stackyard.provider.values import Object

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.provider.kinds import Work

__all__ = ["PORTS", "SHARED_RULES", "identify", "interfaces", "ports_as_ordered", "state_of_interface"]

OwnState = Callable[[Object, Mapping[str, Any]], Object]

_RELOAD_S = 100
# What `ifreload` ends with while another one is still at work.
_RELOAD_BUSY = "exit code 89"
_RELOAD_ATTEMPTS = 5

# Proxmox keeps ports in the order in which they are given.
PORTS = Form(
    write=lambda ports: " ".join(sorted(port.strip() for port in ports if port.strip())),
    read=lambda text: str(text).split(),
)

_SHARED = (
    Field(attribute="address", key="cidr", form=TEXT),
    Field(attribute="gateway", form=TEXT),
    Field(attribute="address6", key="cidr6", form=TEXT),
    Field(attribute="gateway6", form=TEXT),
    Field(attribute="autostart", form=FLAG, clears=False),
    Field(attribute="mtu", form=NUMBER),
    Field(attribute="comment", key="comments", form=TRIMMED),
)
SHARED_RULES = {
    "id": Rule(keep=True),
    "node_name": Rule(replace=True),
    "autostart": Rule(default=True),
    "timeout_reload": Rule(default=_RELOAD_S, check=at_least(5)),
    "address": Rule(check=is_cidr),
    "address6": Rule(check=is_cidr),
    "gateway": Rule(check=is_address),
    "gateway6": Rule(check=is_address),
}


def state_of_interface(known: Object, row: Mapping[str, Any]) -> Object:
    """Return what no property of an interface gives as it is."""
    read: Object = {"autostart": flag(row.get("autostart"))}
    # An empty comment is not stored.
    if row.get("comments") is None and known.get("comment") == "":
        read["comment"] = ""
    return read


def ports_as_ordered(known: Object, row: Mapping[str, Any], field: Field) -> Object:
    """Return the ports of an interface in the order of the configuration, where they are the same ones."""
    listed = known.get(field.attribute)
    is_same = sorted(str(row.get(field.name) or "").split()) == sorted(listed or ())
    return {field.attribute: listed} if is_same else {}


async def _reload(work: Work, state: Object) -> None:
    node, timeout_s = state["node_name"], float(state.get("timeout_reload") or _RELOAD_S)

    async def reload() -> None:
        for attempt in range(1, _RELOAD_ATTEMPTS + 1):
            upid = await work.client.put(f"/nodes/{node}/network")
            try:
                await proxmox.wait_for(work.client, upid, timeout_s=timeout_s)
            except proxmox.TaskFailedError as err:
                if _RELOAD_BUSY not in err.ended or attempt == _RELOAD_ATTEMPTS:
                    raise
                await work.client.pause(attempt)
            else:
                return

    await work.session.commits.run(("network", node), reload)


def identify(given: str) -> Object:
    """Return the attributes in the id of an import."""
    node, _, name = given.partition(":")
    if not node or not name or ":" in name:
        raise ImportIdError(f"The id of an interface has the form NODE:INTERFACE, and {given!r} does not.")
    return {"id": given, "node_name": node, "name": name}


def interfaces(kind: str, fields: Sequence[Field], own_state: OwnState) -> Collection:
    """Return the interfaces of a type, which are written and then reloaded."""
    return Collection(
        path=lambda state: f"/nodes/{state['node_name']}/network",
        key="iface",
        attribute="name",
        identity=lambda state: f"{state['node_name']}:{state['name']}",
        named={"type": kind},
        fields=(*_SHARED, *fields),
        own_state=own_state,
        filtered=True,
        finish=_reload,
        gone="The interface was gone already",
    )
