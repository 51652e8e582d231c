"""Objects that are always there: settings of a node or the cluster, which are set and unset, never made.

A resource of this kind is a `Settings`, made of where it is and of its fields, and the rules of its plans.
To create it is to set what is configured; to remove it is to unset that again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.provider.fields import changes, hidden, params, values
from stackyard.provider.kinds import Resource

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from stackyard.provider.fields import Field
    from stackyard.provider.kinds import Work
    from stackyard.provider.plan import PlanDraft
    from stackyard.provider.problems import Problem
    from stackyard.provider.schema import Rule
    from stackyard.provider.values import Object

__all__ = ["Settings"]

# One answer serves all reads of a refresh.
_AGE_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """An object of the API that one call reads and one call changes.

    Attributes:
        path: Its path; where it depends on the node, a function of its state.
        fields: The attributes and properties.
        identity: Returns the id of its state.
        own_state: Adds attributes that no property gives as they are.
        named: Parameters that every call has to name.
        query: Parameters of the read.
        removed: What is sent when the resource goes; by default, all of it that was set is unset. None where
            it stays as it is, because Proxmox cannot be without.
        finish: Puts a change into force.
    """

    path: str | Callable[[Object], str]
    fields: Sequence[Field]
    identity: Callable[[Object], str]
    own_state: Callable[[Object, Mapping[str, Any]], Object] = lambda known, found: {}
    named: Mapping[str, Any] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    removed: Mapping[str, Any] | None = field(default_factory=dict)
    finish: Callable[[Work, Object], Awaitable[None]] | None = None

    def resource(
        self,
        names: tuple[str, ...],
        *,
        identify: Callable[[str], Object],
        rules: Mapping[str, Rule],
        plan: Callable[[PlanDraft], None] | None = None,
        validate: Callable[[Object], Iterable[Problem]] | None = None,
    ) -> Resource:
        """Return the resource of these settings.

        Args:
            names: Its names, as bpg spells them.
            identify: Turns the id of an import into the attributes that a read needs.
            rules: What its plans do.
            plan: Adjusts a plan where the rules are not enough.
            validate: Checks a configuration as a whole.
        """
        return Resource(
            names=names,
            create=self.create,
            read=self.read,
            update=self.update,
            delete=self.delete,
            identify=identify,
            rules=rules,
            plan=plan,
            validate=validate,
        )

    async def create(self, work: Work, planned: Object) -> Object:
        """Set what is configured; what else is set stays."""
        sent = {**params(self.fields, planned), **hidden(self.fields, work.config), **self.named}
        await work.client.put(self.path_of(planned), sent)
        return await self._finish(work, planned)

    async def read(self, work: Work, state: Object) -> Object | None:
        """Return the settings as they are; the path of a node that is gone is an error, not an empty one."""
        found = await work.client.get(self.path_of(state), dict(self.query), max_age_s=_AGE_S)
        return {**state, "id": self.identity(state), **self.attributes(state, found or {})}

    def attributes(self, known: Object, found: Mapping[str, Any]) -> Object:
        """Return the attributes for an answer of Proxmox, with what it does where a property is not set.

        Args:
            known: What is known besides: the state, or the node.
            found: The answer.
        """
        return {**values(self.fields, found), **self.own_state(known, found)}

    async def update(self, work: Work, prior: Object, planned: Object) -> Object:
        """Change what differs, and unset what is not configured any more."""
        sent, unset = changes(self.fields, prior, planned)
        sent |= {**hidden(self.fields, work.config), **self.named}
        unset = [name for name in unset if name not in sent]
        await work.client.put(self.path_of(prior), {**sent, "delete": ",".join(unset) or None})
        return await self._finish(work, planned)

    async def delete(self, work: Work, state: Object) -> None:
        """Unset what was set."""
        if self.removed is None:
            return
        _, unset = changes(self.fields, state, {})
        if not unset and not self.removed:
            return
        sent = {**self.named, **self.removed, "delete": ",".join(unset) or None}
        await work.client.put(self.path_of(state), sent)
        if self.finish is not None:
            await self.finish(work, state)

    def path_of(self, state: Object) -> str:
        """Return its path."""
        return self.path if isinstance(self.path, str) else self.path(state)

    async def _finish(self, work: Work, planned: Object) -> Object:
        work.keep({**planned, "id": self.identity(planned)})
        if self.finish is not None:
            await self.finish(work, planned)
        state = await self.read(work, planned)
        return planned if state is None else state
