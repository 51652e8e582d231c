"""Looking at a pull request: its comments are obeyed, it is planned, and applied once it is merged.

What was seen is in the store, so that a look that was missed or cut short is found again.
"""

from __future__ import annotations

import asyncio
import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.documents.limits import SMALL
from stackyard.clients.forge.failures import ForgeNotFoundError
from stackyard.clients.forge.model import Permission, PullState
from stackyard.clients.objects import ANYTHING
from stackyard.gitops.commands import Command, Verb, read_commands
from stackyard.gitops.jobs import apply_job
from stackyard.gitops.replies import HELP, say_misunderstood
from stackyard.gitops.rights import find_right
from stackyard.gitops.statuses import tell_begin
from stackyard.state import layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.clients.forge.model import Comment, PullRequest
    from stackyard.clients.forge.protocol import Forge
    from stackyard.clients.objects import Objects
    from stackyard.gitops.queue.protocol import JobQueue

__all__ = ["Look", "Looks", "PullActions", "Seen", "Since"]

_SINCE = "since"


class PullActions(Protocol):
    """What is done with a pull request, whoever asks for it. Each finds out what is already done."""

    async def plan(self, number: int, *, force: bool) -> None:
        """Plan what has no plan that fits, and show it; end the work on one that was closed."""
        ...

    async def apply(self, number: int, targets: frozenset[str] | None) -> None:
        """Apply what was reviewed of some targets, or of all."""
        ...

    async def unlock(self, number: int) -> None:
        """Give back the targets that a pull request holds."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a look saw of a pull request.

    Attributes:
        state: How far it was.
        head: Its commit.
        base: The last commit of its base branch.
        updated_at: When it had last changed.
        comment: Comments up to this one were obeyed.
    """

    state: str = ""
    head: str = ""
    base: str = ""
    updated_at: str = ""
    comment: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Since:
    """From when on pull requests are looked after.

    Attributes:
        number: The highest one that was merged or closed before the first start: none up to it is ours.
        updated_at: When the one had changed that was found last to be merged or closed.
    """

    number: int = 0
    updated_at: str = ""


