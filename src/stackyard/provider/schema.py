"""The schema of a resource, data source or the provider itself, with the rules that plans follow."""

from __future__ import annotations

import dataclasses
import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["UNSET", "Attribute", "Block", "Nested", "Nesting", "Rule", "Schema", "read_schema"]


class _Unset(enum.Enum):
    UNSET = "unset"


UNSET = _Unset.UNSET


class Nesting(enum.StrEnum):
    """How often a nested block or object occurs."""

    SINGLE = "single"
    LIST = "list"
    SET = "set"
    MAP = "map"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What a plan does with an attribute, beyond its type.

    Attributes:
        default: The value when none is configured.
        replace: Whether another value means another object.
        in_place: Whether another value is a change of the same object, although it means another one for bpg.
        keep: Whether a computed value stays what it is through an update.
        same: Tells whether two values mean the same, so that the old one stays.
        check: Returns what is wrong with a value, or None.
        fraction: Whether a number may have a fraction, where the facts do not say so.
    """

    default: Any = UNSET
    replace: bool = False
    in_place: bool = False
    keep: bool = False
    same: Callable[[Any, Any], bool] | None = None
    check: Callable[[Any], str | None] | None = None
    fraction: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """An attribute: of a plain type (`type`, in the engine's spelling), or an object (`nested`).

    A number is `whole` unless the original takes fractions; the engine knows no such difference.
    """

    type: Any = None
    nested: Nested | None = None
    required: bool = False
    optional: bool = False
    computed: bool = False
    sensitive: bool = False
    deprecated: bool = False
    write_only: bool = False
    whole: bool = False
    rule: Rule = Rule()


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Attributes and the blocks inside."""

    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    blocks: Mapping[str, Nested] = field(default_factory=dict)
    deprecated: bool = False

    def empty(self) -> dict[str, Any]:
        """Return a value with nothing set."""
        values: dict[str, Any] = dict.fromkeys(self.attributes)
        for name, nested in self.blocks.items():
            values[name] = None if nested.nesting is Nesting.SINGLE else []
        return values

    def complete(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return values with every attribute and block in them, and nothing that does not exist."""
        whole = self.empty()
        whole.update((name, value) for name, value in values.items() if name in whole)
        for name, nested in self.blocks.items():
            whole[name] = nested.complete(whole[name])
        return whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Nested:
    """A block or object inside another."""

    block: Block
    nesting: Nesting
    min_items: int = 0
    max_items: int = 0
    rule: Rule = Rule()

    def complete(self, value: Any) -> Any:
        """Return a value with every attribute and block in it, and in all that it consists of."""
        if isinstance(value, list):
            return [self.block.complete(one) if isinstance(one, dict) else one for one in value]
        if isinstance(value, dict):
            if self.nesting is Nesting.MAP:
                return {key: self.block.complete(one) for key, one in value.items()}
            return self.block.complete(value)
        return [] if value is None and self.nesting is not Nesting.SINGLE else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """A schema.

    Attributes:
        version: The version of stored states.
        block: What it consists of.
        sdk: Whether the original is written with the older SDK, for which nothing and zero are the same.
    """

    version: int
    block: Block
    sdk: bool = False


def read_schema(facts: Mapping[str, Any], rules: Mapping[str, Rule]) -> Schema:
    """Return a schema from its facts.

    Args:
        facts: What the original declares.
        rules: More rules by path (`name`, `disk.size`), in place of what the facts have.
    """
    block = _read_block(facts["block"], rules, "")
    return Schema(version=int(facts["version"]), block=block, sdk=bool(facts.get("sdk")))


def _read_block(facts: Mapping[str, Any], rules: Mapping[str, Rule], prefix: str) -> Block:
    attributes = {
        name: _read_attribute(fact, rules, prefix + name)
        for name, fact in facts.get("attributes", {}).items()
    }
    blocks = {
        name: Nested(
            block=_read_block(fact["block"], rules, f"{prefix}{name}."),
            nesting=Nesting(fact["nesting"]),
            min_items=fact.get("min_items", 0),
            max_items=fact.get("max_items", 0),
            # The older SDK never uses the default of a whole block for a plan; readers of it may.
            rule=_rule({"replace": fact.get("replace")}, rules.get(prefix + name)),
        )
        for name, fact in facts.get("blocks", {}).items()
    }
    return Block(attributes=attributes, blocks=blocks, deprecated=bool(facts.get("deprecated")))


def _read_attribute(fact: Mapping[str, Any], rules: Mapping[str, Rule], path: str) -> Attribute:
    nested = fact.get("nested")
    rule = _rule(fact, rules.get(path))
    return Attribute(
        type=fact.get("type"),
        nested=None
        if nested is None
        else Nested(block=_read_block(nested, rules, f"{path}."), nesting=Nesting(nested["nesting"])),
        required=bool(fact.get("required")),
        optional=bool(fact.get("optional")),
        computed=bool(fact.get("computed")),
        sensitive=bool(fact.get("sensitive")),
        deprecated=bool(fact.get("deprecated")),
        write_only=bool(fact.get("write_only")),
        whole=fact.get("type") == "number" and not (fact.get("fraction") or rule.fraction),
        rule=rule,
    )


def _rule(fact: Mapping[str, Any], more: Rule | None) -> Rule:
    declared = Rule(default=fact.get("default", UNSET), replace=bool(fact.get("replace")))
    if more is None:
        return declared
    kept = {
        one.name: getattr(declared, one.name)
        for one in dataclasses.fields(Rule)
        if getattr(more, one.name) == one.default
    }
    merged = dataclasses.replace(more, **kept)
    return dataclasses.replace(merged, replace=merged.replace and not merged.in_place)
