"""The archive in which OpenTofu saves a plan, read without starting the engine once more.

`tofu show` takes a third of the time of the plan itself. What it says is all in the archive, but the form of
that is the engine's own business: anything that is not exactly as it is known here is left to `tofu show`.
"""

from __future__ import annotations

import io
import re
import zipfile
from typing import TYPE_CHECKING, Any

from stackyard.engine.protobuf import read_fields
from stackyard.provider import values
from stackyard.provider.schema import Attribute, Block, Nesting, Schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackyard.engine.protobuf import Fields
    from stackyard.provider.schema import Nested

__all__ = ["read_archive"]

_ENTRY = "tfplan"
# The version of the format, and the versions of OpenTofu with which it was compared with `tofu show`.
_FORMAT = 3
_REFRESH_ONLY = 2
_KNOWN_ENGINES = re.compile(r"1\.1[0-2]\.\d+")
# The key of an instance: `[0]`, `["a"]`.
_KEY = r'(?:\[(?:\d+|"(?:[^"\\]|\\.)*")\])?'
_RESOURCE = re.compile(
    rf"(?P<module>(?:module\.[\w-]+{_KEY}\.)*)(?P<data>data\.)?(?P<type>\w+)\.(?P<name>[\w-]+){_KEY}"
)

# Fields of the messages: the plan, a change of a resource, the change itself, and what is inside of those.
_VERSION, _CHANGES, _OUTPUTS, _DRIFT, _ENGINE, _ERRORED, _MODE = 1, 3, 4, 18, 14, 20, 17
_ADDRESS, _OLD_ADDRESS, _DEPOSED, _CHANGE, _REPLACED_BY, _REASON, _PROVIDER = 13, 14, 7, 9, 11, 12, 8
_ACTION, _VALUES, _SECRETS_BEFORE, _SECRETS_AFTER, _IMPORTING = 1, 2, 3, 4, 5
_ATTRIBUTE, _ELEMENT = 1, 2
_OUTPUT_NAME, _OUTPUT_CHANGE = 1, 2

# The provider whose schemas are given, and the one that every engine has inside.
_PROXMOX = '/bpg/proxmox"]'
_BUILT_IN = 'provider["terraform.io/builtin/terraform"]'
# The type of an attribute that takes any value: such a value comes with its own type.
_ANY = "dynamic"
_BUILT_IN_SCHEMAS = {
    "terraform_data": Schema(
        version=0,
        block=Block(
            attributes={
                "id": Attribute(type="string", computed=True),
                "input": Attribute(type=_ANY, optional=True),
                "output": Attribute(type=_ANY, computed=True),
                "triggers_replace": Attribute(type=_ANY, optional=True),
            }
        ),
    )
}

# What happens, in the words of `tofu show`, and which of the two sides the values are.
_BOTH, _ONLY_AFTER, _ONLY_BEFORE = (0, 1), (None, 0), (0, None)
_ACTIONS: dict[int, tuple[list[str], tuple[int | None, int | None]]] = {
    0: (["no-op"], (0, 0)),
    1: (["create"], _ONLY_AFTER),
    2: (["read"], _BOTH),
    3: (["update"], _BOTH),
    5: (["delete"], _ONLY_BEFORE),
    6: (["delete", "create"], _BOTH),
    7: (["create", "delete"], _BOTH),
    8: (["forget"], _ONLY_BEFORE),
}
_REASONS = {
    0: None,
    1: "replace_because_tainted",
    2: "replace_by_request",
    3: "replace_because_cannot_update",
    4: "delete_because_no_resource_config",
    5: "delete_because_wrong_repetition",
    6: "delete_because_count_index",
    7: "delete_because_each_key",
    8: "delete_because_no_module",
    9: "replace_by_triggers",
    12: "delete_because_no_move_target",
}


class _UnknownFormError(Exception):
    """Something is not as it is known; the engine itself has to say what it means."""


