"""The runs of `stackyard cluster upgrade` and `stackyard cluster upgrade-kubernetes`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from stackyard.bootstrap.changes.configuration import NodeUnseenError
from stackyard.bootstrap.changes.kubernetes_upgrade import KubernetesUpgrade, read_components
from stackyard.bootstrap.changes.upgrade import TalosUpgrade, check_path, read_system
from stackyard.bootstrap.talos.kubeconfig import kubernetes_of
from stackyard.cli.result import Result
from stackyard.cli.runs.clusters.chosen_nodes import choose_nodes, require_change_confirmed
from stackyard.cli.runs.clusters.held import hold
from stackyard.cli.runs.clusters.opened import open_talos_cluster

if TYPE_CHECKING:
    from stackyard.bootstrap.changes.kubernetes_upgrade import NodeComponents
    from stackyard.bootstrap.changes.upgrade import NodeSystem
    from stackyard.cli.runs.clusters.opened import TalosCluster
    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["run_kubernetes_upgrade", "run_upgrade"]


async def run_upgrade(session: Session, values: dict[str, Any]) -> Result:
    """Give nodes the Talos of the files.

    Raises:
        NodeUnseenError: A node cannot be asked; nothing was changed.
        NotConfirmedError: The answer was no; nothing was changed.
        StackyardError: As for `TalosUpgrade.run`.
    """
    opened = open_talos_cluster(values["name"])
    async with hold(session, opened.cluster.name, doing="cluster upgrade"):
        nodes = choose_nodes(opened.cluster, values["nodes"])
        systems = await asyncio.gather(*(read_system(node, opened.access) for node in nodes))
        unseen = [f"{one.node.name}: {one.reason}" for one in systems if one.reason]
        if unseen:
            raise NodeUnseenError("\n".join((*unseen, "Nothing was changed.")))
        for one in systems:
            check_path(one.version, one.node.image.version)
        upgraded = await _upgrade(session, values, opened, tuple(systems))
    has_work = any(not one.is_wanted for one in systems)
    return Result(
        document={
            "cluster": opened.cluster.name,
            "has_changes": has_work,
            "upgraded": list(upgraded),
            "nodes": [
                {"name": one.node.name, "talos": one.version, "changes": list(one.list_differences())}
                for one in systems
            ],
        },
        show=lambda writer: _show_upgraded(writer, tuple(systems), upgraded),
    )


async def _upgrade(
    session: Session, values: dict[str, Any], opened: TalosCluster, systems: tuple[NodeSystem, ...]
) -> tuple[str, ...]:
    if values["dry_run"] or all(one.is_wanted for one in systems):
        return ()
    if not values["yes"]:
        question = f"Upgrade {opened.cluster.name}, one node after the other?"
        await require_change_confirmed(session, question, lambda writer: _show_systems(writer, systems))
    upgrade = TalosUpgrade(
        cluster=opened.cluster,
        access=opened.access,
        needs_kubernetes=not values["without_kubernetes"],
        timeout_s=values["timeout_s"],
    )
    return await upgrade.run(systems, session.emit)


def _show_systems(writer: TextWriter, systems: tuple[NodeSystem, ...]) -> None:
    for one in systems:
        text = ", ".join(one.list_differences()) or f"Talos {one.version}, as its files say"
        writer.line(f"{one.node.name}: {text}")


def _show_upgraded(writer: TextWriter, systems: tuple[NodeSystem, ...], upgraded: tuple[str, ...]) -> None:
    if upgraded:
        writer.line(f"Upgraded {', '.join(upgraded)}; the cluster is healthy.", style="green")
        writer.line("`stackyard cluster drift` shows what the new release takes beyond its image.")
    else:
        _show_systems(writer, systems)


async def run_kubernetes_upgrade(session: Session, values: dict[str, Any]) -> Result:
    """Give a cluster the Kubernetes of the files.

    Raises:
        NodeUnseenError: A node cannot be asked; nothing was changed.
        NotConfirmedError: The answer was no; nothing was changed.
        StackyardError: As for `KubernetesUpgrade.run`.
    """
    opened = open_talos_cluster(values["name"])
    cluster, version = opened.cluster, opened.cluster.kubernetes_version
    async with (
        hold(session, cluster.name, doing="cluster upgrade-kubernetes"),
        kubernetes_of(cluster.controllers, opened.access) as open_client,
    ):
        found = await read_components(cluster, opened.access)
        for before in sorted({one for row in found for one in row.versions.values()}):
            check_path(before, version, "Kubernetes")
        has_work = any(row.find_outdated(version) for row in found)
        upgraded: tuple[str, ...] = ()
        if has_work and not values["dry_run"]:
            if not values["yes"]:
                question = f"Upgrade Kubernetes of {cluster.name} to {version}?"
                await require_change_confirmed(
                    session, question, lambda writer: _show_components(writer, found, version)
                )
            upgrade = KubernetesUpgrade(
                cluster=cluster,
                access=opened.access,
                open_client=open_client,
                timeout_s=values["timeout_s"],
            )
            upgraded = await upgrade.run(found, session.emit)
    return Result(
        document={
            "cluster": cluster.name,
            "version": version,
            "has_changes": has_work,
            "upgraded": list(upgraded),
            "nodes": [{"name": row.node.name, "versions": row.versions} for row in found],
        },
        show=lambda writer: _show_kubernetes(writer, found, upgraded, version),
    )


def _show_components(writer: TextWriter, found: tuple[NodeComponents, ...], version: str) -> None:
    for row in found:
        old = [f"{name} {row.versions[name]}" for name in row.find_outdated(version)]
        text = f"{', '.join(old)}, to {version}" if old else f"Kubernetes {version}, as the files say"
        writer.line(f"{row.node.name}: {text}")


def _show_kubernetes(
    writer: TextWriter, found: tuple[NodeComponents, ...], upgraded: tuple[str, ...], version: str
) -> None:
    if upgraded:
        writer.line(f"Kubernetes {version} runs on all nodes; the cluster is healthy.", style="green")
    else:
        _show_components(writer, found, version)
