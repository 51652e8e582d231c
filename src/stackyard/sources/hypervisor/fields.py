"""Every section of `hypervisors/` as a page: its key, its attributes, their types, and which are required."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.sources.hypervisor.models import list_attributes, resource_type
from stackyard.sources.hypervisor.sections import CLUSTER, NODE, Layout
from stackyard.sources.hypervisor.words import SECTION_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.sources.hypervisor.sections import Section

__all__ = ["render"]

_HEADING = """\
# Fields of hypervisors

Every section of `hypervisors/NAME.yaml`, and every attribute of its entries. Attributes have the names and
the meaning that they have in bpg/proxmox, whose resource is named below each section. An attribute in
**bold** has to be there. A secret is written as `{secret: NAME}`, with a name of secrets.yaml such as
`passwords.nas`. What a file leaves out stays as Proxmox has it.

[Describe a cluster and its nodes](../howto/hypervisors.md) shows how the files are used. Their JSON Schemas
are [hypervisor](schema/hypervisor.json) and [hypervisor-node](schema/hypervisor-node.json).
"""
_CLUSTER = """\
## Files of a cluster

A file without `node` is about a cluster. `api` names the node whose API is used; a site with one node needs
none.
"""
_NODE = """\
## Files of a node

A file with `node: NAME` is about that node, as Proxmox calls it.
"""
_LAYOUTS = {
    Layout.BY_NAME: "A mapping from names to entries",
    Layout.LIST: "A list of entries",
    Layout.ONE: "One entry",
}
_WORDS: Mapping[str, str] = {"string": "text", "number": "number", "bool": "true or false"}


def render() -> str:
    """Return the page."""
    parts = [_HEADING]
    for intro, sections in ((_CLUSTER, CLUSTER), (_NODE, NODE)):
        parts.append(intro)
        parts += [_section(section) for section in sections]
    return "\n".join(parts)


def _section(section: Section) -> str:
    types = [f"`{resource_type(kind)}`" for kind in section.kinds.values()]
    lines = [f"### `{section.name}`\n", f"{SECTION_WORDS[section.name].about} {_layout(section)}\n"]
    lines.append(f"Resource: {', '.join(types)}.\n")
    for word, kind in section.kinds.items():
        if word:
            lines.append(f"With `type: {word}`:\n")
        lines += ["| attribute | value |", "|---|---|"]
        lines += [f"| {name} | {value} |" for name, value in _rows(section, kind)]
        lines.append("")
    return "\n".join(lines)


def _layout(section: Section) -> str:
    text = _LAYOUTS[section.layout]
    if section.layout is Layout.LIST and len(section.identity) > 1:
        text += f", told apart by {', '.join(f'`{name}`' for name in section.identity)}"
    if section.short:
        text += f"; `{section.short}` alone may stand for an entry"
    return f"{text}."


def _rows(section: Section, kind: str) -> Iterator[tuple[str, str]]:
    for name, fact in list_attributes(section, kind).items():
        may_be_secret = ", or secrets" if name in section.secret_texts else ""
        yield _bold(name, fact), f"{_type(fact)}{may_be_secret}"
        for key, part in _parts(fact):
            yield _bold(f"{name}.{key}", part), _type(part)


def _bold(name: str, fact: Mapping[str, Any]) -> str:
    return f"**`{name}`**" if fact.get("required") else f"`{name}`"


def _parts(fact: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    nested = fact.get("nested") or fact.get("nested_block")
    block = nested.get("block", nested) if nested else {}
    for key, part in block.get("attributes", {}).items():
        if part.get("required") or part.get("optional"):
            yield key, part


def _type(fact: Mapping[str, Any]) -> str:
    if fact.get("sensitive"):
        return "secret"
    nested = fact.get("nested") or fact.get("nested_block")
    if nested:
        is_single = nested["nesting"] == "single" or nested.get("max_items") == 1
        return "mapping" if is_single else "list of mappings"
    return _plain(fact["type"])


def _plain(type_: Any) -> str:
    if isinstance(type_, str):
        return _WORDS[type_]
    form, inner = type_
    return f"list of {_plain(inner)}s" if form in ("list", "set") else f"mapping of names to {_plain(inner)}s"
