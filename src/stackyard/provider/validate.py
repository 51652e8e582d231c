"""Checks of a configuration by the rules of its schema: wrong values, and those that only bpg performs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from stackyard.provider.problems import Problem
from stackyard.provider.schema import Attribute, Block, Nested, Nesting
from stackyard.provider.values import UNKNOWN, Object

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.provider.problems import Path

__all__ = ["check_block"]


def check_block(block: Block, config: Object, path: Path = ()) -> Iterator[Problem]:
    """Give everything that is wrong with the attributes of a block and of those inside."""
    for name, attribute in block.attributes.items():
        value = config.get(name)
        if value is not None and value is not UNKNOWN:
            yield from _check_attribute(attribute, value, (*path, name))
    for name, nested in block.blocks.items():
        yield from _check_nested(nested, config.get(name), (*path, name))


def _check_nested(nested: Nested, value: Any, path: Path) -> Iterator[Problem]:
    if nested.nesting is Nesting.SINGLE and isinstance(value, dict):
        yield from check_block(nested.block, value, path)
        return
    # An element of a set or map has no number; a finding names the whole, and the attribute in it.
    elements = enumerate(
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    )
    for index, one in elements:
        if isinstance(one, dict):
            has_place = nested.nesting is Nesting.LIST
            for problem in check_block(nested.block, one, (*path, index)):
                yield problem if has_place else dataclasses.replace(problem, path=path)


def _check_attribute(attribute: Attribute, value: Any, path: Path) -> Iterator[Problem]:
    rule = attribute.rule
    if attribute.whole and not float(value).is_integer():
        yield Problem(path=path, detail=f"`{_format_path(path)}` must be a whole number.")
    elif rule.check is not None and (wrong := rule.check(value)) is not None:
        yield Problem(path=path, detail=f"`{_format_path(path)}` {wrong}.")
    if attribute.nested is not None:
        yield from _check_nested(attribute.nested, value, path)


def _format_path(path: Path) -> str:
    return ".".join(str(step) for step in path if isinstance(step, str))
