"""The runs of `stackyard cluster snapshot` and `stackyard cluster restore`."""

from __future__ import annotations

import asyncio
import datetime
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stackyard.base import events, files
from stackyard.base.errors import InvalidInputError, Location, UsageError
from stackyard.bootstrap.boot_record import BootRecord
from stackyard.bootstrap.changes.snapshot import RestoreStep, check_snapshot, take_snapshot
from stackyard.bootstrap.cold_boot import BootSettings, plan_talos_steps
from stackyard.bootstrap.run import run_steps
from stackyard.cli.result import Result
from stackyard.cli.runs.clusters.chosen_nodes import require_change_confirmed
from stackyard.cli.runs.clusters.held import hold, state_of
from stackyard.cli.runs.clusters.opened import open_talos_cluster
from stackyard.secrets import SecretsLockedError
from stackyard.secrets.protected_file import open_bytes, read_bytes
from stackyard.secrets.sops.age import decrypt_whole, encrypt_whole, recipient_of
from stackyard.secrets.sops.file import OpenedSops
from stackyard.talosconfig.bundle_file import find_bundle

if TYPE_CHECKING:
    from stackyard.bootstrap.run import PlannedStep
    from stackyard.cli.runs.clusters.opened import TalosCluster
    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.secrets import Keyring

__all__ = ["SnapshotRecipientError", "run_restore", "run_snapshot"]

_AGE = b"age-encryption.org/"


class SnapshotRecipientError(InvalidInputError):
    """A snapshot is to be encrypted, and it is not clear for whom."""

    code = "E-CLUSTER-SNAPSHOT-KEY"
    summary = "There is nobody to encrypt a snapshot for"
    default_remedy = "Name a public key with --recipient age1..., or say --unencrypted."


async def run_snapshot(session: Session, values: dict[str, Any]) -> Result:
    """Take a snapshot of etcd, check it, and write it to a file that only the user can read.

    Raises:
        SnapshotRecipientError: It is not clear for whom it is encrypted; no node was asked.
        UsageError: The file is there already, or the options contradict each other.
        TalosError: No control plane node gives one.
    """
    if values["unencrypted"] and values["recipients"]:
        raise UsageError("--unencrypted and --recipient exclude each other: say whether it is encrypted.")
    opened = open_talos_cluster(values["name"])
    recipients = () if values["unencrypted"] else _choose_recipients(opened, values["recipients"])
    path = Path(values["out"] or _default_name(opened.cluster.name, is_encrypted=bool(recipients)))
    if await asyncio.to_thread(path.exists):
        raise UsageError(f"{path} is there already: name another file.")
    with events.step(session.emit, "snapshot", "Taking a snapshot of etcd"):
        node, data = await take_snapshot(opened.cluster.controllers, opened.access)
    content = await asyncio.to_thread(encrypt_whole, data, recipients) if recipients else data
    if not await asyncio.to_thread(files.make_file, path, content):
        raise UsageError(f"{path} was made meanwhile and has other content: name another file.")
    return Result(
        document={
            "cluster": opened.cluster.name,
            "node": node.name,
            "file": str(path),
            "bytes": len(data),
            "recipients": list(recipients),
        },
        show=lambda writer: _show_snapshot(writer, path, len(data), recipients),
    )


def _default_name(name: str, *, is_encrypted: bool) -> str:
    now = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
    return f"{name}-etcd-{now}.snapshot{'.age' if is_encrypted else ''}"


def _choose_recipients(opened: TalosCluster, named: tuple[str, ...]) -> tuple[str, ...]:
    """Return for whom a snapshot is encrypted: as named, else whoever reads the secrets of the cluster.

    Raises:
        SnapshotRecipientError: There is nobody, or the secrets need several keys at once.
    """
    if named:
        return named
    path = find_bundle(opened.cluster.folder)
    found = None if path is None else open_bytes(read_bytes(path), str(path), opened.keyring)
    if isinstance(found, OpenedSops):
        if len(found.metadata.groups) > 1:
            raise SnapshotRecipientError("The secrets of the cluster need keys of several groups.")
        keys = tuple(key.recipient for group in found.metadata.groups for key in group.age)
        if keys:
            return keys
    own = recipient_of(opened.keyring)
    if own is None:
        raise SnapshotRecipientError("No age key is known.")
    return (own,)


def _show_snapshot(writer: TextWriter, path: Path, size: int, recipients: tuple[str, ...]) -> None:
    how = f"encrypted for {', '.join(recipients)}" if recipients else "in clear: it holds every Secret"
    writer.line(f"Wrote {path}: {size} bytes, {how}.", style="green" if recipients else "yellow")


async def run_restore(session: Session, values: dict[str, Any]) -> Result:
    """Configure the nodes of a cluster, and form its etcd from a snapshot.

    Raises:
        SecretsLockedError: The snapshot is encrypted for others; nothing was changed.
        SnapshotDamagedError: It is not whole; nothing was changed.
        EtcdExistsError: The cluster has an etcd; nothing was restored.
        ColdBootError: Steps failed.
    """
    opened = open_talos_cluster(values["name"])
    path, name = Path(values["file"]), opened.cluster.name
    snapshot = await asyncio.to_thread(_read_snapshot, path, opened.keyring)
    async with hold(session, name, doing="cluster restore") as objects:
        record = BootRecord(objects, state_of(name), opened.bundle.cluster_id)
        step = RestoreStep(
            controllers=opened.cluster.controllers, access=opened.access, record=record, snapshot=snapshot
        )
        # Before anything is configured: a cluster with an etcd is refused.
        await step.look()
        if not values["yes"]:
            text = f"What Kubernetes had when {path} was taken is what {name} has then."
            await require_change_confirmed(
                session, f"Restore {path} into {name}?", lambda writer: writer.line(text)
            )
        timeline = await run_steps(_plan(opened, step), emit=session.emit)
    return Result(
        document={
            "cluster": name,
            "file": str(path),
            "steps": [{"step": row.name, "outcome": row.outcome} for row in timeline.rows],
        },
        show=lambda writer: writer.line(
            f"{name} has what {path} has. Go on with `stackyard cluster up`.", style="green"
        ),
    )


def _plan(opened: TalosCluster, restore: RestoreStep) -> tuple[PlannedStep, ...]:
    """Return the steps of a cold boot, with an etcd from the snapshot in place of an empty one."""
    settings = BootSettings(access=opened.access, record=restore.record)
    return tuple(
        replace(one, step=restore, title="Restoring etcd") if one.step.name == restore.name else one
        for one in plan_talos_steps(opened.cluster, opened.bundle, opened.keyring, settings)
    )


def _read_snapshot(path: Path, keyring: Keyring) -> bytes:
    """Return the snapshot in a file, decrypted in memory and checked.

    Raises:
        FileError: It cannot be read.
        SecretsLockedError: It is encrypted for others, or damaged.
        SnapshotDamagedError: It is not whole.
    """
    data = read_bytes(path)
    if data.startswith(_AGE):
        opened = decrypt_whole(data, keyring)
        if opened is None:
            raise SecretsLockedError(
                f"{path} is encrypted for keys that are not here, or damaged.", where=Location(str(path))
            )
        data = opened
    check_snapshot(data, str(path))
    return data
