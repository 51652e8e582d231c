"""Who may let a change of a state be made: a second person, or the default branch that a review led to."""

from __future__ import annotations

import os
import pwd
import socket
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base.errors import InvalidInputError, StackyardError
from stackyard.path.stacks.state_change.records import Approval

if TYPE_CHECKING:
    from stackyard.path.stacks.state_change.records import ChangeRecord
    from stackyard.sources.stacks.working_tree import WorkingTree

__all__ = [
    "NotApprovedError",
    "OtherDocumentError",
    "SamePersonError",
    "approve",
    "find_merged",
    "name_person",
    "require_second_person",
    "utc_now",
]


class SamePersonError(StackyardError):
    """Whoever proposed a change of a state would approve it too."""

    code = "E-STATE-CHANGE-SAME-PERSON"
    summary = "A second person has to approve this"
    default_remedy = "Let somebody else approve it, or add --alone if you work alone."


class NotApprovedError(StackyardError):
    """A change of a state is to be made that no one approved."""

    code = "E-STATE-CHANGE-NOT-APPROVED"
    summary = "The change is not approved"
    default_remedy = (
        "Let a second person run `stackyard stack state approve`, or merge its file in a pull request."
    )


class OtherDocumentError(InvalidInputError):
    """A file describes another change than the one of that id in the store."""

    code = "E-STATE-CHANGE-OTHER"
    summary = "The file and the store describe different changes"
    default_remedy = "Propose the change again: it gets a new ID."


def name_person() -> str:
    """Return who runs this: the user and the machine.

    The system says who that is: USER and LOGNAME are words that everybody sets as they like.
    """
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        # A container may run as a user that has no name.
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def utc_now() -> str:
    """Return the time, in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def approve(record: ChangeRecord, person: str, *, is_alone: bool, is_protected: bool) -> ChangeRecord:
    """Return a change with an approval.

    Args:
        record: The change.
        person: Who approves it.
        is_alone: Whether they say that there is no second person.
        is_protected: Whether the stack is protected.

    Raises:
        SamePersonError: They proposed it, and did not say so, or the stack is protected.
    """
    is_same = _user(person) == _user(record.change.proposed_by)
    if is_same and is_protected:
        raise SamePersonError(
            f"stack:{record.change.stack} is protected, and {record.change.proposed_by} proposed the change.",
            remedy="Let somebody else approve it, or merge its file in a pull request.",
        )
    if is_same and not is_alone:
        raise SamePersonError(f"{record.change.proposed_by} proposed the change {record.change.id}.")
    given = Approval(by=person, at=utc_now(), document=record.change.digest, is_alone=is_same)
    return replace(record, approval=given)


def require_second_person(record: ChangeRecord, *, is_protected: bool) -> None:
    """Refuse what somebody approved alone, where the stack is protected by now.

    Raises:
        NotApprovedError: It is.
    """
    if is_protected and record.approval is not None and record.approval.is_alone:
        raise NotApprovedError(
            f"stack:{record.change.stack} is protected, and {record.approval.by} approved the change "
            f"{record.change.id} alone."
        )


def _user(person: str) -> str:
    """Return the user: the same name on two machines is one person, as far as anyone here can tell."""
    return person.rpartition("@")[0].casefold()


async def find_merged(path: Path, data: bytes, tree: WorkingTree) -> str:
    """Return the branch that a file counts as approved by: the shared default branch has it unchanged.

    A branch that only this clone has shows no review: everybody commits to it alone.

    Args:
        path: The file.
        data: What it holds.
        tree: The working tree.

    Raises:
        NotApprovedError: The default branch does not have it, or has it otherwise.
        GitError: git cannot say.
    """
    from stackyard.clients.git.compare import Comparison  # lazy: only where a file is applied
    from stackyard.sources.stacks.changes import find_default_tip  # lazy: as above

    if not tree.is_git:
        raise NotApprovedError(f"No one approved the change, and {path} is in no git repository.")
    place = _place_in(path, tree)
    git = Comparison(top=Path(tree.top))
    tip, branch = await find_default_tip(git, is_shared=True)
    if not tip:
        raise NotApprovedError(
            "No one approved the change, and there is no default branch of a remote (origin/HEAD, "
            "origin/main or origin/master). A branch of this clone alone shows no review.",
            remedy="Push and merge the file, then `git fetch`; or run `stackyard stack state approve`.",
        )
    if await git.read_file(tip, place) != data:
        raise NotApprovedError(
            f"No one approved the change, and {place} is not on the branch {branch}, or differs there."
        )
    return branch


def _place_in(path: Path, tree: WorkingTree) -> str:
    """Return where a file is in the repository; a link is not followed, as git does not follow it."""
    top = Path(os.path.realpath(tree.top))
    place = Path(os.path.realpath(path.parent)) / path.name
    if not place.is_relative_to(top):
        raise NotApprovedError(f"No one approved the change, and {path} is outside of the repository {top}.")
    return place.relative_to(top).as_posix()
