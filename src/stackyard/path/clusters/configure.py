"""Writing the files of a cluster: only what changed, nothing that somebody edited, no secret in clear."""

from __future__ import annotations

import contextlib
import fnmatch
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.base import files, locks
from stackyard.base.errors import FileError, StackyardError
from stackyard.path.clusters import generated
from stackyard.path.clusters.bounded_templates import bounded_templates
from stackyard.path.clusters.image_lock import read_image_lock
from stackyard.path.clusters.keys import make_keyring
from stackyard.path.clusters.record import RECORD_NAME, GenerationRecord, read_record
from stackyard.path.clusters.tasks import warn_of_tasks
from stackyard.path.clusters.templates import find_overrides, find_top
from stackyard.render.cluster import render_infrastructure

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from stackyard.path.clusters.generated import FileChange
    from stackyard.secrets.keyring import Keyring
    from stackyard.sources.cluster.model import Cluster

__all__ = [
    "ConfigurationPlan",
    "ConfigureReport",
    "HandEditError",
    "check_current",
    "configure",
    "plan_configuration",
]


class HandEditError(StackyardError):
    """Files that `cluster configure` would write were edited, or are not its own; nothing was written."""

    code = "E-CLUSTER-HAND-EDIT"
    summary = "Generated files were edited by hand"
    default_remedy = (
        "Put the change into cluster.yaml, nodes.yaml, cluster.sops.yaml or a template of your own in "
        "templates/config/infrastructure. `--overwrite FILE` gives up what is in the file."
    )

    @classmethod
    def from_conflicts(cls, conflicts: Sequence[tuple[str, str]]) -> HandEditError:
        """Name every file with its reason."""
        listed = "\n".join(f"  {name}: {why}" for name, why in conflicts)
        return cls(f"Nothing was written, because of these files:\n{listed}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationPlan:
    """What `cluster configure` would do.

    Attributes:
        changes: The files that it would write or remove, in this order.
        conflicts: The files that it does not touch because of what is in them, each with the reason.
        warnings: What else should be said.
        record: The fingerprints afterwards.
        recorded: The fingerprints now.
    """

    changes: tuple[FileChange, ...]
    conflicts: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()
    record: GenerationRecord = field(repr=False)
    recorded: GenerationRecord = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigureReport:
    """What `cluster configure` did.

    Attributes:
        written: The files that it wrote, as paths from the folder of the cluster.
        removed: The files that it removed.
        warnings: What else should be said.
    """

    written: tuple[str, ...]
    removed: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    @property
    def has_changes(self) -> bool:
        """Whether anything was written or removed."""
        return bool(self.written or self.removed)


def check_current(cluster: Cluster) -> tuple[str, ...]:
    """Return the generated files of `infrastructure/` that are not what the input gives; no key is needed.

    Raises:
        TemplateError: A template of the user cannot be rendered.
        FileError: A file cannot be read.
    """
    with bounded_templates() as render_own:
        wanted = render_infrastructure(
            cluster,
            overrides=find_overrides(cluster.folder),
            checksums=read_image_lock(cluster).checksums,
            render_own=render_own,
        )
    recorded = read_record(cluster.infrastructure / RECORD_NAME)
    left = {
        name
        for path in recorded.files
        if "#" not in path and (name := path.removeprefix("infrastructure/")) != path and name not in wanted
    }
    differing = {name for name, data in wanted.items() if _read(cluster.infrastructure / name) != data}
    return tuple(sorted(differing | {name for name in left if (cluster.infrastructure / name).exists()}))


def plan_configuration(
    cluster: Cluster, *, overwrite: Sequence[str] = (), keyring: Keyring | None = None
) -> ConfigurationPlan:
    """Return what `configure` would do; nothing is written.

    Args:
        cluster: The cluster.
        overwrite: Files, or patterns of files, whose edits are given up.
        keyring: The keys of the user; those of the environment and `age.key` when absent.

    Raises:
        TemplateError: A template of the user cannot be rendered.
        AgeKeyMissingError: There is nobody to encrypt the secrets for.
        SecretsLockedError: The user has no key for an encrypted file.
        InvalidInputError: A file cannot be read.
    """
    recorded = read_record(cluster.infrastructure / RECORD_NAME)
    keyring = keyring or make_keyring(cluster.folder)
    work = generated.list_generated(cluster, keyring, recorded)
    changes, conflicts, left = [], [], []
    top = find_top(cluster.folder).resolve()
    for one in work.changes:
        if one.conflict and not _is_named(one, overwrite):
            if one.is_optional:
                left.append(one)
            else:
                conflicts.append((one.name, one.conflict))
        elif one.before != one.after:
            changes.append(one)
            if not one.path.resolve().is_relative_to(top):
                conflicts.append((one.name, "a link leads out of the repository"))
    names = {one.name for one in left}
    record = GenerationRecord(
        files={name: mark for name, mark in work.fingerprints.items() if name not in names}
    )
    return ConfigurationPlan(
        changes=tuple(changes),
        conflicts=tuple(conflicts),
        warnings=(*work.warnings, *warn_of_tasks(left)),
        record=record,
        recorded=recorded,
    )


def configure(
    cluster: Cluster, *, overwrite: Sequence[str] = (), keyring: Keyring | None = None
) -> ConfigureReport:
    """Write what changed of the files of a cluster.

    A run that is killed leaves every file either old or new, and the next run continues.

    Args:
        cluster: The cluster.
        overwrite: Files, or patterns of files, whose edits are given up.
        keyring: The keys of the user; those of the environment and `age.key` when absent.

    Raises:
        HandEditError: Files were edited; nothing was written.
        StackyardError: As `plan_configuration`; nothing was written.
        FileError: A file cannot be written.
    """
    with locks.hold_folder(cluster.folder):
        plan = plan_configuration(cluster, overwrite=overwrite, keyring=keyring)
        if plan.conflicts:
            raise HandEditError.from_conflicts(plan.conflicts)
        _write(cluster, plan)
    return ConfigureReport(
        written=tuple(one.name for one in plan.changes if one.after is not None),
        removed=tuple(one.name for one in plan.changes if one.after is None),
        warnings=plan.warnings,
    )


def _write(cluster: Cluster, plan: ConfigurationPlan) -> None:
    path = cluster.infrastructure / RECORD_NAME
    if plan.changes:
        # What a killed run has written must be known as its own by the next one.
        pending = GenerationRecord(files=plan.recorded.files, pending=plan.record.files)
        _replace(path, pending.dump())
    for one in plan.changes:
        if one.after is None:
            _remove(one.path, cluster.folder)
        else:
            _replace(one.path, one.after)
    if _read(path) != plan.record.dump():
        _replace(path, plan.record.dump())


def _replace(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    except OSError as err:
        raise FileError.from_os_error(err, "write", path) from err
    files.replace_file(path, data, mode=mode)


def _remove(path: Path, top: Path) -> None:
    """Remove a file, and the folders above it that are empty then."""
    try:
        path.unlink(missing_ok=True)
        for folder in path.parents:
            if folder == top or not folder.is_relative_to(top):
                break
            with contextlib.suppress(OSError):
                folder.rmdir()
    except OSError as err:
        raise FileError.from_os_error(err, "remove", path) from err


def _is_named(change: FileChange, overwrite: Sequence[str]) -> bool:
    names = (change.name, change.name.removeprefix("infrastructure/"), str(change.path))
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in overwrite for name in names)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as err:
        raise FileError.from_os_error(err, "read", path) from err
