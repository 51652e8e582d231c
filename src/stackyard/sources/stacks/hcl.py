"""Reading a file in the native syntax of OpenTofu, with tree-sitter.

A file with mistakes is read as far as it goes, and its first mistake is kept: OpenTofu says what is valid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.documents.hcltree import line_of, parse_tree
from stackyard.sources.stacks.code_file import (
    UNKNOWN,
    BackendBlock,
    CodeFile,
    Expression,
    ModuleCall,
    RemoteState,
    VariableBlock,
)
from stackyard.sources.stacks.hcl_expressions import convert, find_reads, may_read, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stackyard.base.documents.hcltree import Node

__all__ = [
    "attributes_of",
    "blocks_of",
    "first_error",
    "head_of",
    "list_attributes",
    "list_blocks",
    "parse_expression",
    "parse_hcl",
    "parse_template",
    "parse_values",
]

_LONGEST_TYPE = 2000
# Blocks whose texts a provider or a provisioner takes; elsewhere, a function reads what they name.
_USERS_OF_TEXTS = frozenset(("resource", "data", "ephemeral", "provider", "check"))
_HEREDOC = "TEMPLATE_OF_STACKYARD"


def parse_hcl(data: bytes) -> CodeFile:
    """Return what a file says."""
    root = parse_tree(data)
    found = CodeFile()
    if root.has_error:
        line = line_of(first_error(root))
        found.problem = (line, "The file is not valid: OpenTofu cannot read this line or the one before it.")
    for block in blocks_of(root):
        _read_block(block, found)
    return found


def parse_values(data: bytes) -> dict[str, Expression] | None:
    """Return the values that a file of values (`*.tfvars`) sets, None where it cannot be read."""
    root = parse_tree(data)
    return None if root.has_error else {name: convert(value) for name, value in attributes_of(root)}


def parse_template(text: str) -> tuple[Expression, CodeFile]:
    """Return a text of JSON syntax, which is a template, and the paths in it."""
    if "${" not in text and "%{" not in text:
        return text, CodeFile()
    data = f"x = <<{_HEREDOC}\n{text}\n{_HEREDOC}\n".encode("utf-8", "replace")
    root = parse_tree(data)
    found = CodeFile()
    if root.has_error or _HEREDOC in text:
        return UNKNOWN, found
    found.reads = list(find_reads(root, with_texts=False))
    parts: list[Expression] = []
    at = data.index(b"\n") + 1
    for node in _walk(root):
        if node.type == "template_directive":
            return UNKNOWN, found
        if node.type == "template_interpolation" and node.start_byte >= at:
            inner = [one for one in node.named_children if one.type == "expression"]
            parts += [_text(data[at : node.start_byte]), convert(inner[0]) if len(inner) == 1 else UNKNOWN]
            at = node.end_byte
    parts.append(_text(data[at : data.rindex(_HEREDOC.encode()) - 1]))
    kept = [part for part in parts if part != ""]
    return (kept[0] if len(kept) == 1 else ["t", *kept]), found


def parse_expression(text: str) -> Expression:
    """Return an expression of its own, as JSON syntax has it in places that take no text."""
    root = parse_tree(f"x = {text}\n".encode("utf-8", "replace"))
    return next((convert(value) for _, value in attributes_of(root)), UNKNOWN)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace").replace("$${", "${").replace("%%{", "%{")


def _walk(top: Node) -> Iterator[Node]:
    """Return nodes in the order of the text."""
    pending = [top]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(node.named_children))


def first_error(top: Node) -> Node:
    """Return the first node of a tree that could not be read."""
    node = top
    while True:
        inner = next((one for one in node.children if one.has_error or one.is_missing), None)
        if inner is None or node.is_error:
            return node
        node = inner


def blocks_of(node: Node) -> Iterator[Node]:
    """Return the blocks directly below a node, those in what could not be read too."""
    for child in node.named_children:
        if child.type == "block":
            yield child
        elif child.type in ("body", "ERROR"):
            yield from (one for inner in child.named_children for one in _blocks_in(inner))


def _blocks_in(node: Node) -> Iterator[Node]:
    if node.type == "block":
        yield node
    elif node.type == "body":
        yield from (one for one in node.named_children if one.type == "block")


def attributes_of(node: Node) -> Iterator[tuple[str, Node]]:
    """Return names and values of the attributes of a file or block."""
    for child in node.named_children:
        if child.type == "body":
            for one in child.named_children:
                if one.type == "attribute" and len(one.named_children) >= 2:
                    yield text_of(one.named_children[0]), one.named_children[-1]


def list_attributes(node: Node) -> Iterator[tuple[str, Node]]:
    """Return the name and the value of each attribute of a file or block that has no mistake."""
    yield from ((name, value) for name, value in attributes_of(node) if not value.has_error)


def list_blocks(node: Node) -> Iterator[tuple[str, list[str], Node]]:
    """Return the kind, the labels and the node of each block directly below a node."""
    yield from ((*head_of(block), block) for block in blocks_of(node))


def head_of(block: Node) -> tuple[str, list[str]]:
    """Return the kind and the labels of a block."""
    kind, labels = "", []
    for child in block.named_children:
        if child.type == "identifier":
            if kind:
                labels.append(text_of(child))
            kind = kind or text_of(child)
        elif child.type == "string_lit":
            label = convert(child)
            labels.append(label if isinstance(label, str) else "")
    return kind, labels


def _read_block(block: Node, found: CodeFile) -> None:
    kind, labels = head_of(block)
    read = _READERS.get(kind)
    if read is not None:
        read(block, labels, found)
    # The conditions of a variable judge a value; they choose no file.
    if kind != "variable" and may_read(block.text or b""):
        found.reads.extend(find_reads(block, with_texts=kind in _USERS_OF_TEXTS))


def _settings(block: Node) -> dict[str, Expression]:
    """Return the attributes of a block."""
    return {name: convert(value) for name, value in attributes_of(block)}


def _read_terraform(block: Node, labels: list[str], found: CodeFile) -> None:
    del labels
    for inner in blocks_of(block):
        kind, names = head_of(inner)
        if kind in ("backend", "cloud"):
            settings = _settings(inner)
            for part in blocks_of(inner):
                settings |= {f"{head_of(part)[0]}.{name}": value for name, value in _settings(part).items()}
            line = line_of(inner)
            found.backends.append(BackendBlock(names[0] if names else kind, settings, line))
        elif kind == "required_providers":
            for name, value in _settings(inner).items():
                source = value[1].get("source") if isinstance(value, list) and value[0] == "o" else None
                found.required[name] = source if isinstance(source, str) else f"hashicorp/{name}"


def _read_variable(block: Node, labels: list[str], found: CodeFile) -> None:
    if not labels:
        return
    values = dict(attributes_of(block))
    kind = values.get("type")
    default = values.get("default")
    found.variables[labels[0]] = VariableBlock(
        None if kind is None else " ".join(text_of(kind).split())[:_LONGEST_TYPE],
        default is not None,
        text_of(values["sensitive"]).strip() == "true" if "sensitive" in values else False,
        UNKNOWN if default is None else convert(default),
        line_of(block),
        None if kind is None or b"object" not in (kind.text or b"") else convert(kind),
    )


def _read_output(block: Node, labels: list[str], found: CodeFile) -> None:
    del block
    found.outputs.extend(labels[:1])


def _read_locals(block: Node, labels: list[str], found: CodeFile) -> None:
    del labels
    found.locals |= _settings(block)


def _read_module(block: Node, labels: list[str], found: CodeFile) -> None:
    settings = _settings(block)
    source, each = settings.pop("source", UNKNOWN), settings.pop("for_each", UNKNOWN)
    name = labels[0] if labels else ""
    found.modules.append(ModuleCall(name, source, settings, line_of(block), each))


def _read_provider(block: Node, labels: list[str], found: CodeFile) -> None:
    del block
    found.implied.extend(labels[:1])


def _read_resource(block: Node, labels: list[str], found: CodeFile) -> None:
    if not labels:
        return
    chosen = next((convert(value) for name, value in attributes_of(block) if name == "provider"), None)
    is_chosen = isinstance(chosen, list) and chosen[0] == "r"
    found.implied.append(str(chosen[1]) if chosen and is_chosen else labels[0].partition("_")[0])
    if labels[0] == "terraform_remote_state":
        settings = _settings(block)
        config = settings.get("config", UNKNOWN)
        inner = config[1] if isinstance(config, list) and config[0] == "o" else {}
        name = labels[1] if len(labels) > 1 else ""
        line = line_of(block)
        found.remote_states.append(RemoteState(name, settings.get("backend", UNKNOWN), inner, line))


_READERS: dict[str, Callable[[Node, list[str], CodeFile], None]] = {
    "terraform": _read_terraform,
    "variable": _read_variable,
    "output": _read_output,
    "locals": _read_locals,
    "module": _read_module,
    "provider": _read_provider,
    "resource": _read_resource,
    "data": _read_resource,
    "ephemeral": _read_resource,
}
