"""Name servers for the zones: `/cluster/sdn/dns`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.lab.params.texts import split_list
from stackyard.lab.problems import PveError
from stackyard.lab.resources.sdn.locks import changing_sdn
from stackyard.lab.resources.sdn.objects import settings
from stackyard.lab.routing import route
from stackyard.lab.sections import Kind, SectionFile

if TYPE_CHECKING:
    from stackyard.lab.call import Call
    from stackyard.lab.store import Document

__all__ = ["create_dns", "delete_dns", "list_dns", "read_dns", "update_dns"]

_KIND = Kind(
    name="powerdns",
    required=frozenset(("url", "key")),
    optional=frozenset(("ttl", "reversemaskv6", "fingerprint")),
)


@route("GET /cluster/sdn/dns")
def list_dns(call: Call) -> Any:
    """List the name servers that the caller may see."""
    file = _file(call)
    wanted = call.params.get("type")
    return [
        {**section, "dns": ident, "digest": file.digest}
        for ident, section in file.all().items()
        if call.may(f"/sdn/dns/{ident}", "SDN.Audit", "SDN.Allocate", any_of=True)
        and wanted in (None, section["type"])
    ]


@route("GET /cluster/sdn/dns/{dns}")
def read_dns(call: Call) -> Any:
    """Read one name server."""
    file = _file(call)
    return {**_require(file, call.params["dns"]), "dns": call.params["dns"], "digest": file.digest}


@route("POST /cluster/sdn/dns")
def create_dns(call: Call) -> Any:
    """Write a new name server."""
    section = _KIND.checked(settings(call, "dns"), create=True)
    call.world.cluster.require_quorum()
    with changing_sdn(call, "create sdn dns object failed"):
        file, ident = _file(call), call.params["dns"]
        if file.get(ident) is not None:
            raise PveError(f"sdn dns object ID '{ident}' already defined")
        file.put(ident, section)


@route("PUT /cluster/sdn/dns/{dns}")
def update_dns(call: Call) -> Any:
    """Change a name server."""
    with changing_sdn(call, "update sdn dns object failed"):
        file = _file(call)
        file.check_digest(call.params.get("digest"))
        old = _require(file, call.params["dns"])
        given = _KIND.checked(settings(call, "dns"), create=False)
        kept = _KIND.without(old, split_list(call.params.get("delete", "")), given)
        file.put(call.params["dns"], {**kept, **given})


@route("DELETE /cluster/sdn/dns/{dns}")
def delete_dns(call: Call) -> Any:
    """Remove a name server."""
    with changing_sdn(call, "delete sdn dns object failed"):
        file = _file(call)
        _require(file, call.params["dns"])
        file.remove(call.params["dns"])


def _file(call: Call) -> SectionFile:
    return SectionFile(call.store, "sdn_dns")


def _require(file: SectionFile, ident: str) -> Document:
    found = file.get(ident)
    if found is None:
        raise PveError(f"sdn '{ident}' does not exist")
    return found
