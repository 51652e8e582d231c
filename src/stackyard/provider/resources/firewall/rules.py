"""A rule of a firewall: as a configuration has it, as Proxmox lists it, and as a call sends it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.fields.properties import flag
from stackyard.provider.checks import one_of
from stackyard.provider.problems import Problem
from stackyard.provider.resources.firewall.names import kept_comment, same_comment
from stackyard.provider.resources.firewall.scopes import LOG_LEVEL, POLICY
from stackyard.provider.schema import Rule
from stackyard.provider.values import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stackyard.provider.plan import PlanDraft
    from stackyard.provider.values import Object

__all__ = ["RULE_RULES", "FirewallRule", "check_rules", "number_rules", "rules_of"]

# What tells one rule from another; the rest can change without making it another rule.
_CONDITIONS = ("dest", "dport", "iface", "macro", "proto", "source", "sport")
_TEXTS = (*_CONDITIONS, "comment", "log")
_OF_GROUP = ("comment", "iface")
_NOT_OF_GROUP = ("action", "type", *(name for name in _TEXTS if name not in _OF_GROUP))


@dataclass(frozen=True, slots=True, kw_only=True)
class FirewallRule:
    """A rule.

    Attributes:
        type: `in`, `out` or `forward`; `group` for one that stands for a security group.
        action: What happens, or the name of the security group.
        enabled: Whether it is in force.
        texts: Its other properties that are set, under the names that the API has for them.
        icmp_type: What only others can set: bpg has no attribute for it.
    """

    type: str
    action: str
    enabled: bool
    texts: Mapping[str, str]
    icmp_type: str = ""

    @classmethod
    def from_state(cls, block: Mapping[str, Any]) -> FirewallRule:
        """Return the rule of a block."""
        group = block.get("security_group")
        names = _OF_GROUP if group else _TEXTS
        return cls(
            type="group" if group else str(block.get("type") or ""),
            action=str(group or block.get("action") or ""),
            # A block that says nothing is a rule in force.
            enabled=block.get("enabled") is not False,
            texts={name: str(block[name]) for name in names if block.get(name)},
        )

    @classmethod
    def from_answer(cls, row: Mapping[str, Any]) -> FirewallRule:
        """Return the rule of a row of a list."""
        return cls(
            type=str(row.get("type")),
            action=str(row.get("action")),
            enabled=flag(row.get("enable")),
            texts={name: str(row[name]) for name in _TEXTS if row.get(name) not in (None, "")},
            icmp_type=str(row.get("icmp-type") or ""),
        )

    @property
    def conditions(self) -> tuple[str, ...]:
        """What tells it from other rules; Proxmox spells macros its own way."""
        texts = {**self.texts, "macro": self.texts.get("macro", "").lower()}
        return (self.type, self.action, *(texts.get(name, "") for name in _CONDITIONS))

    @property
    def key(self) -> tuple[Any, ...]:
        """All that a configuration can say of it, as Proxmox keeps it."""
        comment = kept_comment(self.texts.get("comment", ""))
        return (*self.conditions, self.enabled, comment, self.texts.get("log", ""))

    def state(self, position: int) -> Object:
        """Return its block."""
        texts = {name: self.texts.get(name, "") for name in _TEXTS}
        is_group = self.type == "group"
        return {
            **texts,
            "pos": position,
            "enabled": self.enabled,
            "security_group": self.action if is_group else "",
            "action": "" if is_group else self.action,
            "type": "" if is_group else self.type,
        }

    def params(self, *, enabled: bool | None = None) -> dict[str, Any]:
        """Return what a call says to create it."""
        is_enabled = self.enabled if enabled is None else enabled
        return {"type": self.type, "action": self.action, "enable": int(is_enabled), **self.texts}

    def changes(self, row: FirewallRule) -> dict[str, Any]:
        """Return what a call says to turn another rule into it."""
        gone = [name for name in _TEXTS if name in row.texts and name not in self.texts]
        # A type of ICMP that somebody added stays with the same rule, and with no other.
        gone += ["icmp-type"] if row.icmp_type and row.conditions != self.conditions else []
        return {**self.params(), "delete": ",".join(gone) or None}


def rules_of(state: Mapping[str, Any]) -> list[FirewallRule]:
    """Return the rules of a resource."""
    return [FirewallRule.from_state(block) for block in state.get("rule") or []]


def _same_macro(prior: Any, config: Any) -> bool:
    return str(prior or "").lower() == str(config or "").lower()


RULE_RULES: Mapping[str, Rule] = {
    **{f"rule.{name}": Rule(default="") for name in ("dest", "dport", "iface", "proto", "source", "sport")},
    "rule.security_group": Rule(default=""),
    "rule.action": Rule(check=POLICY),
    "rule.type": Rule(check=one_of("in", "out", "forward")),
    "rule.comment": Rule(default="", same=same_comment),
    "rule.enabled": Rule(default=True),
    "rule.log": Rule(default="", check=lambda value: LOG_LEVEL(value) if value else None),
    "rule.macro": Rule(default="", same=_same_macro),
}


def number_rules(draft: PlanDraft) -> None:
    """Plan the positions: a list has no other rules than those of its resource."""
    blocks = draft.values.get("rule")
    for position, block in enumerate(blocks if isinstance(blocks, list) else ()):
        if isinstance(block, dict):
            block["pos"] = position


def check_rules(config: Object, *, in_group: bool = False) -> Iterator[Problem]:
    """Check that each rule says what happens, or names a security group and nothing that it cannot have."""
    blocks = config.get("rule")
    for index, block in enumerate(blocks if isinstance(blocks, list) else ()):
        if isinstance(block, dict):
            path: Sequence[str | int] = ("rule", index)
            for name, detail in _check_rule(block, in_group=in_group):
                yield Problem(path=(*path, name), detail=detail)


def _check_rule(block: Mapping[str, Any], *, in_group: bool) -> Iterator[tuple[str, str]]:
    group = block.get("security_group")
    if group is UNKNOWN:
        return
    if not group:
        for name in ("action", "type"):
            if not block.get(name):
                yield name, f"A rule needs `{name}`, or else `security_group`."
        if block.get("type") == "forward" and block.get("action") == "REJECT":
            yield "action", "Proxmox cannot REJECT forwarded packets; use DROP."
        return
    if in_group:
        yield "security_group", "A security group cannot contain another one."
    surplus = [name for name in _NOT_OF_GROUP if block.get(name) not in (None, "", UNKNOWN)]
    for name in surplus:
        yield name, f"A rule that stands for a security group has no `{name}`: its rules have their own."
