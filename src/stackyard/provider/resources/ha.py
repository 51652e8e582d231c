"""High availability: what the manager of the cluster keeps running, and the rules of where it may run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard import proxmox
from stackyard.provider.checks import between, matches, one_of
from stackyard.provider.creating import create_object, note_seen
from stackyard.provider.fields import COMMA_SET, FLAG, NUMBER, TEXT, Field, Form, changes, params, values
from stackyard.provider.kinds import Resource
from stackyard.provider.problems import Problem
from stackyard.provider.schema import Rule
from stackyard.provider.values import UNKNOWN, Object, given

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from stackyard.provider.kinds import Work

__all__ = ["ALL"]

# One list serves all reads of a refresh.
_LIST_AGE_S = 0.5
_NODES, _RESOURCES = "node-affinity", "resource-affinity"
_HA_ID = matches(
    "[a-zA-Z][a-zA-Z0-9_.-]*[a-zA-Z0-9]",
    "begin with a letter, end with a letter or digit, and be of letters, digits and ._- in between",
)
_COMMENT = matches(r"\S(.*\S)?", "be one line that neither begins nor ends with a space")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Object:
    """A kind of object that the manager of the cluster has a list of.

    Attributes:
        collection: The path of the list.
        key: The name of its id in the API.
        attribute: The name of its id in the configuration.
        fields: The attributes and properties of one, by its state.
        own_state: Adds attributes that no property gives as they are.
        always: The properties that every call has to name.
    """

    collection: str
    key: str
    attribute: str
    fields: Callable[[Object], Sequence[Field]]
    own_state: Callable[[Object, Mapping[str, Any]], Object]
    always: tuple[str, ...] = ()

    async def create(self, work: Work, planned: Object) -> Object:
        ident = str(planned[self.attribute])
        sent = {self.key: ident, **params(self.fields(planned), planned), **self._named(planned)}
        was_there = await create_object(
            work,
            ident,
            sent=sent,
            make=lambda: work.client.post(self.collection, sent),
            look=lambda: self._find(work, ident),
        )
        state = await self._current(work, {**planned, "id": ident})
        work.keep(state)
        return await self.update(work, state, {**planned, "id": ident}) if was_there else state

    async def read(self, work: Work, state: Object) -> Object | None:
        ident = str(state["id"])
        await note_seen(work, ident)
        found = await self._find(work, ident)
        return None if found is None else self._state(state, found)

    async def update(self, work: Work, prior: Object, planned: Object) -> Object:
        sent, unset = changes(self.fields(planned), prior, planned)
        sent |= {**self._named(planned), "delete": ",".join(unset) or None}
        await work.client.put(self._path(prior), sent)
        return await self._current(work, {**planned, "id": prior["id"]})

    async def delete(self, work: Work, state: Object) -> None:
        await note_seen(work, str(state["id"]))
        try:
            await work.client.delete(self._path(state))
        except proxmox.RefusedError:
            # What goes with its guest is refused here, in words that say nothing of it being gone.
            if await self._find(work, str(state["id"])) is not None:
                raise

    def _named(self, state: Object) -> dict[str, Any]:
        return {name: state[name] for name in self.always}

    def _path(self, state: Object) -> str:
        return f"{self.collection}/{proxmox.quoted(state['id'])}"

    async def _current(self, work: Work, state: Object) -> Object:
        return self._state(state, await self._find(work, str(state["id"])) or {})

    async def _find(self, work: Work, ident: str) -> dict[str, Any] | None:
        listed = await work.client.get(self.collection, max_age_s=_LIST_AGE_S)
        return next((one for one in listed if one.get(self.key) == ident), None)

    def _state(self, known: Object, found: Mapping[str, Any]) -> Object:
        own = {self.attribute: known["id"], **self.own_state(known, found)}
        return {**known, **values(self.fields(known), found), **own}


def _resource_state(known: Object, found: Mapping[str, Any]) -> Object:
    kind = str(known["id"]).partition(":")[0]
    return {"type": found.get("type") or kind, "state": found.get("state") or known.get("state")}


_RESOURCE_FIELDS = (
    Field(attribute="state", form=TEXT, clears=False),
    Field(attribute="comment", form=TEXT),
    Field(attribute="failback", form=FLAG),
    Field(attribute="group", form=TEXT),
    Field(attribute="max_relocate", form=NUMBER),
    Field(attribute="max_restart", form=NUMBER),
)
_resource = _Object(
    collection="/cluster/ha/resources",
    key="sid",
    attribute="resource_id",
    fields=lambda _: _RESOURCE_FIELDS,
    own_state=_resource_state,
)


def _check_resource(config: Object) -> Iterator[Problem]:
    ident, kind = given(config, "resource_id"), given(config, "type")
    if ident is not None and kind is not None and ident.partition(":")[0] != kind:
        yield Problem(path=("type",), detail=f"`type` is {kind}, and `resource_id` is {ident}.")


_RESOURCE = Resource(
    names=("proxmox_haresource", "proxmox_virtual_environment_haresource"),
    create=_resource.create,
    read=_resource.read,
    update=_resource.update,
    delete=_resource.delete,
    identify=lambda given: {"id": given, "resource_id": given},
    rules={
        "id": Rule(keep=True),
        # bpg changes the old one, and then says itself that the result is not what was planned.
        "resource_id": Rule(replace=True, check=matches(r"(vm|ct):\d+", "be vm:ID or ct:ID")),
        "state": Rule(default="started", check=one_of("started", "stopped", "disabled", "ignored")),
        "type": Rule(keep=True, check=one_of("vm", "ct")),
        "comment": Rule(check=_COMMENT),
        "group": Rule(check=_HA_ID),
        "max_relocate": Rule(check=between(0, 10)),
        "max_restart": Rule(check=between(0, 10)),
    },
    validate=_check_resource,
)


def _write_nodes(nodes: Mapping[str, Any]) -> str:
    return ",".join(
        name if priority is None else f"{name}:{priority}" for name, priority in sorted(nodes.items())
    )


def _read_nodes(text: Any) -> dict[str, int | None]:
    parts = (part.strip().partition(":") for part in str(text).split(",") if part.strip())
    return {name: int(priority) if priority else None for name, _, priority in parts}


_RULE_FIELDS = (
    Field(attribute="comment", form=TEXT),
    Field(attribute="disable", form=FLAG),
    Field(attribute="resources", form=COMMA_SET, clears=False),
)
_RULE_OWN_FIELDS = {
    _NODES: (
        Field(attribute="nodes", form=Form(write=_write_nodes, read=_read_nodes), clears=False),
        Field(attribute="strict", form=FLAG),
    ),
    _RESOURCES: (Field(attribute="affinity", form=TEXT, clears=False),),
}


def _rule_fields(state: Object) -> Sequence[Field]:
    return (*_RULE_FIELDS, *_RULE_OWN_FIELDS.get(str(state.get("type")), ()))


def _rule_state(known: Object, found: Mapping[str, Any]) -> Object:
    kind = str(found.get("type") or known.get("type"))
    own = values(_rule_fields({"type": kind}), found)
    empty = {"nodes": None, "affinity": None}
    # Proxmox keeps no flag that is off.
    flags = {name: bool(own.get(name)) for name in ("disable", "strict")}
    return {**empty, **own, **flags, "type": kind}


_rule = _Object(
    collection="/cluster/ha/rules",
    key="rule",
    attribute="rule",
    fields=_rule_fields,
    own_state=_rule_state,
    always=("type",),
)


def _check_rule(config: Object) -> Iterator[Problem]:
    """Check that a rule has what its type needs, and nothing of the other's."""
    kind = given(config, "type")
    if kind is None:
        return
    needed, foreign = ("nodes", "affinity") if kind == _NODES else ("affinity", "nodes")
    if config.get(needed) is None:
        yield Problem(path=(needed,), detail=f"A rule of type {kind} needs `{needed}`.")
    if config.get(foreign) is not None:
        yield Problem(path=(foreign,), detail=f"A rule of type {kind} has no `{foreign}`.")
    if kind == _RESOURCES and given(config, "strict"):
        yield Problem(path=("strict",), detail=f"A rule of type {kind} cannot be `strict`.")


