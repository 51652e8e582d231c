"""What a target uses of a site: only what is wrong with that can stop it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.base.diagnostics import Diagnostics, Severity
from stackyard.sources.site.entities.networks import SdnNetwork
from stackyard.sources.site.own_code.find import EXTRA

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from stackyard.base.diagnostics import Diagnostic
    from stackyard.sources.site.layers import GuestEntry
    from stackyard.sources.site.load import Site

__all__ = [
    "File",
    "divide",
    "files_of_env",
    "files_of_host",
    "files_of_shared",
    "files_of_spec",
    "report_unused",
]

# A file of a site: its kind, as `stackyard site list` calls it, and its name.
File = tuple[str, str]
# Anyone who has more wrong elsewhere asks for all of it.
_MOST_LINES = 20


def divide(site: Site, used: Collection[File]) -> tuple[Diagnostics, Diagnostics]:
    """Return the findings of a site in two parts: of what is used, and of all else.

    What is in no file of a kind is used by everything: site.yaml, the secrets, folders that cannot be read.

    Args:
        site: The site.
        used: The files that are used.
    """
    here, elsewhere = Diagnostics(), Diagnostics()
    for finding in site.found:
        (here if _concerns(site, finding, used) else elsewhere).extend([finding])
    return here, elsewhere


def report_unused(findings: Sequence[Diagnostic], emit: events.Emit) -> None:
    """Report what is wrong with files that are not used: a line each, and none of them stops anything."""
    for finding in findings[:_MOST_LINES]:
        where = finding.where
        emit(
            events.DiagnosticFound(
                severity=Severity.WARNING.value,
                code=finding.kind.code,
                summary=f"{finding.detail} Not used here.",
                detail=f"{finding.kind.summary}. {finding.kind.remedy}",
                file=None if where is None else where.path,
                line=None if where is None else where.line,
                column=None if where is None else where.column,
            )
        )
    if len(findings) > _MOST_LINES:
        text = f"{len(findings) - _MOST_LINES} more problems are in files that are not used here."
        text = f"{text} `stackyard site validate` shows all."
        emit(events.LogLine(level=events.LogLevel.WARNING, source="site", text=text))


def _concerns(site: Site, finding: Diagnostic, used: Collection[File]) -> bool:
    for where in (finding.where, *finding.also):
        file = None if where is None else site.paths.get(where.path)
        if file is None or file in used:
            return True
    return False


def files_of_env(site: Site, env: str, node: str | None = None) -> frozenset[File]:
    """Return the files that an env uses: its own, its guests' layers, specs, postures, and its nodes.

    Args:
        site: The site.
        env: The env; one that cannot be read uses its own file.
        node: The node that is said; the env's own, or the only one of the site, when absent.
    """
    loaded = site.envs.get(env)
    # The code for all envs is used by each.
    used: set[File] = {("envs", env), (EXTRA, EXTRA)}
    if loaded is None:
        return frozenset(used if node is None else used | files_of_host(site, node))
    used.add(("postures", loaded.model.posture))
    only = _all_nodes(site) if len(_all_nodes(site)) == 1 else {None}
    nodes = {node or loaded.model.node or next(iter(only))}
    for guest in site.guests(env):
        used.update(_files_of_guest(site, guest))
        nodes.add(guest.values.get("node"))
    if any(_has_all_peers(network) for network in loaded.model.networks.values()):
        nodes |= _all_nodes(site)
    for name in nodes - {None}:
        used |= files_of_host(site, str(name))
    return frozenset(used)


def files_of_shared(site: Site, node: str) -> frozenset[File]:
    """Return the files that the networks and pools of site.yaml use: the node, or all as peers."""
    has_peers = any(_has_all_peers(network) for network in site.settings.networks.values())
    nodes = {node, *(_all_nodes(site) if has_peers else ())}
    return frozenset(file for name in nodes for file in files_of_host(site, name))


def files_of_host(site: Site, name: str) -> frozenset[File]:
    """Return the files that say how a node or host is reached."""
    node = site.nodes.get(name)
    used: set[File] = {("nodes", name)}
    if node is not None and node.model.host is not None:
        used.add(("hosts", node.model.host))
    if node is None and name not in site.broken["nodes"]:
        used.add(("hosts", name))
    return frozenset(used)


def files_of_spec(site: Site, name: str) -> frozenset[File]:
    """Return the files that a spec uses: its own, and its posture."""
    spec = site.specs.get(name)
    own: File = ("specs", name)
    return frozenset({own} if spec is None else {own, ("postures", spec.model.access.posture)})


def _files_of_guest(site: Site, guest: GuestEntry) -> Iterator[File]:
    entry = guest.layers[-1].values
    template = entry.get("template")
    said = site.templates.get(template or "")
    for layer in (entry, {} if said is None else said.places.data):
        for key in ("preset", "vm_preset"):
            if layer.get(key) is not None:
                yield "presets", layer[key]
    if template is not None:
        yield "templates", template
    yield from files_of_spec(site, guest.values.get("spec") or guest.name)


def _has_all_peers(network: object) -> bool:
    """Return whether a network connects every node of the site, because it names none."""
    return isinstance(network, SdnNetwork) and network.type == "vxlan" and not network.peers


def _all_nodes(site: Site) -> set[str | None]:
    return {*site.nodes, *site.broken["nodes"]}
