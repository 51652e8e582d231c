"""What people allow and approve with comments: read from the forge, and counted for those with the right.

::

    stackyard allow destroy NAME      also: disk-loss, reboot, migrate, network-reload, management-network, …
    stackyard allow code COMMIT       code of this commit that could do more than plan
    stackyard apply                   approves the plan that is shown, and asks for it to be applied

A line counts if there is nothing else on it. Only comments count that were not edited since.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stackyard.clients.forge.model import Permission
from stackyard.gitops.record import Acknowledgement, CommentApproval

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stackyard.clients.forge.model import Comment
    from stackyard.clients.forge.protocol import Forge
    from stackyard.gitops.record import PullRecord
    from stackyard.gitops.settings import GitopsSettings

__all__ = ["CODE", "PERMITS", "find_allowed_commit", "read_comments", "words_for"]

# Every option `--allow-…` of plan and apply by its word.
PERMITS = frozenset(
    "destroy disk-loss reboot migrate network-reload management-network lockout policy".split()
)
CODE = "code"
_ALLOW = re.compile(r"stackyard allow (?P<what>[a-z-]{1,40}) (?P<names>\S{1,400})")
_APPLY = re.compile(r"stackyard apply(?: \S{1,400})?")
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_FENCE = re.compile(r" {0,3}(?:```|~~~)")
_MOST_LINES = 200


@dataclass(frozen=True, slots=True)
class _Said:
    """What one comment says that counts."""

    allowed: tuple[tuple[str, str], ...] = ()
    is_approval: bool = False


def words_for(permit: str) -> str:
    """Return the comment that permits what an option permits: `--allow-destroy web`."""
    option, _, name = permit.partition(" ")
    return f"stackyard allow {option.removeprefix('--allow-')} {name}"


def find_allowed_commit(record: PullRecord, head: str) -> bool:
    """Return whether somebody with the right allowed the code of a commit."""
    return any(one.what == CODE and head.startswith(one.name) for one in record.acknowledged)


async def read_comments(
    forge: Forge, record: PullRecord, settings: GitopsSettings, *, author: str
) -> PullRecord:
    """Return a record with what comments say that came since it was read last.

    Args:
        forge: The repository.
        record: What is known of the pull request.
        settings: Who may say what.
        author: Who opened it: nobody approves what is their own.

    Raises:
        ForgeError: The forge cannot say.
    """
    comments = await forge.comments(record.plan.number, after=record.read_comments)
    own = await forge.login() if comments else ""
    allowed, approved = list(record.acknowledged), list(record.approved)
    for comment in comments:
        said = _read(comment.body)
        if comment.author == own or _was_edited(comment) or not (said.allowed or said.is_approval):
            continue
        right = await forge.permission(comment.author)
        allowed += _count(comment, said, right, settings)
        if said.is_approval and right >= Permission.WRITE and comment.author != author:
            shown = tuple(one.fingerprint for one in record.shown.values())
            approved.append(CommentApproval(login=comment.author, comment=comment.id, fingerprints=shown))
    return replace(
        record,
        acknowledged=tuple(dict.fromkeys(allowed)),
        approved=tuple(approved),
        read_comments=max((record.read_comments, *(one.id for one in comments))),
    )


def _count(
    comment: Comment, said: _Said, right: Permission, settings: GitopsSettings
) -> Iterator[Acknowledgement]:
    for what, name in said.allowed:
        needed = settings.allow_code if what == CODE else settings.allow_destroy
        if right >= needed:
            yield Acknowledgement(what=what, name=name, login=comment.author, comment=comment.id)


def _was_edited(comment: Comment) -> bool:
    return bool(comment.updated_at) and comment.updated_at != comment.created_at


def _read(body: str) -> _Said:
    """Return what a comment says; what is quoted, or a block of code, says nothing."""
    allowed: list[tuple[str, str]] = []
    is_approval = is_code = False
    for line in _lines(body):
        if _FENCE.match(line):
            is_code = not is_code
            continue
        text = line.rstrip()
        if is_code:
            continue
        is_approval |= _APPLY.fullmatch(text) is not None
        found = _ALLOW.fullmatch(text)
        if found is not None:
            allowed += _allowed(found["what"], found["names"].split(","))
    return _Said(tuple(allowed), is_approval)


def _allowed(what: str, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    for name in filter(None, names):
        is_commit = what == CODE and _COMMIT.fullmatch(name)
        # What begins like an option would be one in a command line.
        if is_commit or (what in PERMITS and not name.startswith("-") and name.isprintable()):
            yield what, name


def _lines(body: str) -> list[str]:
    return body.replace("\r\n", "\n").split("\n")[:_MOST_LINES]