def _check_members(members: Any) -> str | None:
    wrong = [str(one) for one in members if one is not UNKNOWN and not _is_member(str(one))]
    if wrong or not members:
        return f"must name vm:ID or ct:ID, one or more{f', and not {wrong[0]}' if wrong else ''}"
    return None


def _is_member(text: str) -> bool:
    kind, _, number = text.partition(":")
    return kind in ("vm", "ct") and number.isdecimal()


def _check_nodes(nodes: Mapping[str, Any]) -> str | None:
    priorities = [float(one) for one in nodes.values() if one is not None and one is not UNKNOWN]
    if not nodes or any(not 0 <= one <= 1000 or not one.is_integer() for one in priorities):
        return "must name a node or more, with whole priorities from 0 to 1000"
    return None


_RULE = Resource(
    names=("proxmox_harule", "proxmox_virtual_environment_harule"),
    create=_rule.create,
    read=_rule.read,
    update=_rule.update,
    delete=_rule.delete,
    identify=lambda given: {"id": given, "rule": given},
    rules={
        "id": Rule(keep=True),
        "rule": Rule(replace=True, check=_HA_ID),
        "type": Rule(replace=True, check=one_of(_NODES, _RESOURCES)),
        "comment": Rule(check=_COMMENT),
        "disable": Rule(default=False),
        "strict": Rule(default=False),
        "resources": Rule(check=_check_members),
        "nodes": Rule(check=_check_nodes),
        "affinity": Rule(check=one_of("positive", "negative")),
    },
    validate=_check_rule,
)

ALL = (_RESOURCE, _RULE)
