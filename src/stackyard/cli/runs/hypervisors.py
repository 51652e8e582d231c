"""The runs of `hypervisor:NAME --all`: a cluster, and its nodes that have files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.errors import UsageError
from stackyard.cli.runs.apply import run_apply
from stackyard.cli.runs.shared import join_results
from stackyard.path.environment import EnvironmentSource
from stackyard.path.hypervisor import HypervisorSource
from stackyard.path.target import find_target
from stackyard.render.references import short_type
from stackyard.sources.hypervisor.build import build_desired
from stackyard.sources.site.hypervisor_owners import find_owners

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from stackyard.cli.result import Result
    from stackyard.cli.session import Session
    from stackyard.path.credentials.perform import LoginSession
    from stackyard.sources.site.load import Site

    Work = Callable[[Session, dict[str, Any]], Awaitable[Result]]

__all__ = ["list_files", "run_hypervisors_apply", "run_on_files"]


async def run_hypervisors_apply(
    session: Session, values: Mapping[str, Any], login: LoginSession | None = None
) -> Result:
    """Apply the file of a cluster and those of its nodes, one after the other.

    The first that is refused or fails ends the command; the same command continues from there.

    Args:
        session: The command.
        values: Its options.
        login: Who sets passwords.

    Raises:
        UsageError: The target is no cluster, or a saved plan is named.
    """

    async def apply_one(one: Session, given: dict[str, Any]) -> Result:
        return await run_apply(one, given, login)

    return await run_on_files(session, values, apply_one)


async def run_on_files(session: Session, values: Mapping[str, Any], work: Work) -> Result:
    """Run a command on the file of a cluster and on those of its nodes, one after the other.

    Args:
        session: The command.
        values: Its options.
        work: Its run on one target.

    Raises:
        UsageError: The target is no cluster, or a saved plan is named.
    """
    if values.get("plan_file") or values.get("out"):
        raise UsageError("A saved plan is that of one target: leave out --all.")
    environments = EnvironmentSource.find(values["site"], emit=session.emit)
    source = HypervisorSource(environments.resolver)
    source.require_files("The cluster")
    _, name = find_target(values["target"], {source.kind: source})
    results = [
        await work(session, {**values, "target": f"{source.kind}:{one}", "all_stacks": False})
        for one in list_files(environments.resolver.site, name)
    ]
    return join_results(results)


def list_files(site: Site, cluster: str) -> tuple[str, ...]:
    """Return the file of a cluster and those of its nodes, in the order in which they need each other.

    Nodes use what the cluster shares: security groups, accounts of certificate authorities. Only if a zone
    of the cluster lies on a bridge, the bridges come first.

    Args:
        site: The site, in which no file of `hypervisors/` is broken.
        cluster: The file of the cluster.

    Raises:
        UsageError: It is no file of a cluster.
    """
    loaded = site.hypervisors.get(cluster)
    if loaded is None or hasattr(loaded.model, "node"):
        raise UsageError(f"--all is for the file of a cluster, and hypervisor:{cluster} is none.")
    owners = (find_owners(site, node) for node in site.nodes)
    nodes = {one.interfaces for one in owners if one.cluster_wide == cluster and one.interfaces != cluster}
    files = tuple(sorted(name for name in nodes if name in site.hypervisors))
    objects = build_desired(loaded.model).objects
    zones = [one for one in objects if short_type(one.key.type).startswith("sdn_zone_")]
    has_bridges = any(zone.attributes.get("bridge") for zone in zones)
    return (*files, cluster) if has_bridges else (cluster, *files)
