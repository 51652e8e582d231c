"""What people allow and approve with comments: read from the forge, and counted for those with the right.

`commands` says what a comment can say. Only comments count that were not edited since.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stackyard.clients.forge.model import Permission
from stackyard.gitops.commands import Command, Verb, read_commands
from stackyard.gitops.record import Acknowledgement, CommentApproval
from stackyard.gitops.rights import find_right

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stackyard.clients.forge.model import Comment
    from stackyard.clients.forge.protocol import Forge
    from stackyard.gitops.record import PullRecord
    from stackyard.gitops.settings import GitopsSettings

__all__ = ["CODE", "find_allowed_commit", "list_current", "read_comments", "words_for"]

CODE = "code"


def words_for(permit: str) -> str:
    """Return the comment that permits what an option permits: `--allow-destroy web`."""
    option, _, name = permit.partition(" ")
    return f"stackyard allow {option.removeprefix('--allow-')} {name}"


def list_current(record: PullRecord, head: str, tree: str) -> tuple[Acknowledgement, ...]:
    """Return what people named for this very commit and merge; for another one they have to say it again."""
    is_shown = record.shown_for == f"{head} {tree}"
    return tuple(one for one in record.acknowledged if is_shown or one.what == CODE)


def find_allowed_commit(record: PullRecord, head: str) -> bool:
    """Return whether somebody with the right allowed the code of a commit."""
    return any(one.what == CODE and one.name == head for one in record.acknowledged)


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
        said = read_commands(comment.body).commands
        if comment.author == own or _was_edited(comment) or not said:
            continue
        right = await find_right(forge, comment.author)
        allowed += _list_allowed(comment, said, right, settings)
        approvals = [one for one in said if one.verb is Verb.APPLY]
        if right >= Permission.WRITE and comment.author != author:
            approved += (_approve(comment, one, record) for one in approvals)
    return replace(
        record,
        acknowledged=tuple(dict.fromkeys(allowed)),
        approved=tuple(approved),
        read_comments=max((record.read_comments, *(one.id for one in comments))),
    )


def _list_allowed(
    comment: Comment, said: Sequence[Command], right: Permission, settings: GitopsSettings
) -> Iterator[Acknowledgement]:
    for one in said:
        needed = settings.allow_code if one.what == CODE else settings.allow_destroy
        if one.verb is Verb.ALLOW and right >= needed:
            for name in one.names:
                yield Acknowledgement(what=one.what, name=name, login=comment.author, comment=comment.id)


def _approve(comment: Comment, said: Command, record: PullRecord) -> CommentApproval:
    """Return the approval of the plans that are shown: of all targets, or of the one that is named."""
    shown = (one.fingerprint for name, one in record.shown.items() if said.target in ("", name))
    return CommentApproval(login=comment.author, comment=comment.id, fingerprints=tuple(shown))


def _was_edited(comment: Comment) -> bool:
    return bool(comment.updated_at) and comment.updated_at != comment.created_at
