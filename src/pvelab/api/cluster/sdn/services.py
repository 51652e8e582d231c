"""What zones use beside controllers: name servers, `/cluster/sdn/dns`, and address managers, `.../ipams`."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pvelab.api.cluster.sdn.locks import change_sdn
from pvelab.api.cluster.sdn.objects import settings
from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.world.sections import Kind, SectionFile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call
    from pvelab.server.routing import Route
    from pvelab.world.store import Document, Store

__all__ = ["DNS", "DNS_ROUTES", "IPAMS", "IPAM_ROUTES", "Service"]

_OUTSIDE = frozenset(("url", "token"))
_FINGERPRINT = frozenset(("fingerprint",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One sort of services.

    Attributes:
        folder: Its name in paths.
        key: The parameter that has the id of a service.
        kinds: The kinds of it by name.
        builtin: The services that are always there, and come back by themselves.
        removed: What Proxmox calls it in the text of a removal that failed.
    """

    folder: str
    key: str
    kinds: Mapping[str, Kind]
    builtin: Mapping[str, Document] = field(default_factory=dict)
    removed: str

    def file(self, store: Store) -> SectionFile:
        """Return those that were written."""
        return SectionFile(store, f"sdn_{self.folder}")

    def all(self, store: Store) -> Mapping[str, Document]:
        """Return all by id, the built-in ones among them."""
        return {**self.builtin, **self.file(store).all()}

    def require(self, store: Store, ident: str) -> Document:
        """Return one.

        Raises:
            PveError: There is none of that id.
        """
        found = self.all(store).get(ident)
        if found is None:
            raise PveError(f"sdn '{ident}' does not exist")
        return found


def _list(service: Service, call: Call) -> Any:
    wanted, digest = call.params.get("type"), service.file(call.store).digest
    return [
        {**section, service.key: ident, "digest": digest}
        for ident, section in service.all(call.store).items()
        if call.may(f"/sdn/{service.folder}/{ident}", "SDN.Audit", "SDN.Allocate", any_of=True)
        and wanted in (None, section["type"])
    ]


def _read(service: Service, call: Call) -> Any:
    ident = call.params[service.key]
    digest = service.file(call.store).digest
    return {**service.require(call.store, ident), service.key: ident, "digest": digest}


def _create(service: Service, call: Call) -> Any:
    ident, kind = call.params[service.key], service.kinds[call.params["type"]]
    section = kind.validate(settings(call, service.key), create=True)
    call.world.cluster.require_quorum()
    with change_sdn(call, f"create sdn {service.key} object failed"):
        if ident in service.all(call.store):
            raise PveError(f"sdn {service.key} object ID '{ident}' already defined")
        service.file(call.store).put(ident, section)


def _update(service: Service, call: Call) -> Any:
    ident, file = call.params[service.key], service.file(call.store)
    with change_sdn(call, f"update sdn {service.key} object failed"):
        file.check_digest(call.params.get("digest"))
        old = service.require(call.store, ident)
        kind = service.kinds[old["type"]]
        given = kind.validate(settings(call, service.key), create=False)
        file.put(ident, {**kind.without(old, split_list(call.params.get("delete", "")), given), **given})


def _delete(service: Service, call: Call) -> Any:
    with change_sdn(call, f"delete sdn {service.removed} object failed"):
        service.require(call.store, call.params[service.key])
        service.file(call.store).remove(call.params[service.key])


def _routes(service: Service) -> tuple[Route, ...]:
    every = f"/cluster/sdn/{service.folder}"
    one = f"{every}/{{{service.key}}}"
    handlers = {
        f"GET {every}": _list,
        f"POST {every}": _create,
        f"GET {one}": _read,
        f"PUT {one}": _update,
        f"DELETE {one}": _delete,
    }
    return tuple(route(name)(functools.partial(handler, service)) for name, handler in handlers.items())


DNS = Service(
    folder="dns",
    key="dns",
    kinds={
        "powerdns": Kind(
            name="powerdns",
            required=frozenset(("url", "key")),
            optional=_FINGERPRINT | {"ttl", "reversemaskv6"},
        )
    },
    removed="dns",
)
IPAMS = Service(
    folder="ipams",
    key="ipam",
    kinds={
        kind.name: kind
        for kind in (
            Kind(name="pve"),
            Kind(name="netbox", required=_OUTSIDE, optional=_FINGERPRINT),
            Kind(name="phpipam", required=_OUTSIDE | {"section"}, optional=_FINGERPRINT),
        )
    },
    builtin={"pve": {"type": "pve"}},
    # Proxmox names the wrong kind of object in this text.
    removed="zone",
)
DNS_ROUTES, IPAM_ROUTES = _routes(DNS), _routes(IPAMS)
