"""Our values as messages of the plugin protocol: schemas, values, paths, diagnostics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from stackyard.provider import values
from stackyard.provider.messages import pb
from stackyard.provider.schema import Attribute, Block, Nested, Nesting, Schema

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stackyard.provider.problems import Path, Problem

__all__ = [
    "diagnostic",
    "diagnostics",
    "dynamic",
    "path_message",
    "read_dynamic",
    "read_schema_message",
    "schema_message",
]

_BLOCK_NESTING = {
    Nesting.SINGLE: pb.Schema.NestedBlock.SINGLE,
    Nesting.LIST: pb.Schema.NestedBlock.LIST,
    Nesting.SET: pb.Schema.NestedBlock.SET,
    Nesting.MAP: pb.Schema.NestedBlock.MAP,
}
_OBJECT_NESTING = {
    Nesting.SINGLE: pb.Schema.Object.SINGLE,
    Nesting.LIST: pb.Schema.Object.LIST,
    Nesting.SET: pb.Schema.Object.SET,
    Nesting.MAP: pb.Schema.Object.MAP,
}


def schema_message(schema: Schema) -> Any:
    """Return a schema as the engine reads it."""
    return pb.Schema(version=schema.version, block=_block(schema.block))


def read_schema_message(data: bytes) -> Any:
    """Return a schema from the bytes of its message."""
    return pb.Schema.FromString(data)


def _block(block: Block) -> Any:
    return pb.Schema.Block(
        attributes=[_attribute(name, attribute) for name, attribute in block.attributes.items()],
        block_types=[_encode_nested_block(name, nested) for name, nested in block.blocks.items()],
        deprecated=block.deprecated,
    )


def _attribute(name: str, attribute: Attribute) -> Any:
    nested = attribute.nested
    return pb.Schema.Attribute(
        name=name,
        type=b"" if nested is not None else orjson.dumps(attribute.type),
        nested_type=None if nested is None else _object(nested),
        required=attribute.required,
        optional=attribute.optional,
        computed=attribute.computed,
        sensitive=attribute.sensitive,
        deprecated=attribute.deprecated,
        write_only=attribute.write_only,
    )


def _object(nested: Nested) -> Any:
    attributes = [_attribute(name, inner) for name, inner in nested.block.attributes.items()]
    return pb.Schema.Object(attributes=attributes, nesting=_OBJECT_NESTING[nested.nesting])


def _encode_nested_block(name: str, nested: Nested) -> Any:
    return pb.Schema.NestedBlock(
        type_name=name,
        block=_block(nested.block),
        nesting=_BLOCK_NESTING[nested.nesting],
        min_items=nested.min_items,
        max_items=nested.max_items,
    )


def dynamic(value: Any) -> Any:
    """Return a value as a message."""
    return pb.DynamicValue(msgpack=values.encode(value))


def read_dynamic(message: Any) -> Any:
    """Return the value in a message; an empty message is null."""
    if message.msgpack:
        return values.decode(message.msgpack)
    return values.decode_json(message.json) if message.json else None


def path_message(path: Path) -> Any:
    """Return the place of an attribute."""
    steps = [
        pb.AttributePath.Step(attribute_name=step)
        if isinstance(step, str)
        else pb.AttributePath.Step(element_key_int=step)
        for step in path
    ]
    return pb.AttributePath(steps=steps)


def diagnostic(problem: Problem) -> Any:
    """Return a finding as the engine shows it."""
    severity = pb.Diagnostic.ERROR if problem.is_error else pb.Diagnostic.WARNING
    place = path_message(problem.path) if problem.path else None
    return pb.Diagnostic(severity=severity, summary=problem.summary, detail=problem.detail, attribute=place)


def diagnostics(problems: Iterable[Problem]) -> list[Any]:
    """Return findings as the engine shows them."""
    return [diagnostic(problem) for problem in problems]
