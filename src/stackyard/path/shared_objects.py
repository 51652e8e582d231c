"""The networks and pools of site.yaml as parts of hypervisors: each has one owner, and one description."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Diagnostics, Kind
from stackyard.base.errors import InvalidInputError
from stackyard.desired import Desired
from stackyard.path.named_objects import describe_object, list_cluster_objects, list_networks_and_pools
from stackyard.render.references import POOL
from stackyard.sources.hypervisor.build import build_desired, list_entries
from stackyard.sources.site.entities.networks import BridgeNetwork, VlanNetwork
from stackyard.sources.site.hypervisor_owners import find_node_name, find_shared_parts
from stackyard.sources.site.networks import read_shared_networks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.base.errors import Location
    from stackyard.path.named_objects import NamedObject
    from stackyard.sources.site import ConfigResolver
    from stackyard.sources.site.load import Site
    from stackyard.sources.site.networks import DeclaredNetwork
    from stackyard.sources.site.tree import LoadedFile

__all__ = [
    "SharedObjects",
    "check_two_places",
    "join_shared",
    "place_shared",
    "shared_desired",
    "split_shared",
]

TWO_PLACES = Kind(
    code="E-HYPERVISOR-TWO-PLACES",
    summary="site.yaml and a file of hypervisors/ describe an object differently",
    remedy="Write the same in both places, or leave it out of one of them.",
)
# What is so unless a file says otherwise.
_USUAL: Mapping[str, Any] = {"autostart": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedObjects:
    """What site.yaml makes on a node, by whom it may belong to."""

    interfaces: Desired
    cluster_wide: Desired


def split_shared(desired: Desired) -> SharedObjects:
    """Return the interfaces of a node apart from what belongs to its cluster."""
    return SharedObjects(
        interfaces=Desired(bridges=desired.bridges, vlans=desired.vlans),
        cluster_wide=Desired(
            pools=desired.pools, zones=desired.zones, vnets=desired.vnets, subnets=desired.subnets
        ),
    )


def shared_desired(resolver: ConfigResolver, hypervisor: str) -> Desired:
    """Return what of site.yaml belongs to a hypervisor.

    Raises:
        InvalidInputError: Its parts do not fit.
    """
    found = Desired()
    has_cluster = False
    for part in find_shared_parts(resolver.site, hypervisor):
        shared = split_shared(resolver.resolve_shared(part.node))
        if part.interfaces:
            more = shared.interfaces
            found = found.model_copy(
                update={"bridges": (*found.bridges, *more.bridges), "vlans": (*found.vlans, *more.vlans)}
            )
        if part.cluster_wide and not has_cluster:
            # A cluster has them once, however many of its nodes the site has.
            has_cluster, whole = True, shared.cluster_wide
            names = ("pools", "zones", "vnets", "subnets")
            found = found.model_copy(update={name: getattr(whole, name) for name in names})
    return found


def join_shared(
    site: Site, shared: Desired, own: Desired, loaded: LoadedFile[Any] | None
) -> tuple[Desired, Mapping[str, Location]]:
    """Return a hypervisor with what of site.yaml belongs to it, and where that is written, by address.

    Args:
        site: The site.
        shared: What of site.yaml belongs to it.
        own: What its file says.
        loaded: Its file, where it has one.

    Raises:
        InvalidInputError: The file and site.yaml describe the same object differently.
    """
    found = Diagnostics()
    twice = _compare(site, shared, own, loaded, found)
    found.raise_errors("What site.yaml makes for all envs")
    alone = (one for one in list_networks_and_pools(shared) if one.address not in twice)
    places = {one.address: place for one in alone if (place := place_shared(site, one)) is not None}
    return own.model_copy(update=_without(shared, twice)), places


def check_two_places(resolver: ConfigResolver, found: Diagnostics) -> None:
    """Report every object that site.yaml and a file of hypervisors/ describe differently."""
    site = resolver.site
    for name, loaded in sorted(site.hypervisors.items()):
        # What is wrong with a part by itself is reported where that is checked.
        with contextlib.suppress(InvalidInputError):
            own = build_desired(loaded.model, find_node_name(site, loaded))
            _compare(site, shared_desired(resolver, name), own, loaded, found)


def _compare(
    site: Site, shared: Desired, own: Desired, loaded: LoadedFile[Any] | None, found: Diagnostics
) -> set[str]:
    """Return the addresses of what site.yaml describes and a file does too; report where they differ."""
    described = {named.identity: (one, named) for one, named in list_cluster_objects(own)}
    twice: set[str] = set()
    for there in list_networks_and_pools(shared):
        if there.identity not in described:
            continue
        one, named = described[there.identity]
        twice.add(there.address)
        differing = _differences(there, named)
        if differing and loaded is not None:
            place = place_shared(site, there)
            paths = {entry.key: entry.path for entry in list_entries(loaded.model)}
            said = describe_object(there.kind, there.values)
            detail = f"{said}: {loaded.places.path} differs from {_name(place)} in {', '.join(differing)}."
            also = () if place is None else (place,)
            found.add(TWO_PLACES, detail, loaded.places.place(paths[one.key]), also=also)
    return twice


def _name(place: Location | None) -> str:
    return "site.yaml" if place is None else f"{place.path}:{place.line}"


def _without(shared: Desired, addresses: set[str]) -> dict[str, Any]:
    """Return what is described in site.yaml alone, by the fields of the model."""
    kept: dict[str, Any] = {}
    for field in ("bridges", "vlans", "zones", "vnets", "subnets", "pools"):
        alone = ((one, Desired().model_copy(update={field: (one,)})) for one in getattr(shared, field))
        kept[field] = tuple(
            one for one, model in alone if next(list_networks_and_pools(model)).address not in addresses
        )
    return kept


def _differences(first: NamedObject, second: NamedObject) -> list[str]:
    """Return the attributes in which two descriptions of one object differ."""
    one, other = _said(first.values), _said(second.values)
    if first.type != second.type:
        return ["type"]
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))


def _said(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a description says beyond what is so anyway."""
    found = {}
    for name, value in values.items():
        is_list = isinstance(value, list | tuple)
        if value not in (None, "", False) and value != _USUAL.get(name) and (value or not is_list):
            found[name] = sorted(map(str, value)) if is_list else value
    return found


def place_shared(site: Site, one: NamedObject) -> Location | None:
    """Return where site.yaml says an object."""
    if site.file is None:
        return None
    if one.type == POOL:
        return site.file.places.place(("pools", one.values["pool_id"]))
    declared = read_shared_networks(site).declared.values()
    return next((network.place() for network in declared if _is_of(network, one)), None)


def _is_of(network: DeclaredNetwork, one: NamedObject) -> bool:
    """Return whether a network makes an object."""
    model, values = network.model, one.values
    if isinstance(model, BridgeNetwork):
        return one.kind == "network_linux_bridge" and model.create and model.bridge == values["name"]
    if isinstance(model, VlanNetwork):
        name = f"{model.bridge}.{model.tag}"
        return one.kind == "network_linux_vlan" and model.create and name == values["name"]
    if one.kind == "sdn_subnet":
        return network.bridge == str(values["vnet"])
    return str(values.get("id")) == (network.bridge if one.kind == "sdn_vnet" else model.zone)
