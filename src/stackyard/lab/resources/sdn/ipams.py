"""Address managers: `/cluster/sdn/ipams`. The one of Proxmox, `pve`, is always there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.lab.params.texts import split_list
from stackyard.lab.problems import PveError
from stackyard.lab.resources.sdn.locks import changing_sdn
from stackyard.lab.resources.sdn.objects import settings
from stackyard.lab.routing import route
from stackyard.lab.sections import Kind, SectionFile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.lab.call import Call
    from stackyard.lab.store import Document

__all__ = ["IPAMS", "all_ipams", "create_ipam", "delete_ipam", "list_ipams", "read_ipam", "update_ipam"]

IPAMS = "sdn_ipams"
BUILTIN = "pve"

_OUTSIDE = frozenset(("url", "token"))
_KINDS = {
    kind.name: kind
    for kind in (
        Kind(name="pve"),
        Kind(name="netbox", required=_OUTSIDE, optional=frozenset(("fingerprint",))),
        Kind(name="phpipam", required=_OUTSIDE | {"section"}, optional=frozenset(("fingerprint",))),
    )
}


def all_ipams(file: SectionFile) -> Mapping[str, Document]:
    """Return the address managers by id, the built-in one among them."""
    return {BUILTIN: {"type": "pve"}, **file.all()}


@route("GET /cluster/sdn/ipams")
def list_ipams(call: Call) -> Any:
    """List the address managers that the caller may see."""
    file = SectionFile(call.store, IPAMS)
    wanted = call.params.get("type")
    return [
        {**section, "ipam": ident, "digest": file.digest}
        for ident, section in all_ipams(file).items()
        if call.may(f"/sdn/ipams/{ident}", "SDN.Audit", "SDN.Allocate", any_of=True)
        and wanted in (None, section["type"])
    ]


@route("GET /cluster/sdn/ipams/{ipam}")
def read_ipam(call: Call) -> Any:
    """Read one address manager."""
    file = SectionFile(call.store, IPAMS)
    return {**_require(file, call.params["ipam"]), "ipam": call.params["ipam"], "digest": file.digest}


@route("POST /cluster/sdn/ipams")
def create_ipam(call: Call) -> Any:
    """Write a new address manager."""
    ident, kind = call.params["ipam"], _KINDS[call.params["type"]]
    section = kind.checked(settings(call, "ipam"), create=True)
    call.world.cluster.require_quorum()
    with changing_sdn(call, "create sdn ipam object failed"):
        file = SectionFile(call.store, IPAMS)
        if ident in all_ipams(file):
            raise PveError(f"sdn ipam object ID '{ident}' already defined")
        file.put(ident, section)


@route("PUT /cluster/sdn/ipams/{ipam}")
def update_ipam(call: Call) -> Any:
    """Change an address manager."""
    ident = call.params["ipam"]
    with changing_sdn(call, "update sdn ipam object failed"):
        file = SectionFile(call.store, IPAMS)
        file.check_digest(call.params.get("digest"))
        old = _require(file, ident)
        kind = _KINDS[old["type"]]
        given = kind.checked(settings(call, "ipam"), create=False)
        file.put(ident, {**kind.without(old, split_list(call.params.get("delete", "")), given), **given})


@route("DELETE /cluster/sdn/ipams/{ipam}")
def delete_ipam(call: Call) -> Any:
    """Remove an address manager; the built-in one comes back by itself."""
    # Proxmox names the wrong kind of object in this text.
    with changing_sdn(call, "delete sdn zone object failed"):
        file = SectionFile(call.store, IPAMS)
        _require(file, call.params["ipam"])
        file.remove(call.params["ipam"])


def _require(file: SectionFile, ident: str) -> Document:
    found = all_ipams(file).get(ident)
    if found is None:
        raise PveError(f"sdn '{ident}' does not exist")
    return found
