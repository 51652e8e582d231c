"""`proxmox_harule`: where guests under high availability may run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.fields.properties import flag
from stackyard.provider.checks import one_of
from stackyard.provider.crud import Collection
from stackyard.provider.fields import COMMA_SET, FLAG, TEXT, Field
from stackyard.provider.kinds import both_names
from stackyard.provider.problems import Problem
from stackyard.provider.resources.ha.checks import COMMENT, HA_ID
from stackyard.provider.resources.ha.nodes import NODES, check_nodes
from stackyard.provider.schema import Rule
from stackyard.provider.values import UNKNOWN, Object, get_known

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["RESOURCE"]

_NODES, _RESOURCES = "node-affinity", "resource-affinity"


_RULE_FIELDS = (
    Field(attribute="type", form=TEXT, clears=False),
    Field(attribute="comment", form=TEXT),
    # Proxmox passes over a 0: a rule is in force again when the flag is deleted.
    Field(attribute="disable", form=FLAG, off=False),
    Field(attribute="resources", form=COMMA_SET, clears=False),
)
_RULE_OWN_FIELDS = {
    _NODES: (
        Field(attribute="nodes", form=NODES, clears=False),
        Field(attribute="strict", form=FLAG),
    ),
    _RESOURCES: (Field(attribute="affinity", form=TEXT, clears=False),),
}


def _rule_fields(state: Object) -> Sequence[Field]:
    return (*_RULE_FIELDS, *_RULE_OWN_FIELDS.get(str(state.get("type")), ()))


def _rule_state(known: Object, found: Mapping[str, Any]) -> Object:
    kind = str(found.get("type") or known.get("type"))
    of_others = {
        field.attribute: None for other, own in _RULE_OWN_FIELDS.items() if other != kind for field in own
    }
    # Proxmox keeps no flag that is off.
    flags = {name: flag(found.get(name)) for name in ("disable", "strict")}
    return {**of_others, **flags, "type": kind}


def _check_rule(config: Object) -> Iterator[Problem]:
    """Check that a rule has what its type needs, and nothing of the other's."""
    kind = get_known(config, "type")
    if kind is None:
        return
    needed, foreign = ("nodes", "affinity") if kind == _NODES else ("affinity", "nodes")
    if config.get(needed) is None:
        yield Problem(path=(needed,), detail=f"A rule of type {kind} needs `{needed}`.")
    if config.get(foreign) is not None:
        yield Problem(path=(foreign,), detail=f"A rule of type {kind} has no `{foreign}`.")
    if kind == _RESOURCES and get_known(config, "strict"):
        yield Problem(path=("strict",), detail=f"A rule of type {kind} cannot be `strict`.")


def _check_members(members: Any) -> str | None:
    wrong = [str(one) for one in members if one is not UNKNOWN and not _is_member(str(one))]
    if wrong or not members:
        return f"must name vm:ID or ct:ID, one or more{f', and not {wrong[0]}' if wrong else ''}"
    return None


def _is_member(text: str) -> bool:
    kind, _, number = text.partition(":")
    return kind in ("vm", "ct") and number.isdecimal()


RESOURCE = Collection(
    path="/cluster/ha/rules",
    key="rule",
    attribute="rule",
    fields=_rule_fields,
    own_state=_rule_state,
).resource(
    both_names("harule"),
    rules={
        "id": Rule(keep=True),
        "rule": Rule(replace=True, check=HA_ID),
        "type": Rule(replace=True, check=one_of(_NODES, _RESOURCES)),
        "comment": Rule(check=COMMENT),
        "disable": Rule(default=False),
        "strict": Rule(default=False),
        "resources": Rule(check=_check_members),
        "nodes": Rule(check=check_nodes),
        "affinity": Rule(check=one_of("positive", "negative")),
    },
    validate=_check_rule,
)
