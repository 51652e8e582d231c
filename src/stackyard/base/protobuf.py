"""Classes of protobuf messages, made from one table when a module is loaded.

A message on the wire is numbers and values; the names are for us. What a sender adds beyond the table is left
unread. There is no generated code, and so no need for a certain version of protobuf.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["make_messages"]

_SCALARS = {
    "bytes": FieldDescriptorProto.TYPE_BYTES,
    "string": FieldDescriptorProto.TYPE_STRING,
    "int32": FieldDescriptorProto.TYPE_INT32,
    "int64": FieldDescriptorProto.TYPE_INT64,
    "uint32": FieldDescriptorProto.TYPE_UINT32,
    "uint64": FieldDescriptorProto.TYPE_UINT64,
    "bool": FieldDescriptorProto.TYPE_BOOL,
}


def make_messages(package: str, messages: Mapping[str, str], enums: Mapping[str, str]) -> Any:
    """Return an object with the outermost messages; the others are attributes of the one around them.

    Args:
        package: The name of the package, which is a part of the full names of messages.
        messages: The fields of each message: `number type name`, with commas between them. `*` stands before
            the type of a field that is repeated, `%` before the type of the values of one that is a map from
            strings, `|` before the type of one of which only one is set.
        enums: The names of the values of each enumeration, from 0 on; each is inside a message.
    """
    file = FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for name, fields in messages.items():
        message = _find_or_add(file, name)
        for field in filter(None, fields.split(", ")):
            _add_field(file, message, name, field, enums)
    for name, values in enums.items():
        outer, _, inner = name.rpartition(".")
        enum = _find_or_add(file, outer).enum_type.add(name=inner)
        for number, value in enumerate(values.split()):
            enum.value.add(name=value, number=number)
    # A pool of our own: another library may know the same names.
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    made = pool.FindFileByName(file.name)
    classes = {name: message_factory.GetMessageClass(one) for name, one in made.message_types_by_name.items()}
    return type("Messages", (), classes)


def _find_or_add(file: FileDescriptorProto, name: str) -> DescriptorProto:
    found: Any = file
    for part in name.split("."):
        inner = found.message_type if found is file else found.nested_type
        found = next((one for one in inner if one.name == part), None) or inner.add(name=part)
    message: DescriptorProto = found
    return message


def _add_field(
    file: FileDescriptorProto, message: DescriptorProto, of: str, text: str, enums: Mapping[str, str]
) -> None:
    number, kind, name = text.split()
    mark, kind = (kind[0], kind[1:]) if kind[0] in "*%|" else ("", kind)
    field = message.field.add(name=name, number=int(number), label=FieldDescriptorProto.LABEL_OPTIONAL)
    if mark in ("*", "%"):
        field.label = FieldDescriptorProto.LABEL_REPEATED
    if mark == "|":
        if not message.oneof_decl:
            message.oneof_decl.add(name="selector")
        field.oneof_index = 0
    if mark == "%":
        entry = message.nested_type.add(name=f"{name.title().replace('_', '')}Entry")
        entry.options.map_entry = True
        _add_field(file, entry, "", "1 string key", enums)
        _add_field(file, entry, "", f"2 {kind} value", enums)
        kind = f"{of}.{entry.name}"
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type = FieldDescriptorProto.TYPE_ENUM if kind in enums else FieldDescriptorProto.TYPE_MESSAGE
        field.type_name = f".{file.package}.{kind}"