def read_archive(data: bytes, schemas: Mapping[str, Schema]) -> Mapping[str, Any] | None:
    """Return what `tofu show` would say of the resources of a plan, None where only that can tell.

    Args:
        data: The archive, decrypted.
        schemas: What the resources of bpg/proxmox look like, by type.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            plan = read_fields(archive.read(_ENTRY))
        is_known = plan.number(_VERSION) == _FORMAT and _KNOWN_ENGINES.fullmatch(plan.text(_ENGINE))
        if not is_known or plan.number(_ERRORED):
            return None
        drift = _resources(plan.parts(_DRIFT), schemas)
        if plan.number(_MODE) != _REFRESH_ONLY:
            # What has only another address is among the changes.
            drift = [one for one in drift if one["change"]["actions"] != ["no-op"]]
        return {
            "resource_changes": _resources(plan.parts(_CHANGES), schemas),
            "resource_drift": drift,
            "output_changes": dict(map(_output, plan.parts(_OUTPUTS))),
        }
    except (_UnknownFormError, ValueError, KeyError, zipfile.BadZipFile):
        return None


def _resources(messages: Sequence[bytes], schemas: Mapping[str, Schema]) -> list[dict[str, Any]]:
    found = []
    for message in messages:
        fields = read_fields(message)
        named = _RESOURCE.fullmatch(fields.text(_ADDRESS))
        if named is None:
            raise _UnknownFormError
        if not named["data"]:
            found.append(_resource(fields, named, schemas))
    return found


def _resource(fields: Fields, named: re.Match[str], schemas: Mapping[str, Schema]) -> dict[str, Any]:
    address, old_address = fields.text(_ADDRESS), fields.text(_OLD_ADDRESS)
    change = fields.part(_CHANGE)
    if change is None or fields.text(_DEPOSED):
        raise _UnknownFormError
    block = _find_schema(fields.text(_PROVIDER), named["type"], schemas).block
    reason = fields.number(_REASON)
    document = {
        "address": address,
        "mode": "managed",
        "type": named["type"],
        "name": named["name"],
        "change": _change(read_fields(change), fields, block),
    }
    if _REASONS[reason] is not None:
        document["action_reason"] = _REASONS[reason]
    if old_address and old_address != address:
        document["previous_address"] = old_address
    return document


def _output(message: bytes) -> tuple[str, dict[str, Any]]:
    """Return the name of an output and what happens to it; its value is for the state to tell."""
    fields = read_fields(message)
    change = fields.part(_OUTPUT_CHANGE)
    if change is None:
        raise _UnknownFormError
    return fields.text(_OUTPUT_NAME), {"actions": _ACTIONS[read_fields(change).number(_ACTION)][0]}


def _find_schema(provider: str, kind: str, schemas: Mapping[str, Schema]) -> Schema:
    """Return what a resource looks like; other providers may have types of the same name."""
    if provider.endswith(_BUILT_IN):
        return _BUILT_IN_SCHEMAS[kind]
    # One that has an alias in the configuration has that behind its address.
    if _PROXMOX not in provider:
        raise _UnknownFormError
    return schemas[kind]


def _change(change: Fields, fields: Fields, block: Block) -> dict[str, Any]:
    actions, sides = _ACTIONS[change.number(_ACTION)]
    given = [_decode(part, block) for part in change.parts(_VALUES)]
    before, after = (None if side is None else given[side] for side in sides)
    document = {
        "actions": actions,
        "before": before,
        "after": _drop_unknown(after),
        "after_unknown": _unknown(after),
        "before_sensitive": _sensitive(before, block, change.parts(_SECRETS_BEFORE)),
        "after_sensitive": _sensitive(after, block, change.parts(_SECRETS_AFTER)),
    }
    if fields.parts(_REPLACED_BY):
        document["replace_paths"] = [_path(part) for part in fields.parts(_REPLACED_BY)]
    importing = change.part(_IMPORTING)
    if importing is not None:
        document["importing"] = {"id": read_fields(importing).text(1)}
    return document


def _decode(message: bytes, block: Block) -> Any:
    """Return the values of a resource, those of any type without the type that they come with."""
    value = values.decode(read_fields(message).part(1) or b"\xc0")
    free = [name for name, one in block.attributes.items() if one.type == _ANY]
    if not free or not isinstance(value, dict):
        return value
    return {**value, **{name: _without_type(value.get(name)) for name in free}}


def _without_type(value: Any) -> Any:
    # Nothing, and what is not known at all, have no type.
    if value is None or value is values.UNKNOWN:
        return value
    if not isinstance(value, list) or len(value) != 2:
        raise _UnknownFormError
    return value[1]


def _drop_unknown(value: Any) -> Any:
    """Return a value with nothing in place of what is not known yet."""
    if isinstance(value, dict):
        return {key: _drop_unknown(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_drop_unknown(part) for part in value]
    return None if value is values.UNKNOWN else value


def _unknown(value: Any) -> Any:
    """Return what is not known yet: true, false, or a tree of those."""
    if isinstance(value, dict):
        return {key: _unknown(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_unknown(part) for part in value]
    return value is values.UNKNOWN


def _path(message: bytes) -> list[str | int]:
    path: list[str | int] = []
    for part in read_fields(message).parts(1):
        step = read_fields(part)
        element = step.part(_ELEMENT)
        key = step.text(_ATTRIBUTE) if element is None else values.decode(read_fields(element).part(1) or b"")
        if not isinstance(key, str | int):
            # A part of a set, which only the engine can find.
            raise _UnknownFormError
        path.append(key)
    return path


def _sensitive(value: Any, block: Block, paths: Sequence[bytes]) -> Any:
    """Return which parts are secrets, by their schema and by where their values come from."""
    tree = _of_block(value, block)
    for path in paths:
        tree = _with(tree, _path(path))
    return tree


def _with(tree: Any, path: Sequence[str | int]) -> Any:
    if not path or tree is True:
        return True
    inner = tree.get(path[0]) if isinstance(tree, dict) else None
    return {**(tree if isinstance(tree, dict) else {}), path[0]: _with(inner, path[1:])}


def _of_block(value: Any, block: Block) -> dict[str | int, Any]:
    tree: dict[str | int, Any] = {}
    for name, attribute in block.attributes.items():
        inner = _of_attribute(_part(value, name), attribute)
        if inner:
            tree[name] = inner
    for name, nested in block.blocks.items():
        inside = _read_nested(_part(value, name), nested)
        if inside:
            tree[name] = inside
    return tree


def _of_attribute(value: Any, attribute: Attribute) -> Any:
    if attribute.sensitive:
        return True
    return _read_nested(value, attribute.nested) if attribute.nested is not None else None


def _read_nested(value: Any, nested: Nested) -> Any:
    if value is None or value is values.UNKNOWN:
        return None
    if nested.nesting is Nesting.SINGLE:
        return _of_block(value, nested.block)
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    found = {key: _of_block(part, nested.block) for key, part in parts}
    return {key: tree for key, tree in found.items() if tree}


def _part(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None
