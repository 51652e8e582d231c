"""Writing the object: lease, fetch, change, validate, difference, acknowledgement, conditional upload."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base import events
from stackyard.base.diagnostics import Diagnostics, Kind
from stackyard.base.errors import InvalidInputError, UsageError
from stackyard.sources.deployment.difference import ObjectChange, ObjectDifference, compare
from stackyard.sources.deployment.edit import format_object
from stackyard.sources.deployment.fetch import Object, fetch_from, rules_of
from stackyard.sources.deployment.lease import HeldLease, SuspectError, hold_lease
from stackyard.sources.deployment.lease_status import describe_holder
from stackyard.sources.deployment.merge import merge
from stackyard.sources.deployment.open_store import open_writer
from stackyard.sources.deployment.settings import LOCAL_VARIABLE
from stackyard.sources.deployment.store import MovedError, ObjectMissingError, VersionAuthor
from stackyard.sources.deployment.text import EmptyObjectError, ObjectSyntaxError, ObjectText, parse
from stackyard.sources.deployment.validate import check

if TYPE_CHECKING:
    from stackyard.base.diagnostics import Diagnostic
    from stackyard.sources.deployment.settings import ObjectLocation
    from stackyard.sources.deployment.store import Store, Version

__all__ = ["AllowedRemovals", "LossError", "MergeNeededError", "WriteRequest", "WriteResult", "write"]

LOST = Kind(
    code="E-DEPLOYMENT-LOSS",
    summary="An entry would disappear that nobody named",
    remedy="Put it back; or name it: --allow-delete NAME.",
)
RENAMED = Kind(
    code="E-DEPLOYMENT-RENAME",
    summary="A guest would get another key",
    remedy=(
        "Keep the key, which is its key in the state; or, where the new one is meant: --accept-renames here,"
        " and again with `stackyard apply deployment`, which then moves it in the state."
    ),
)
_ATTEMPTS = 3

# Makes the new object from the one that is there; None represents none yet.
Make = Callable[["Object | None"], bytes]


class LossError(InvalidInputError):
    """Entries would disappear, or change their keys, without being named; nothing was written."""

    code = "E-DEPLOYMENT-REFUSED"
    summary = "The new object lacks what the current one has"
    default_remedy = "Put back what is listed, or name every one of them."


class MergeNeededError(MovedError):
    """The object moved on since ours was created from it; both changes are joined as a proposal, not written.

    Attributes:
        proposal: Both changes in one object; where they conflict, what is there now is kept.
        conflicts: What both changed, each to something else.
    """

    code = "E-DEPLOYMENT-MERGE"
    summary = "Another client wrote first: both changes have to be merged"
    default_remedy = "Look at the proposal, correct it where there is a conflict, and put that."
    proposal: bytes = b""
    conflicts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedRemovals:
    """What may disappear.

    Attributes:
        deleted: Entries, as `web` or `containers.web`.
        renames: Whether guests may change their keys.
    """

    deleted: frozenset[str] = frozenset()
    renames: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest:
    """One write.

    Attributes:
        kind: Which verb asks for it.
        make: Makes the new object from the one that is there.
        base: The version that the new object was made from, where it was made before; otherwise it is made
            from the current one.
        acknowledged: What may disappear.
        note: What for.
        is_dry: Whether to stop before the upload.
        can_repeat: Whether `make` can be asked again when someone else was faster.
        mends: Whether an object that is empty or cut off may be replaced, as by a rollback.
        wait_s: How long to wait for the lease.
    """

    kind: str
    make: Make
    base: Version | None = None
    acknowledged: AllowedRemovals = field(default_factory=AllowedRemovals)
    note: str = ""
    is_dry: bool = False
    can_repeat: bool = False
    mends: bool = False
    wait_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult:
    """What a write did.

    Attributes:
        version: The new version; None where nothing was to be written.
        replaced: The version before it.
        difference: What differs between the two.
        warnings: What was found that stops nothing.
    """

    version: Version | None
    replaced: Version | None
    difference: ObjectDifference
    warnings: tuple[Diagnostic, ...] = ()


def write(place: ObjectLocation, request: WriteRequest, *, emit: events.Emit = events.ignore) -> WriteResult:
    """Write the object.

    Raises:
        UsageError: A file replaces the store, or committed files do: there is nothing to write to.
        LeaseHeldError: Another session writes.
        LossError: Something would disappear that no one named.
        MergeNeededError: The object moved on since ours was created.
        SuspectError: It was written, and the lease was lost meanwhile.
        InvalidInputError: The new object is not valid; nothing was written.
    """
    _require_store(place)
    with hold_lease(place, request.kind, wait_s=request.wait_s, emit=emit) as held:
        with contextlib.closing(open_writer(place, held)) as store:
            for attempt in range(_ATTEMPTS):
                try:
                    done = _write_once(store, place, request)
                except MovedError:
                    # Someone writes without our lease, with another program. What can be replaced is.
                    if not request.can_repeat or attempt == _ATTEMPTS - 1:
                        raise
                    continue
                break
        held.check()
        _require_lease(held, done)
    return done


def _require_store(place: ObjectLocation) -> None:
    if place.local is not None:
        raise UsageError(
            f"{LOCAL_VARIABLE} is set: a file replaces the store, and no plan would see a write to the store."
            " Unset it to write."
        )
    if place.domains is not None:
        raise UsageError(
            f"The object consists of committed files in {place.domains}; change them, and commit."
        )


def _require_lease(held: HeldLease, done: WriteResult) -> None:
    if held.is_lost:
        what = "nothing was written" if done.version is None else f"version {done.version.id} was written"
        raise SuspectError(f"Another client took over the lease during the work; {what}.")


def _write_once(store: Store, place: ObjectLocation, request: WriteRequest) -> WriteResult:
    there = _read_current(store, mends=request.mends)
    data = request.make(there.whole)
    if request.base is not None:
        _require_base(store, there.whole, request.base, data)
    new = parse(data, "The new object")
    checked = check(new, rules_of(place))
    checked.require()
    before: dict[str, Any] = {} if there.whole is None else there.whole.document.data
    difference = compare(before, new.data)
    if there.whole is not None:
        _require_named(difference, request.acknowledged, new)
    version = None
    if not (there.data == data or request.is_dry):
        authored = VersionAuthor(by=describe_holder(), note=request.note, kind=request.kind)
        version = store.write(data, replaces=there.version, authored=authored)
    return WriteResult(
        version=version, replaced=there.version, difference=difference, warnings=checked.found.warnings
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _CurrentObject:
    """What is in the store.

    Attributes:
        version: The current version, None where there is none.
        data: Its bytes.
        whole: The object that a new one is compared with: the current one, or the last that was whole.
    """

    version: Version | None = None
    data: bytes | None = None
    whole: Object | None = None


def _read_current(store: Store, *, mends: bool) -> _CurrentObject:
    try:
        current = fetch_from(store)
    except ObjectMissingError:
        return _CurrentObject()
    except (EmptyObjectError, ObjectSyntaxError):
        if not mends:
            raise
        broken = store.read()
        if broken is None:
            return _CurrentObject()
        return _CurrentObject(version=broken.version, data=broken.data, whole=_find_last_readable(store))
    return _CurrentObject(version=current.version, data=current.document.text.encode(), whole=current)


def _find_last_readable(store: Store) -> Object | None:
    """Return the newest version that can be read."""
    for version in store.history():
        found = store.read_version(version)
        try:
            document = parse(found.data, f"{store.label} (version {version.id})")
        except (EmptyObjectError, ObjectSyntaxError):
            continue
        return Object(document=document, label=store.label, fingerprint=found.fingerprint, version=version)
    return None


def _require_base(store: Store, current: Object | None, base: Version, data: bytes) -> None:
    """Refuse what was created from another version than the current one; propose both changes joined.

    Raises:
        MergeNeededError: It was.
    """
    now = None if current is None else current.version
    if current is None or now is None or now.id == base.id or now.etag == base.etag:
        return
    start = parse(store.read_version(base).data, f"{store.label} (version {base.id})")
    ours = parse(data, "The new object")
    joined = merge(start.data, ours.data, current.document.data)
    conflicts = tuple(map(str, joined.conflicts))
    told = (
        f" In conflict: {'; '.join(conflicts)}." if conflicts else " The two changes do not touch each other."
    )
    error = MergeNeededError(
        f"The new object is based on version {base.id} (etag {base.etag}), and {store.label} is now version"
        f" {now.id} (etag {now.etag}).{told}",
        read=base.etag,
        there=now.etag,
    )
    error.proposal = format_object(joined.data)
    error.conflicts = conflicts
    raise error


def _require_named(difference: ObjectDifference, named: AllowedRemovals, new: ObjectText) -> None:
    found = Diagnostics()
    unnamed: list[ObjectChange] = []
    for change in difference.lost:
        if not {change.key, str(change)} & named.deleted:
            unnamed.append(change)
            found.add(LOST, f"{change} would disappear.", new.place((change.section,)))
    for change in difference.renamed:
        if not named.renames:
            text = (
                f"{change.section}.{change.key} would become {change.new_key}: the same vm_id, another key."
            )
            found.add(RENAMED, text, new.place((change.section, change.new_key or "")))
    if not len(found):
        return
    words = ["--allow-delete", ",".join(map(str, unnamed))] if unnamed else []
    words += [] if named.renames or not difference.renamed else ["--accept-renames"]
    raise LossError(
        f"The new object lacks {len(unnamed)} entries of the current one"
        f" and gives {0 if named.renames else len(difference.renamed)} guests another key.",
        tuple(found),
        remedy=f"Put them back; or, where every one of these is meant, repeat with: {' '.join(words)}",
    )
