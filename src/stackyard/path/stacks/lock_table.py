"""The way from a DynamoDB lock table to the lock object in the bucket: both locks, a proof, then one lock.

A client that locks with the table alone does not see the lock objects of the others. So the table goes only
after every client has both. The code shows what clients should do. The bucket and the table show what they
did: a version of the state that was written while no lock object was there, or a state that differs from the
digest in the table, was written by a client that has only one of the two locks.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.errors import Location
from stackyard.base.extras import needed
from stackyard.sources.stacks.backend_block import BackendEditError
from stackyard.sources.stacks.facts import read_facts
from stackyard.sources.stacks.lock_settings import LockSettings, list_settings, read_lock_settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from stackyard.clients.git.compare import Comparison
    from stackyard.clients.objects.lock_table import LockTable, StateBucket
    from stackyard.clients.objects.s3_client import S3Config
    from stackyard.sources.stacks.model import Stack
    from stackyard.sources.stacks.repository import StackRepository

__all__ = [
    "LockProof",
    "ProofStatus",
    "TableStack",
    "describe_place",
    "find_table_stacks",
    "open_table",
    "prove_stack",
]

_WORKSPACES = "env:"
_DAY_S = 86400
# Where the state and the table are.
_PLACES = (
    "bucket",
    "key",
    "dynamodb_table",
    "workspace_key_prefix",
    "region",
    "profile",
    "endpoints",
    "endpoint",
    "dynamodb_endpoint",
)
_SHOWN = 3


class ProofStatus(enum.StrEnum):
    """How far a stack is on the way."""

    NO_LOCKFILE = "no lockfile"
    NOT_MERGED = "not merged"
    PROVEN = "proven"
    UNPROVEN = "unproven"
    REFUTED = "refuted"
    LOCKED = "locked"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStack:
    """A stack whose S3 backend locks with a table.

    Attributes:
        stack: The stack.
        table: The table; empty where an expression names it.
        has_lockfile: Whether it uses the lock object too.
        settings: The settings of the backend.
        files: The files that may hold them: code in the folder, and backend config files.
        table_file: The one that names the table; None where that is in JSON.
        computed: Settings that say where the state and the table are, and that only an engine can compute.
    """

    stack: Stack
    table: str
    has_lockfile: bool
    settings: Mapping[str, str]
    files: tuple[Path, ...]
    table_file: Path | None = None
    computed: tuple[str, ...] = ()

    @property
    def has_table(self) -> bool:
        """Whether it locks with a table."""
        return bool(self.table) or self.table_file is not None

    def require_file(self) -> Path:
        """Return the file that names the table.

        Raises:
            BackendEditError: It is in JSON, which is not edited.
        """
        if self.table_file is None:
            raise BackendEditError(
                f"stack:{self.stack.name} names its table in JSON.", where=Location(str(self.stack.folder))
            )
        return self.table_file


@dataclass(frozen=True, slots=True, kw_only=True)
class LockProof:
    """What is known of the locks of a stack.

    Attributes:
        status: How far it is.
        details: Why, for a person.
        versions: How many versions of its states were looked at.
        since: From when on, in seconds since 1970.
    """

    status: ProofStatus
    details: tuple[str, ...] = ()
    versions: int = 0
    since: float = 0.0


def find_table_stacks(repository: StackRepository) -> list[TableStack]:
    """Return the stacks with an S3 backend, those without a table too.

    Raises:
        InvalidInputError: The files of a stack cannot be read.
    """
    return [found for stack in repository.stacks.values() if (found := _read_stack(repository, stack))]


def _read_stack(repository: StackRepository, stack: Stack) -> TableStack | None:
    backend = read_facts(repository, stack).backend
    if backend is None or backend.type != "s3":
        return None
    code = sorted((*stack.folder.glob("*.tf"), *stack.folder.glob("*.tofu")))
    files = (*code, *stack.settings.backend_config)
    read = {path: path.read_bytes() for path in files if path.is_file()}
    said = _join(list(read.values()))
    named = (path for path, data in read.items() if read_lock_settings(data).table is not None)
    return TableStack(
        stack=stack,
        table=backend.settings.get("dynamodb_table") or said.table or "",
        has_lockfile=backend.settings.get("use_lockfile") == "true" or said.has_lockfile,
        settings=backend.settings,
        files=files,
        table_file=next(named, None),
        computed=_find_computed(read.values(), backend.settings),
    )


def _find_computed(contents: Iterable[bytes], settings: Mapping[str, str]) -> tuple[str, ...]:
    known = {name.partition(".")[0] for name in settings}
    written = {name for data in contents for name in list_settings(data)}
    return tuple(name for name in _PLACES if name in written - known)


def _join(contents: list[bytes]) -> LockSettings:
    read = [read_lock_settings(data) for data in contents]
    tables = [one.table for one in read if one.table is not None]
    return LockSettings(
        table=tables[0] if tables else None, has_lockfile=any(one.has_lockfile for one in read)
    )


async def _read_merged(one: TableStack, git: Comparison, tip: str) -> LockSettings:
    """Return the locks that the default branch names for a stack.

    Raises:
        GitError: git cannot say.
    """
    contents = [await git.read_file(tip, path.relative_to(git.top).as_posix()) for path in _inside(one, git)]
    return _join([data for data in contents if data is not None])


def _inside(one: TableStack, git: Comparison) -> list[Path]:
    return [path for path in one.files if path.is_relative_to(git.top)]


async def prove_stack(one: TableStack, git: Comparison | None, tip: str, since: float | None) -> LockProof:
    """Return whether the clients of a stack have both locks.

    Args:
        one: The stack.
        git: Its repository; None outside of git.
        tip: The last commit of the default branch.
        since: From when on versions count; since `use_lockfile` is on the default branch when absent.

    Raises:
        LockTableError: The table or the bucket does not answer.
        MissingExtraError: The extra `s3` is not installed.
        GitError: git cannot say.
    """
    if not one.has_lockfile:
        return LockProof(status=ProofStatus.NO_LOCKFILE, details=("Its code does not set use_lockfile.",))
    merged = LockSettings() if git is None or not tip else await _read_merged(one, git, tip)
    if git is None or not merged.has_lockfile or merged.table is None:
        return LockProof(
            status=ProofStatus.NOT_MERGED, details=("The default branch does not have both locks yet.",)
        )
    if since is None and await git.is_shallow():
        text = "This clone is shallow: it does not show since when the default branch has both locks."
        return LockProof(status=ProofStatus.UNPROVEN, details=(text, "Run `git fetch --unshallow`."))
    if since is None:
        places = [path.relative_to(git.top).as_posix() for path in _inside(one, git)]
        since = await git.find_last_edit(tip, "use_lockfile", places)
    return await asyncio.to_thread(_look, one, since)


def _look(one: TableStack, since: float) -> LockProof:
    key, bucket_name = one.settings.get("key", ""), one.settings.get("bucket", "")
    if one.computed or not one.table or not key or not bucket_name:
        named = ", ".join(one.computed) or "table, bucket or key"
        text = f"Its {named} is an expression, which only OpenTofu can compute."
        return LockProof(status=ProofStatus.UNPROVEN, details=(text,), since=since)
    with _open_bucket(one) as bucket, open_table(one.table, one.settings) as table:
        is_versioned = bucket.is_versioned()
        workspaces = one.settings.get("workspace_key_prefix", _WORKSPACES)
        findings = _Findings(bucket=bucket, table=table, since=since)
        for found in bucket.list_keys(key, workspaces):
            findings.look_at(found, is_versioned=is_versioned)
        unproven = findings.unseen
        if not is_versioned:
            unproven = [
                f"The bucket {bucket_name} keeps no versions, so that nothing shows how they were written."
            ]
        elif not findings.versions:
            unproven = [
                f"No version was written since {_utc(since)}, when the default branch got both locks."
            ]
        elif lost := _find_lost(bucket, key, since):
            unproven = [*unproven, lost]
    for status, details in (
        (ProofStatus.REFUTED, findings.wrong),
        (ProofStatus.LOCKED, findings.held),
        (ProofStatus.UNPROVEN, unproven),
        (ProofStatus.PROVEN, [f"{findings.versions} versions since {_utc(since)}, each under both locks."]),
    ):
        if details:
            return LockProof(status=status, details=tuple(details), versions=findings.versions, since=since)
    raise AssertionError("a proof always has details")


def _find_lost(bucket: StateBucket, key: str, since: float) -> str:
    """Return why versions may be gone that were written since a time; empty where none are."""
    from stackyard.clients.objects.lock_table import LockTableError  # lazy: boto3 costs 300 ms

    try:
        days = bucket.find_kept_days(key)
    except LockTableError as err:
        return f"Whether the bucket removes old versions is not known: {err.detail}"
    if days is None or since >= time.time() - days * _DAY_S:
        return ""
    return (
        f"The bucket removes old versions after {days} days: what was written since {_utc(since)} may be "
        "gone. Count from later on with --since."
    )


class _Findings:
    """What the states of a stack show, its workspaces included."""

    def __init__(self, *, bucket: StateBucket, table: LockTable, since: float) -> None:
        self._bucket, self._table, self._since = bucket, table, since
        self.wrong: list[str] = []
        self.held: list[str] = []
        self.unseen: list[str] = []
        self.versions = 0

    def look_at(self, key: str, *, is_versioned: bool) -> None:
        """Add what one state shows."""
        state = f"{self._bucket.name}/{key}"
        self._look_at_lock(key, state)
        md5, digest = self._bucket.read_md5(key), self._table.read_digest(state)
        if md5 is not None and digest != md5:
            what = "has no digest of it" if digest is None else f"has the digest {digest}, it is {md5}"
            self.wrong.append(f"A client without the table wrote {state}: the table {what}.")
        if not is_versioned:
            return
        versions = self._bucket.list_versions(key, self._since)
        self.versions += len(versions)
        if md5 is not None and not versions:
            self.unseen.append(f"{state} was not written since {_utc(self._since)}.")
        if any(not one.is_kept for one in versions):
            self.unseen.append(f"{state} was written while the bucket kept no versions: others may be gone.")
        bare = [one for one in versions if not one.is_locked]
        self.wrong += [
            f"A client without use_lockfile wrote {state} at {_utc(one.at)} (version {one.id})."
            for one in bare[:_SHOWN]
        ]
        if len(bare) > _SHOWN:
            self.wrong.append(f"{len(bare) - _SHOWN} more versions of {state} were written like that.")

    def _look_at_lock(self, key: str, state: str) -> None:
        lock = self._table.read_lock(state)
        has_object = self._bucket.has_lock_object(key)
        if lock is not None and not has_object:
            self.wrong.append(
                f"{lock.who} holds {state} in the table alone ({lock.operation}): "
                "that client has no use_lockfile."
            )
        elif lock is not None:
            self.held.append(f"{lock.who} holds {state} ({lock.operation}).")
        elif has_object:
            self.held.append(f"{state}.tflock is there: a run holds it, or died.")


def describe_place(settings: Mapping[str, str], service: str) -> S3Config:
    """Return where a service of a backend is: its endpoint, region and credentials.

    Args:
        settings: The settings of the backend.
        service: `s3` or `dynamodb`.
    """
    with needed("s3", "The lock table"):
        from stackyard.clients.objects.s3_client import S3Config, S3Credentials  # lazy: boto3 costs 300 ms

    older = "endpoint" if service == "s3" else "dynamodb_endpoint"
    endpoint = settings.get(f"endpoints.{service}") or settings.get(older)
    own = None
    if settings.get("access_key") and settings.get("secret_key"):
        own = S3Credentials(access_key=settings["access_key"], secret_key=settings["secret_key"])
    return S3Config(
        bucket=settings.get("bucket", ""),
        endpoint_url=endpoint or None,
        region=settings.get("region") or None,
        credentials=own,
        profile=settings.get("profile") or None,
    )


@contextlib.contextmanager
def _open_bucket(one: TableStack) -> Iterator[StateBucket]:
    place = describe_place(one.settings, "s3")
    from stackyard.clients.objects.lock_table import StateBucket  # lazy: boto3 costs 300 ms

    with contextlib.closing(StateBucket(place)) as bucket:
        yield bucket


@contextlib.contextmanager
def open_table(name: str, settings: Mapping[str, str]) -> Iterator[LockTable]:
    """Give a lock table for the length of the block.

    Raises:
        MissingExtraError: The extra `s3` is not installed.
    """
    place = describe_place(settings, "dynamodb")
    from stackyard.clients.objects.lock_table import LockTable  # lazy: boto3 costs 300 ms

    with contextlib.closing(LockTable(name, place)) as table:
        yield table


def _utc(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
