"""What a change would lead to: defaults, computed values, and what has to be replaced.

The engine proposes the configuration merged with what was there. This fills in the rest as the original does,
in either of its two ways. For the older SDK nothing and zero are the same, and a computed value stays until
the apply says otherwise. For the framework, any change makes the computed values unknown that are not kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from stackyard.provider.legacy_values import align
from stackyard.provider.problems import Path, Problem
from stackyard.provider.schema import UNSET, Attribute, Block, Nested, Nesting, Schema
from stackyard.provider.values import UNKNOWN, Object, is_zero

__all__ = ["IMPORTED", "PlanDraft", "plan_change"]

# Remembered beside the state of a resource that was there before its state.
IMPORTED = "imported"


@dataclass(slots=True)
class PlanDraft:
    """A plan in the making.

    Attributes:
        config: What is written in the configuration.
        prior: What was there; None when it is to be created.
        values: What will be there.
        replace: The attributes whose change means another object.
        private: What the last read remembered.
        warnings: What the user should know.
    """

    config: Object
    prior: Object | None
    values: Object
    replace: list[Path] = field(default_factory=list)
    private: dict[str, Any] = field(default_factory=dict)
    warnings: list[Problem] = field(default_factory=list)

    @property
    def is_new(self) -> bool:
        """Whether the object is to be created."""
        return self.prior is None

    @property
    def is_imported(self) -> bool:
        """Whether the object was there before its state, so that no one knows what it was created from."""
        return bool(self.private.get(IMPORTED))

    def changed(self, *names: str) -> bool:
        """Return whether any of these attributes will be another."""
        prior = self.prior or {}
        return any(self.values.get(name) != prior.get(name) for name in names)

    def warn(self, summary: str, detail: str) -> None:
        """Tell the user something that does not stop the plan."""
        self.warnings.append(Problem(summary=summary, detail=detail, is_error=False))

    def is_configured(self, name: str) -> bool:
        """Return whether the configuration sets an attribute."""
        return self.config.get(name) is not None


def plan_change(schema: Schema, config: Object, prior: Object | None, proposed: Object) -> PlanDraft:
    """Return what a change leads to."""
    planner = _Planner(schema.sdk)
    values = planner.block(schema.block, config, prior, proposed)
    planned = PlanDraft(config, prior, values)
    if prior is not None:
        if not schema.sdk and values != prior:
            planner.forget(schema.block, config, values)
        if schema.sdk:
            planned.values = align(schema.block, prior, values)
        planned.replace = list(_list_replaced(schema, schema.block, prior, planned.values, ()))
    return planned


@dataclass(frozen=True, slots=True)
class _Planner:
    sdk: bool

    def block(self, block: Block, config: Object, prior: Object | None, proposed: Object) -> Object:
        before = prior or {}
        values: Object = {}
        for name, attribute in block.attributes.items():
            values[name] = self.attribute(
                attribute, config.get(name), before.get(name), proposed.get(name), is_new=prior is None
            )
        for name, nested in block.blocks.items():
            values[name] = self.plan_nested(nested, config.get(name), before.get(name), proposed.get(name))
        return values

    def attribute(self, attribute: Attribute, config: Any, prior: Any, proposed: Any, *, is_new: bool) -> Any:
        rule = attribute.rule
        if attribute.write_only:
            # It goes from the configuration to the apply, and into no plan or state.
            return None
        if config is not None:
            if attribute.nested is not None:
                return self.plan_nested(attribute.nested, config, prior, proposed)
            if self._means_prior(attribute, config, prior, is_new=is_new):
                return prior
            return config
        if rule.default is not UNSET:
            keeps = rule.same is not None and not is_new and rule.same(prior, rule.default)
            return prior if keeps else rule.default
        if attribute.computed:
            return UNKNOWN if is_new else prior
        if self.sdk and not is_new and is_zero(prior):
            return prior
        return None

    def _means_prior(self, attribute: Attribute, config: Any, prior: Any, *, is_new: bool) -> bool:
        if is_new or config is UNKNOWN:
            return False
        if self.sdk and prior is None and is_zero(config) and attribute.rule.default is UNSET:
            return True
        same = attribute.rule.same
        return same is not None and prior is not None and same(prior, config)

    def plan_nested(self, nested: Nested, config: Any, prior: Any, proposed: Any) -> Any:
        if config is UNKNOWN or proposed is UNKNOWN or proposed is None:
            return proposed
        if nested.nesting is Nesting.SINGLE:
            return self.block(nested.block, config or {}, prior, proposed)
        if nested.nesting is Nesting.MAP:
            return {
                key: self.block(nested.block, (config or {}).get(key) or {}, (prior or {}).get(key), one)
                for key, one in proposed.items()
            }
        if nested.nesting is Nesting.SET:
            # The elements of a set have no place to compare by; the engine has merged what belongs together.
            return [self.block(nested.block, one, None, one) for one in proposed]
        return [
            self.block(nested.block, _at(config, index) or {}, _at(prior, index), one)
            for index, one in enumerate(proposed)
        ]

    def forget(self, block: Block, config: Object, values: Object) -> None:
        """Make unknown what the apply will find out."""
        for name, attribute in block.attributes.items():
            rule = attribute.rule
            keeps = rule.keep or rule.default is not UNSET
            if attribute.computed and config.get(name) is None and not keeps:
                values[name] = UNKNOWN
            elif attribute.nested is not None:
                self._forget_nested(attribute.nested, config.get(name), values.get(name))
        for name, nested in block.blocks.items():
            self._forget_nested(nested, config.get(name), values.get(name))

    def _forget_nested(self, nested: Nested, config: Any, values: Any) -> None:
        pairs: list[tuple[Any, Any]] = []
        if isinstance(config, list) and isinstance(values, list):
            pairs = list(zip(config, values, strict=False))
        elif isinstance(config, dict) and isinstance(values, dict):
            is_map = nested.nesting is Nesting.MAP
            pairs = [(config.get(key), one) for key, one in values.items()] if is_map else [(config, values)]
        for written, one in pairs:
            if isinstance(written, dict) and isinstance(one, dict):
                self.forget(nested.block, written, one)


def _at(elements: Any, index: int) -> Any:
    if isinstance(elements, list) and index < len(elements):
        return elements[index]
    return None


def _list_replaced(schema: Schema, block: Block, prior: Object, values: Object, path: Path) -> list[Path]:
    found: list[Path] = []
    for name, attribute in block.attributes.items():
        before, after = prior.get(name), values.get(name)
        if attribute.rule.replace and before != after:
            found.append((*path, name))
        elif attribute.nested is not None and before != after:
            found += _list_nested(schema, attribute.nested, before, after, (*path, name))
    for name, nested in block.blocks.items():
        before, after = prior.get(name), values.get(name)
        if before == after:
            continue
        if nested.rule.replace and _is_replaced(schema, before, after):
            found.append((*path, name))
        else:
            found += _list_nested(schema, nested, before, after, (*path, name))
    return found


def _list_nested(schema: Schema, nested: Nested, before: Any, after: Any, path: Path) -> list[Path]:
    """Return what is replaced inside; the elements of sets and maps are compared as a whole."""
    if nested.nesting is Nesting.LIST and isinstance(before, list) and isinstance(after, list):
        return [
            place
            for index, (old, new) in enumerate(zip(before, after, strict=False))
            if isinstance(new, dict)
            for place in _list_replaced(schema, nested.block, old, new, (*path, index))
        ]
    if nested.nesting is Nesting.SINGLE and isinstance(before, dict) and isinstance(after, dict):
        return _list_replaced(schema, nested.block, before, after, path)
    return []


def _is_replaced(schema: Schema, before: Any, after: Any) -> bool:
    """Return whether a change of blocks means another object; for the older SDK only their number counts."""
    if schema.sdk and isinstance(before, list) and isinstance(after, list):
        return len(before) != len(after)
    return True
