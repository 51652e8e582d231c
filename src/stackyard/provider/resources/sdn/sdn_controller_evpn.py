"""`proxmox_sdn_controller_evpn`: the routing that EVPN zones need, with peers or on a fabric."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.provider.crud import Collection
from stackyard.provider.fields import COMMA_SET, NUMBER, TEXT, Field
from stackyard.provider.problems import Problem
from stackyard.provider.resources.sdn.pending import PENDING, SDN_ID, check_names, check_type, current
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.provider.values import Object

__all__ = ["CONTROLLERS", "CONTROLLER_FIELDS", "RESOURCE"]

CONTROLLERS = "/cluster/sdn/controllers"
CONTROLLER_FIELDS = (
    Field(attribute="asn", form=NUMBER, clears=False),
    Field(attribute="fabric", form=TEXT),
    Field(attribute="peers", form=COMMA_SET, off=[]),
)


def _controller_state(known: Object, found: Mapping[str, Any]) -> Object:
    check_type(f"The controller {known['id']}", found, "type", "evpn")
    read: Object = {"digest": found.get("digest")}
    if not found.get("peers") and known.get("peers") == []:
        read["peers"] = []
    return read


def _check_controller(config: Object) -> Iterator[Problem]:
    if config.get("fabric") is None and config.get("peers") is None:
        yield Problem(path=("peers",), detail="A controller needs `peers` or a `fabric`.")


RESOURCE = Collection(
    path=CONTROLLERS,
    key="controller",
    made_with={"type": "evpn"},
    fields=CONTROLLER_FIELDS,
    own_state=_controller_state,
    query=PENDING,
    filtered=True,
    current=current,
).resource(
    ("proxmox_sdn_controller_evpn",),
    rules={"id": Rule(replace=True, check=SDN_ID), "peers": Rule(check=check_names)},
    validate=_check_controller,
)