@dataclass(frozen=True, slots=True)
class Looks:
    """What was seen of the pull requests of a repository, in the store. It holds no secret.

    Args:
        objects: The store.
        repository: `owner/name`.
    """

    objects: Objects
    repository: str

    async def get(self, number: int) -> Seen:
        """Return what was seen of a pull request; nothing where it was never looked at."""
        return Seen(**await asyncio.to_thread(self._get, str(number), Seen))

    async def put(self, number: int, seen: Seen) -> None:
        """Keep what was seen. One job at a time looks at a pull request."""
        await asyncio.to_thread(self._put, str(number), seen)

    async def since(self) -> Since | None:
        """Return from when on pull requests are looked after; None before the first reconciliation."""
        said = await asyncio.to_thread(self._get, _SINCE, Since)
        return Since(**said) if said else None

    async def put_since(self, since: Since) -> None:
        """Keep from when on they are looked after."""
        await asyncio.to_thread(self._put, _SINCE, since)

    def _get(self, name: str, kind: type[Seen | Since]) -> dict[str, Any]:
        stored = self.objects.get(layout.gitops(self.repository, "looks", name))
        if stored is None:
            return {}
        try:
            said: dict[str, Any] = parse_json(stored.data, SMALL)
            known = {item.name: said[item.name] for item in dataclasses.fields(kind) if item.name in said}
        except (JsonError, TypeError):
            # It only saves work: what it says is found again.
            return {}
        return known

    def _put(self, name: str, said: Seen | Since) -> None:
        key = layout.gitops(self.repository, "looks", name)
        self.objects.put(key, orjson.dumps(dataclasses.asdict(said)), expect=ANYTHING)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What comments ask for."""

    commands: frozenset[Command] = frozenset()
    misunderstood: tuple[str, ...] = ()
    last: int = 0

    @property
    def verbs(self) -> frozenset[Verb]:
        """What they ask for, whatever it is about."""
        return frozenset(command.verb for command in self.commands)

    @property
    def applied(self) -> frozenset[str] | None:
        """The targets that are to be applied; None for all of them."""
        targets = frozenset(command.target for command in self.commands if command.verb is Verb.APPLY)
        return None if "" in targets else targets


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Looks at pull requests.

    Attributes:
        forge: The repository on its forge.
        actions: What is done with a pull request.
        queue: Where an apply is put, so that applies run in their order.
        looks: What was seen before.
    """

    forge: Forge
    actions: PullActions
    queue: JobQueue
    looks: Looks

    async def look(self, number: int) -> None:
        """Look at a pull request, and do what it needs.

        Raises:
            StackyardError: The forge or the store cannot be used; the next look does the rest.
        """
        try:
            pull = await self.forge.pull(number)
        except ForgeNotFoundError:
            # It was an issue that somebody wrote about, or it is gone.
            await self.forge.repository()
            return
        seen = await self.looks.get(number)
        if pull.state is PullState.OPEN and pull.head != seen.head:
            # Before git is asked for anything: people see at once that something is being done.
            await tell_begin(self.forge, pull.head, "is being planned")
        tip = await self.forge.branch_tip(pull.base_branch) or ""
        asked = await self._read(await self.forge.comments(number, after=seen.comment), seen)
        await self._answer(pull, asked)
        await self._act(pull, asked, seen)
        now = Seen(
            state=pull.state.value,
            head=pull.head,
            base=tip,
            updated_at=pull.updated_at,
            comment=max(seen.comment, asked.last),
        )
        if now != seen:
            await self.looks.put(number, now)

    async def _read(self, comments: Sequence[Comment], seen: Seen) -> _Asked:
        """Return what those ask for who may; comments that were edited since ask for nothing."""
        last = max((seen.comment, *(one.id for one in comments)))
        commands, misunderstood = set[Command](), dict[str, None]()
        own = await self.forge.login() if comments else ""
        for comment in comments:
            said = read_commands(comment.body)
            if comment.author == own or _was_edited(comment) or not (said.commands or said.misunderstood):
                continue
            if await find_right(self.forge, comment.author) < Permission.WRITE:
                continue
            commands |= set(said.commands)
            misunderstood |= dict.fromkeys(said.misunderstood)
        return _Asked(commands=frozenset(commands), misunderstood=tuple(misunderstood), last=last)

    async def _answer(self, pull: PullRequest, asked: _Asked) -> None:
        if asked.misunderstood:
            await self.forge.create_comment(pull.number, say_misunderstood(asked.misunderstood))
        elif Verb.HELP in asked.verbs:
            await self.forge.create_comment(pull.number, HELP)

    async def _act(self, pull: PullRequest, asked: _Asked, seen: Seen) -> None:
        if Verb.UNLOCK in asked.verbs:
            await self.actions.unlock(pull.number)
        if pull.state is not PullState.MERGED:
            await self.actions.plan(pull.number, force=Verb.PLAN in asked.verbs)
        elif await self._is_ours(pull, seen):
            if Verb.PLAN in asked.verbs:
                # What failed is planned again where somebody says that it is mended.
                await self.actions.plan(pull.number, force=True)
            await self.queue.put(apply_job(pull.number))
            return
        if Verb.APPLY in asked.verbs and pull.state is not PullState.CLOSED:
            await self.queue.put(apply_job(pull.number, asked.applied))

    async def _is_ours(self, pull: PullRequest, seen: Seen) -> bool:
        """Return whether a pull request that is merged was merged since we look after them."""
        since = await self.looks.since()
        return bool(seen.state) or (since is not None and pull.number > since.number)


def _was_edited(comment: Comment) -> bool:
    return bool(comment.updated_at) and comment.updated_at != comment.created_at
