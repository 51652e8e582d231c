"""Objects that Proxmox keeps in a list: a table of fields, and the calls that are the same for all of them.

A resource of this kind is a `Collection`, made of where its list is and of its fields, and the rules of its
plans. `Collection.resource` puts them together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.provider.create_once import create_object, note_seen
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

__all__ = ["Collection"]

# One list serves all reads of a refresh.
_LIST_AGE_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """A list of objects in the API, to which one call each adds, changes and removes an object.

    Attributes:
        path: The path of the list; where it depends on the object, a function of its state.
        key: The name of an object's id in the API.
        attribute: The attribute that has the id which an object is made with.
        listed_as: The attribute that has the id in the list and in paths, where Proxmox gives another one.
        fields: The attributes and properties; where they depend on the object, a function of its state.
        own_state: Adds attributes that no property gives as they are.
        identity: Returns what names an object among all of its kind, as an import is given it.
        named: Parameters that every call has to name.
        made_with: Parameters that only the first call has to name.
        query: Parameters of the list.
        made_at_own_path: Whether an object is made by a call to its own path, and not to the list.
        each: Whether the list tells too little, so that every object is read by a call of its own.
        filtered: Whether the list leaves out what the caller may not see. An object that is not in it is
            asked for then: only Proxmox can say whether it is gone.
        unset_as_array: Whether `delete` is an array of names, which Proxmox does not split at commas.
        is_row: Tells whether a row of the list is an object, where the id does not say it.
        current: Returns a row as it is going to be; None when its object is about to go.
        finish: Puts a change into force.
        gone: What to warn of when an object that is to go is gone already; nothing where that is usual.
    """

    path: str | Callable[[Object], str]
    key: str
    attribute: str = "id"
    listed_as: str = ""
    fields: Sequence[Field] | Callable[[Object], Sequence[Field]]
    own_state: Callable[[Object, Mapping[str, Any]], Object] = lambda known, row: {}
    identity: Callable[[Object], str] | None = None
    named: Mapping[str, Any] = field(default_factory=dict)
    made_with: Mapping[str, Any] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    made_at_own_path: bool = False
    each: bool = False
    filtered: bool = False
    unset_as_array: bool = False
    is_row: Callable[[Object, Mapping[str, Any]], bool] | None = None
    current: Callable[[Mapping[str, Any]], Mapping[str, Any] | None] = lambda row: row
    finish: Callable[[Work, Object], Awaitable[None]] | None = None
    gone: str = ""

    def resource(
        self,
        names: tuple[str, ...],
        *,
        rules: Mapping[str, Rule],
        identify: Callable[[str], Object] | None = None,
        plan: Callable[[PlanDraft], None] | None = None,
        validate: Callable[[Object], Iterable[Problem]] | None = None,
    ) -> Resource:
        """Return the resource of these objects.

        Args:
            names: Its names, as bpg spells them.
            rules: What its plans do.
            identify: Turns the id of an import into attributes, where it is more than the id.
            plan: Adjusts a plan where the rules are not enough.
            validate: Checks a configuration as a whole.
        """
        return Resource(
            names=names,
            create=self.create,
            read=self.read,
            update=self.update,
            delete=self.delete,
            identify=identify or (lambda given: {"id": given, self.attribute: given}),
            rules=rules,
            plan=plan,
            validate=validate,
        )

    async def create(self, work: Work, planned: Object) -> Object:
        """Make an object, or take over the one that an interrupted run made."""
        fields = self._fields(planned)
        shown = [field for field in fields if not field.secret]
        named = {**self.named, **self.made_with}
        whole = {**params(fields, planned), **hidden(fields, work.config), **named}
        path = self.path_of(planned) if self.made_at_own_path else self._list(planned)
        was_there = await create_object(
            work,
            self._identity(planned),
            sent={**params(shown, planned), **named},
            make=lambda: work.client.post(path, {self.key: planned[self.attribute], **whole}),
            look=lambda: self.find(work, planned),
            glance=None if self.each else lambda: self._glance(work, planned),
        )
        state = await self._read_back(work, planned)
        if was_there:
            return await self.update(work, state, {**planned, "id": state["id"]})
        return await self._finish(work, state)

    async def read(self, work: Work, state: Object) -> Object | None:
        """Return an object as it is; None when it is gone."""
        await note_seen(work, self._identity(state))
        found = await self.find(work, state)
        return None if found is None else self._state(state, found)

    async def update(self, work: Work, prior: Object, planned: Object) -> Object:
        """Change an object in place."""
        fields = self._fields(planned)
        sent, unset = changes(fields, prior, planned)
        sent |= hidden(fields, work.config)
        unset = [name for name in unset if name not in sent]
        removed = unset if self.unset_as_array else ",".join(unset)
        await work.client.put(self.path_of(prior), {**sent, **self.named, "delete": removed or None})
        return await self._finish(work, await self._read_back(work, {**planned, "id": prior.get("id")}))

    async def delete(self, work: Work, state: Object) -> None:
        """Remove an object."""
        await note_seen(work, self._identity(state))
        try:
            await work.client.delete(self.path_of(state))
        except proxmox.RefusedError:
            # What went with something else is refused, sometimes in words that say nothing of it being gone.
            if await self.find(work, state) is not None:
                raise
            if self.gone:
                work.warn(self.gone, f"{state[self.attribute]} did not exist any more.")
            return
        if self.finish is not None:
            await self.finish(work, state)

    def path_of(self, state: Object) -> str:
        """Return the path of an object."""
        return f"{self._list(state)}/{proxmox.quote(state[self.listed_as or self.attribute])}"

    async def find(self, work: Work, state: Object) -> Mapping[str, Any] | None:
        """Find an object in its list, which one call for all of them reads; None when it is not there."""
        if self.each:
            return await self._ask(work, state)
        rows = await self._rows(work, state)
        if rows == [] and self.filtered:
            # An answer says that it is there and hidden from the list, or refuses to say anything.
            return await self._ask(work, state)
        return next((row for row in rows or () if row is not None), None)

    async def _glance(self, work: Work, state: Object) -> list[Any] | None:
        """Return whether one list, read for all that are about to be made, has an object."""
        return await self._rows(work, state, despite_writes=True) or None

    async def _rows(
        self, work: Work, state: Object, *, despite_writes: bool = False
    ) -> list[Mapping[str, Any] | None] | None:
        """Return the rows of an object, None for one whose object is about to go; None without a list."""
        try:
            listed = await work.client.get(
                self._list(state),
                dict(self.query),
                max_age_s=_LIST_AGE_S,
                despite_writes=despite_writes,
            )
        except proxmox.MissingError:
            # The object that has the list is gone.
            return None
        return [self.current(row) for row in listed if self._is_row(state, row)]

    async def _ask(self, work: Work, state: Object) -> Mapping[str, Any] | None:
        try:
            found: Mapping[str, Any] = await work.client.get(self.path_of(state), max_age_s=_LIST_AGE_S)
        except proxmox.MissingError:
            return None
        return self.current(found)

    def _list(self, state: Object) -> str:
        return self.path if isinstance(self.path, str) else self.path(state)

    def _fields(self, state: Mapping[str, Any]) -> Sequence[Field]:
        return self.fields(dict(state)) if callable(self.fields) else self.fields

    def _identity(self, state: Object) -> str:
        return str(state[self.attribute]) if self.identity is None else self.identity(state)

    def _is_row(self, state: Object, row: Mapping[str, Any]) -> bool:
        if self.is_row is not None:
            return self.is_row(state, row)
        return bool(row.get(self.key) == state[self.listed_as or self.attribute])

    async def _read_back(self, work: Work, state: Object) -> Object:
        return self._state(state, await self.find(work, state) or {})

    async def _finish(self, work: Work, state: Object) -> Object:
        work.keep(state)
        if self.finish is not None:
            await self.finish(work, state)
        return state

    def _state(self, known: Object, row: Mapping[str, Any]) -> Object:
        read = values(self._fields({**known, **row}), row)
        state = {**known, "id": self._identity(known), **read}
        return {**state, **self.own_state(known, row)}
