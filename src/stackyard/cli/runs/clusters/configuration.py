"""The runs of `stackyard cluster drift` and `stackyard cluster apply-config`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import ExitStatus
from stackyard.bootstrap.changes.configuration import (
    ConfigMending,
    NodeUnseenError,
    WantedConfigs,
    read_drift,
)
from stackyard.cli.result import Result
from stackyard.cli.runs.clusters.chosen_nodes import choose_nodes, require_change_confirmed
from stackyard.cli.runs.clusters.held import hold
from stackyard.cli.runs.clusters.opened import open_talos_cluster

if TYPE_CHECKING:
    from stackyard.bootstrap.changes.configuration import ConfigDrift
    from stackyard.cli.runs.clusters.opened import TalosCluster
    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.talosconfig.difference import ConfigChange

__all__ = ["run_apply_config", "run_config_drift"]

_MODES = {"NO_REBOOT": "without a reboot", "REBOOT": "with a reboot"}


async def run_config_drift(values: dict[str, Any]) -> Result:
    """Compare what nodes run with with what the files ask for."""
    opened = open_talos_cluster(values["name"])
    drifts = await _read(opened, values["nodes"])
    is_there = any(one.changes for one in drifts)
    is_unseen = any(one.reason for one in drifts)
    status = ExitStatus.CHANGES if is_there and values["detailed_exitcode"] else ExitStatus.DONE
    return Result(
        document={
            "cluster": opened.cluster.name,
            "has_drift": is_there,
            "nodes": [_drift_document(one) for one in drifts],
        },
        show=lambda writer: _show(writer, drifts),
        status=ExitStatus.FAILED if is_unseen else status,
    )


async def run_apply_config(session: Session, values: dict[str, Any]) -> Result:
    """Give the nodes that differ the configuration of the files.

    Raises:
        NodeUnseenError: A node cannot be asked; nothing was changed.
        NotConfirmedError: The answer was no; nothing was changed.
        StackyardError: As for `ConfigMending.run`.
    """
    opened = open_talos_cluster(values["name"])
    async with hold(session, opened.cluster.name, doing="cluster apply-config"):
        return await _apply_config(session, values, opened)


async def _apply_config(session: Session, values: dict[str, Any], opened: TalosCluster) -> Result:
    drifts = await _read(opened, values["nodes"])
    unseen = [f"{one.node.name}: {one.reason}" for one in drifts if one.reason]
    if unseen:
        raise NodeUnseenError("\n".join((*unseen, "Nothing was changed.")))
    has_work = any(one.config is not None for one in drifts)
    changed: tuple[str, ...] = ()
    if has_work and not values["dry_run"]:
        if not values["yes"]:
            await require_change_confirmed(
                session, f"Apply this to {opened.cluster.name}?", lambda writer: _show(writer, drifts)
            )
        mending = ConfigMending(
            cluster=opened.cluster,
            access=opened.access,
            needs_kubernetes=not values["without_kubernetes"],
            timeout_s=values["timeout_s"],
        )
        changed = await mending.run(drifts, session.emit)
    return Result(
        document={
            "cluster": opened.cluster.name,
            "has_changes": has_work,
            "changed": list(changed),
            "nodes": [_drift_document(one) for one in drifts],
        },
        show=lambda writer: _show_applied(writer, drifts, changed, is_dry=values["dry_run"]),
    )


async def _read(opened: TalosCluster, names: tuple[str, ...]) -> tuple[ConfigDrift, ...]:
    wanted = WantedConfigs(cluster=opened.cluster, bundle=opened.bundle, keyring=opened.keyring)
    nodes = choose_nodes(opened.cluster, names)
    return tuple(await asyncio.gather(*(read_drift(wanted, node, opened.access) for node in nodes)))


def _drift_document(one: ConfigDrift) -> dict[str, Any]:
    return {
        "name": one.node.name,
        "changes": [_change_document(change) for change in one.changes],
        "left_to_upgrade": [_change_document(change) for change in one.left],
        "mode": one.mode or None,
        "reason": one.reason or None,
    }


def _change_document(change: ConfigChange) -> dict[str, Any]:
    return {
        "document": change.document,
        "path": change.path,
        "before": change.before,
        "after": change.after,
    }


def _show(writer: TextWriter, drifts: tuple[ConfigDrift, ...]) -> None:
    for one in drifts:
        if one.reason:
            writer.line(f"{one.node.name}: {one.reason}", style="red")
        elif not one.changes:
            writer.line(f"{one.node.name}: as its files say")
        else:
            how = f"can be applied {_MODES.get(one.mode, one.mode)}" if one.mode else "nothing to apply"
            writer.line(f"{one.node.name}: {how}", style="yellow")
            for change in one.changes:
                _show_change(writer, change, is_left=change in one.left)


def _show_change(writer: TextWriter, change: ConfigChange, *, is_left: bool) -> None:
    place = f"{change.document}: {change.path}" if change.path else change.document
    before = "(absent)" if change.before is None else change.before
    after = "(absent)" if change.after is None else change.after
    note = " (left to `stackyard cluster upgrade-kubernetes`)" if is_left else ""
    writer.line(f"  {place}: {before} -> {after}{note}")


def _show_applied(
    writer: TextWriter, drifts: tuple[ConfigDrift, ...], changed: tuple[str, ...], *, is_dry: bool
) -> None:
    if changed:
        writer.line(f"Configured {', '.join(changed)}; the cluster is healthy.", style="green")
        return
    _show(writer, drifts)
    if is_dry:
        writer.line("Nothing was changed: --dry-run.")
    else:
        writer.line("Nothing to apply.", style="green")
