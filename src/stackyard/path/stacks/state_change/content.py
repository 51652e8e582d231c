"""What a state holds, compared: the digest of its resources and outputs, and which addresses differ."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import orjson

from stackyard.base.errors import InvalidInputError
from stackyard.engine.statefile import StateSnapshot, read_snapshot
from stackyard.path.stacks.state_change.document import StateVersion
from stackyard.path.stacks.state_change.operation import StateVerb
from stackyard.state.inside import read_view

if TYPE_CHECKING:
    from stackyard.path.stacks.state_change.operation import StateOperation

__all__ = ["EncryptedCopyError", "digest_of", "find_differences", "read_plain", "version_of"]


class EncryptedCopyError(InvalidInputError):
    """The engine encrypts the state of the stack, so that a copy of it cannot be changed and compared."""

    code = "E-STATE-CHANGE-ENCRYPTED"
    summary = "The state is encrypted by the engine"
    default_remedy = "Use `moved`, `removed` and `import` blocks in the code, which a plan shows for review."


def read_plain(data: bytes) -> StateSnapshot:
    """Read a state that is not encrypted.

    Raises:
        EncryptedCopyError: It is.
        InvalidInputError: It is no state.
    """
    try:
        found = read_snapshot(data)
    except ValueError as err:
        raise InvalidInputError(f"The state of the stack cannot be read: {err}.") from err
    if found.encrypted:
        raise EncryptedCopyError("Its resources cannot be read without the key of the engine.")
    return found


def version_of(data: bytes | None) -> StateVersion:
    """Return which version of a state this is."""
    if data is None:
        return StateVersion()
    found = read_plain(data)
    digest = hashlib.sha256(data).hexdigest()
    return StateVersion(lineage=found.lineage, serial=found.serial, digest=digest)


def digest_of(data: bytes | None) -> str:
    """Return the digest of what a state holds, whatever its serial and the engine that wrote it."""
    document = {} if data is None else read_plain(data).document
    held = [document.get("resources") or [], document.get("outputs") or {}]
    return hashlib.sha256(orjson.dumps(held, option=orjson.OPT_SORT_KEYS)).hexdigest()


def find_differences(
    before: bytes | None, after: bytes, operation: StateOperation
) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...], tuple[str, ...]]:
    """Return which instances got another address, came, and left.

    Args:
        before: The state before.
        after: The same after the operation.
        operation: What was done: only `mv` gives other addresses.
    """
    old = set() if before is None else set(read_view(before).instances)
    new = set(read_view(after).instances)
    gone, come = old - new, new - old
    moved = []
    if operation.verb is StateVerb.MOVE:
        source, destination = operation.words
        for address in sorted(gone):
            target = destination + address.removeprefix(source)
            if address.startswith(source) and target in come:
                moved.append((address, target))
                come.discard(target)
        gone -= {address for address, _ in moved}
    return tuple(moved), tuple(sorted(come)), tuple(sorted(gone))
