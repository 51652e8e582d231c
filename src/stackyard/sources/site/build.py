"""The `Desired` model of an env: its guests, and the files and networks that they need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from stackyard.base.diagnostics import Diagnostics, Kind
from stackyard.desired import Container, Desired, Vm, problems
from stackyard.sources.site.build_guest import GuestBuilder, GuestLocations, NodeChoice
from stackyard.sources.site.build_networks import build_networks
from stackyard.sources.site.findings import add_findings
from stackyard.sources.site.images import Files
from stackyard.sources.site.networks import read_shared_networks
from stackyard.sources.site.protection import check_firewall, check_schedules, join_backups

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackyard.base.errors import Location
    from stackyard.desired import Guest
    from stackyard.desired.check import Path as ModelPath
    from stackyard.sources.site.document import LocatedValues
    from stackyard.sources.site.entities.images import PoolEntry
    from stackyard.sources.site.layers import GuestEntry
    from stackyard.sources.site.load import Site

__all__ = ["build_desired", "build_shared"]

CONTRADICTION = Kind(
    code="E-SITE-CONTRADICTION",
    summary="Parts of an env contradict each other",
    remedy="Correct one of the places that the finding names.",
)


@dataclass(slots=True, kw_only=True)
class _BuiltParts:
    """What was built so far; each guest with the entry that it came from."""

    vms: list[tuple[GuestEntry, Vm]]
    containers: list[tuple[GuestEntry, Container]]


def build_desired(site: Site, env: str, node: NodeChoice, found: Diagnostics) -> Desired | None:
    """Return what an env needs on a node; nothing, and findings, where its parts do not fit.

    Args:
        site: The site.
        env: Which env.
        node: Where its guests run that do not name a node themselves.
        found: Takes the findings.
    """
    networks = site.networks(env)
    choices = _choices(site, env, node)
    datastores = {choice.name: choice.file_datastore for choice in choices.values()}
    files = Files(site, env, datastores=datastores, node=node.name)
    builder = GuestBuilder(site, env, networks=networks, files=files)
    parts = _BuiltParts(vms=[], containers=[])
    before = len(found.errors)
    for guest in site.guests(env):
        choice = choices.get(guest.values.get("node") or "", node)
        built = _build_guest(site, builder, guest, choice, found)
        if isinstance(built, Vm):
            parts.vms.append((guest, built))
        elif built is not None:
            parts.containers.append((guest, built))
    files.declare()
    nodes = sorted({choice.name for choice in choices.values()})
    made = build_networks(site, networks, nodes, found, is_shared=False)
    if len(found.errors) > before:
        return None
    document = {"files": files.list_declared(), **made}
    return _check_whole(site, env, parts, document, found)


def build_shared(site: Site, node: NodeChoice, found: Diagnostics) -> Desired | None:
    """Return what belongs to the site itself and to no env: its networks and pools.

    Args:
        site: The site.
        node: Where its bridges are created.
        found: Takes the findings.
    """
    made = build_networks(site, read_shared_networks(site), [node.name], found, is_shared=True)
    try:
        return Desired.model_validate({**made, "pools": _pools(site.settings.pools)})
    except ValidationError as err:
        if site.file is not None:
            _add_contradictions(err, site.file.places, found)
        return None


def _pools(pools: Mapping[str, PoolEntry | None]) -> list[dict[str, Any]]:
    return [{"name": name, "comment": pool and pool.comment} for name, pool in pools.items()]


def _add_contradictions(err: ValidationError, places: LocatedValues, found: Diagnostics) -> None:
    for error in err.errors(include_url=False):
        path = ".".join(map(str, error["loc"]))
        detail = f"{path}: {error['msg'].removeprefix('Value error, ')}."
        found.add(CONTRADICTION, detail, places.place())


def _choices(site: Site, env: str, node: NodeChoice) -> dict[str, NodeChoice]:
    """Return the nodes of an env by the names that its guests use; the given one for those without."""
    named = {guest.values["node"] for guest in site.guests(env) if guest.values.get("node")}
    others = {name: NodeChoice.of(site.nodes[name]) for name in named if name in site.nodes}
    return {"": node, **others}


def _build_guest(
    site: Site, builder: GuestBuilder, guest: GuestEntry, node: NodeChoice, found: Diagnostics
) -> Guest | None:
    model: type[Vm] | type[Container] = Container if guest.is_container else Vm
    fields = builder.container(guest, node) if guest.is_container else builder.vm(guest, node)
    join_backups(site, guest, fields, found)
    plain_nics = builder.plain_nics(guest)
    if plain_nics is not None:
        fields["nics"] = ()
    try:
        built = model.model_validate(fields)
    except ValidationError as err:
        add_findings(err, GuestLocations(guest, fields), found, model=model)
        return None
    if plain_nics is not None:
        built = built.model_copy(update={"nics": plain_nics})
    check_firewall(site, guest, built, found)
    check_schedules(guest, built, found)
    return built


def _check_whole(
    site: Site, env: str, parts: _BuiltParts, document: dict[str, Any], found: Diagnostics
) -> Desired | None:
    loaded = site.envs[env]
    try:
        rest = Desired.model_validate({**document, "pools": _pools(loaded.model.pools)})
    except ValidationError as err:
        _add_contradictions(err, loaded.places, found)
        return None
    guests = {
        "vms": tuple(vm for _, vm in parts.vms),
        "containers": tuple(container for _, container in parts.containers),
    }
    desired = rest.model_copy(update=guests)
    contradictions = problems(desired)
    for problem in contradictions:
        found.add(CONTRADICTION, problem.text, _place(problem.path, site, env, parts))
    return None if contradictions else desired


def _place(path: ModelPath, site: Site, env: str, parts: _BuiltParts) -> Location:
    """Return the place in the files behind a place in the model."""
    owners: Sequence[tuple[GuestEntry, Guest]] = ()
    if path[0] == "vms":
        owners = parts.vms
    elif path[0] == "containers":
        owners = parts.containers
    if owners and len(path) > 1 and isinstance(path[1], int):
        return GuestLocations(owners[path[1]][0], {}).place(path[2:])
    return site.envs[env].places.place()
