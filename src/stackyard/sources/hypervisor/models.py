"""What the files are validated with: models made of the sections and the schema of bpg/proxmox."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, StringConstraints, create_model

from stackyard import bpg_schema
from stackyard.desired.values import Line, Many, Value
from stackyard.sources.hypervisor.sections import CLUSTER, NODE, Layout, Section
from stackyard.sources.hypervisor.token_entries import TokenEntry, TokenId

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["SecretName", "cluster_model", "file_model", "list_attributes", "node_model", "resource_type"]

_LONGEST_PART = 200
_SCALARS: Mapping[str, Any] = {"string": str, "number": int | float, "bool": bool}
# What goes past the state, and the number that says when it is another.
_WRITE_ONLY = ("_wo", "_wo_version")


class SecretName(Value):
    """A secret: its name in secrets.yaml, never its value."""

    secret: Line


def file_model(data: Mapping[str, object]) -> type[Value]:
    """Return what a file is: of a node where it says `node`, of a cluster otherwise."""
    return node_model() if "node" in data else cluster_model()


@functools.cache
def cluster_model() -> type[Value]:
    """Return the model of the file of a cluster."""
    head = {"api": (Line | None, None), "tokens": (dict[TokenId, TokenEntry] | None, None)}
    return _file("Cluster", "A Proxmox VE cluster; its name is that of the file.", CLUSTER, head)


@functools.cache
def node_model() -> type[Value]:
    """Return the model of the file of a node."""
    return _file("HypervisorNode", "A Proxmox VE node of a cluster.", NODE, {"node": (Line, ...)})


def _file(name: str, doc: str, sections: tuple[Section, ...], head: Mapping[str, Any]) -> type[Value]:
    fields: dict[str, Any] = dict(head)
    inner: dict[str, dict[str, Any]] = {}
    for section in sections:
        field = (_optional(_entries(section)), None)
        if len(section.path) == 1:
            fields[section.path[0]] = field
        else:
            inner.setdefault(section.path[0], {})[section.path[1]] = field
    for group, parts in inner.items():
        fields[group] = (_optional(create_model(f"{name}{_title(group)}", __base__=Value, **parts)), None)
    return create_model(name, __base__=Value, __doc__=doc, **fields)


def _entries(section: Section) -> Any:
    """Return the type of a section."""
    entry: Any = _entry(section)
    if section.layout is Layout.BY_NAME:
        return dict[Line, entry]
    return entry if section.layout is Layout.ONE else Many[entry]


def _entry(section: Section) -> Any:
    models = [_model(section, word, kind) for word, kind in section.kinds.items()]
    if len(models) > 1:
        whole: Any = models[0]
        for model in models[1:]:
            whole = whole | model
        return Annotated[whole, Field(discriminator="type")]
    return _with_short(models[0], section)


def _with_short(model: type[Value], section: Section) -> Any:
    """Return a type that also takes the one attribute that says it all."""
    if not section.short:
        return model
    short = model.__pydantic_fields__[section.short].annotation
    wrap = _wrap(section.short)
    return Annotated[model, BeforeValidator(wrap, json_schema_input_type=model | short)]


def _wrap(attribute: str) -> Callable[[Any], Any]:
    return lambda value: value if isinstance(value, dict | Value) else {attribute: value}


def _model(section: Section, word: str, kind: str) -> type[Value]:
    fields: dict[str, Any] = {"type": (Literal[word], ...)} if word else {}
    fields |= {
        name: _field(section, name, attribute) for name, attribute in list_attributes(section, kind).items()
    }
    name = _title(f"{section.name}.{word or kind}")
    return create_model(name, __base__=Value, **fields)


def list_attributes(section: Section, kind: str) -> dict[str, dict[str, Any]]:
    """Return the attributes and blocks that an entry may set, by their names in the file."""
    block = bpg_schema.load_kind("resources", kind, resource_type(kind))["block"]
    hidden = {"id", section.key, section.node, *section.without}
    called = {attribute: name for name, attribute in section.names.items()}
    found: dict[str, dict[str, Any]] = {}
    for attribute, fact in block.get("attributes", {}).items():
        is_set = fact.get("required") or fact.get("optional")
        is_plain = not fact.get("deprecated") and not attribute.endswith(_WRITE_ONLY)
        if is_set and is_plain and attribute not in hidden:
            found[called.get(attribute, attribute)] = fact
    for attribute, fact in block.get("blocks", {}).items():
        if attribute not in hidden:
            found[called.get(attribute, attribute)] = {"nested_block": fact}
    return found


def _field(section: Section, name: str, fact: dict[str, Any]) -> tuple[Any, Any]:
    annotation = _type(f"{section.name}.{name}", fact)
    if name in section.identity and annotation is str:
        # It is a part of the name of the object, which is one line with a limit of its own.
        annotation = Annotated[Line, StringConstraints(max_length=_LONGEST_PART)]
    if name in section.secret_texts:
        annotation = dict[str, str | SecretName]
    if name == section.short and section.item_short:
        model: Any = get_args(get_args(annotation)[0])[0]
        wrap = BeforeValidator(_wrap(section.item_short), json_schema_input_type=model | str)
        annotation = Many[Annotated[model, wrap]]
    return (annotation, ...) if fact.get("required") else (_optional(annotation), None)


def _type(name: str, fact: dict[str, Any]) -> Any:
    """Return the type of an attribute or block."""
    if fact.get("sensitive"):
        return SecretName
    nested = fact.get("nested") or fact.get("nested_block")
    if nested is None:
        return _plain(fact["type"])
    parts = nested.get("block", nested)
    fields: dict[str, Any] = {
        key: (_type(f"{name}.{key}", one), ...)
        if one.get("required")
        else (_optional(_type(f"{name}.{key}", one)), None)
        for key, one in parts.get("attributes", {}).items()
        if one.get("required") or one.get("optional")
    }
    model: Any = create_model(_title(name), __base__=Value, **fields)
    is_single = nested["nesting"] == "single" or nested.get("max_items") == 1
    return model if is_single else Many[model]


def _plain(type_: Any) -> Any:
    if isinstance(type_, str):
        return _SCALARS[type_]
    form, inner = type_
    if form in ("list", "set"):
        return Many[_plain(inner)]  # type: ignore[misc]
    return dict[str, _plain(inner)]  # type: ignore[misc]


def _optional(annotation: Any) -> Any:
    return annotation | None


@functools.cache
def resource_type(kind: str) -> str:
    """Return the type of the resources of a kind; the shorter where there are two."""
    names = [name for name, named in _names().items() if named.kind == kind]
    return min(names, key=len)


@functools.cache
def _names() -> Mapping[str, bpg_schema.Named]:
    return bpg_schema.load_index().resources


def _title(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.replace("_", ".").split(".") if part)
