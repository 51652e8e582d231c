"""What one file of code has that could do more than plan, each thing with a text to compare it by."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from stackyard.base.documents.hcltree import line_of, parse_tree
from stackyard.base.documents.jsontext import JsonError, parse_json_pairs
from stackyard.gitops.model import CodeRisk
from stackyard.policy.sources import SourceKind, classify
from stackyard.sources.stacks.hcl import list_attributes, list_blocks, parse_hcl
from stackyard.sources.stacks.hcl_expressions import text_of
from stackyard.sources.stacks.json_code import (
    PlacedText,
    labelled_in,
    objects_of,
    parse_json_code,
    parse_with_lines,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.base.documents.hcltree import Node
    from stackyard.sources.stacks.code_file import CodeFile

__all__ = ["CodeItem", "list_items", "list_places"]

# Data sources that run a program, and those that ask an address of the code's choice while it is planned.
_PROGRAMS = frozenset(("external", "local_command", "shell_script", "script"))
_REQUESTS = frozenset(("http", "terraform_remote_state", "tfe_outputs", "vault_generic_secret"))
# Data sources that read any file of the machine while it is planned.
_FILES = frozenset(("local_file", "local_sensitive_file", "archive_file", "local_directory"))
_DATA = ("data", "ephemeral")
_OF_ENGINE = frozenset(
    ("backend", "cloud", "encryption", "provider_meta", "experiments", "provider_installation")
)
# What is another word for each stack in the block of its backend.
_OWN = frozenset(("key", "path", "prefix", "workspace_key_prefix", "schema_name", "name"))
# States in our own store, which no code can turn elsewhere.
_OUR_STORE = ("backend http", "")
# A new line has a meaning: behind a comment, it makes a setting of what was none.
_SPACE = re.compile(r"[^\S\n]+")
_LINES = re.compile(r" ?\n\s*")
# A function by its full name, which is the same as the short one.
_FULL_NAME = re.compile(rb"\bcore::\w+")
# It makes a template of any value, and templates read files.
_OF_VALUES = re.compile(rb"^[^\n]*\btemplatestring\b[^\n]*", re.MULTILINE)
_MOST = 200
_UNREADABLE = "unreadable"
# Built into every engine.
_BUILT_IN = "terraform"


class CodeItem(NamedTuple):
    """Something that could do more than plan.

    Attributes:
        risk: What it could do.
        text: What it is compared by: the same text on the base branch is trusted.
        line: Where.
        detail: What is there, for a person.
    """

    risk: CodeRisk
    text: str
    line: int
    detail: str

    @property
    def is_unreadable(self) -> bool:
        """Whether nobody can say what is there, so that nothing is the same."""
        return self.text == _UNREADABLE


def list_items(name: str, data: bytes) -> list[CodeItem]:
    """Return what a file has that could do more than plan.

    Args:
        name: Its name, which tells its syntax.
        data: What it holds.
    """
    try:
        if name.endswith(".json"):
            # An engine reads both of two that have the same name.
            parse_json_pairs(data.decode("utf-8-sig"), object_pairs_hook=_require_once)
        found = list(_of_json(data) if name.endswith(".json") else _of_hcl(data))
    except (JsonError, ValueError, RecursionError):
        found = [_unreadable(1)]
    said = parse_json_code(data) if name.endswith(".json") else parse_hcl(data)
    if said.problem is not None:
        found.append(_unreadable(said.problem[0]))
    return [*found, *_list_sources(said), *_list_full_names(data), *_list_templates(data)]


def list_places(data: bytes) -> dict[str, int]:
    """Return where the backends of a file in the native syntax keep their state, with the lines."""
    found: dict[str, int] = {}
    for kind, _, node in list_blocks(parse_tree(data)):
        for name, _, block in list_blocks(node) if kind == "terraform" else ():
            if name == "backend":
                found |= {
                    f"{key}={_collapse(text_of(value))}": line_of(value)
                    for key, value in list_attributes(block)
                    if key in _OWN
                }
    return found


def _require_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    said = dict(pairs)
    if len(said) < len(pairs):
        raise ValueError("a name twice")
    return said


def _list_sources(said: CodeFile) -> Iterator[CodeItem]:
    for call in said.modules:
        if not isinstance(call.source, str):
            yield CodeItem(
                CodeRisk.SOURCE, f"module {call.source}", call.line, "a module of a computed source"
            )
        elif classify(call.source) is not SourceKind.LOCAL:
            title = f"module {call.source}"
            yield CodeItem(CodeRisk.SOURCE, title, call.line, title)
    for source in said.required.values():
        yield CodeItem(CodeRisk.SOURCE, f"provider {source}", 0, f"provider {source}")
    for local in {one for one in said.implied if one and one not in said.required and one != _BUILT_IN}:
        yield CodeItem(CodeRisk.SOURCE, f"provider hashicorp/{local}", 0, f"provider {local}")


def _list_full_names(data: bytes) -> Iterator[CodeItem]:
    for match in _FULL_NAME.finditer(data):
        line = data.count(b"\n", 0, match.start()) + 1
        text = match[0].decode()
        yield CodeItem(CodeRisk.PATH, text, line, f"{text}: write its short name, which can be checked")


def _list_templates(data: bytes) -> Iterator[CodeItem]:
    for match in _OF_VALUES.finditer(data):
        line = data.count(b"\n", 0, match.start()) + 1
        text = _collapse(match[0].decode("utf-8", "replace").strip())
        yield CodeItem(CodeRisk.PATH, f"templatestring {text}", line, "a template of a value: templatestring")


def _collapse(text: str) -> str:
    """Return a text in one spelling."""
    return _LINES.sub("\n", _SPACE.sub(" ", text))


def _unreadable(line: int) -> CodeItem:
    detail = "what is here cannot be read, and so it cannot be checked"
    return CodeItem(CodeRisk.ENGINE, _UNREADABLE, line, detail)


def _describe(risk: CodeRisk, line: int, title: str, text: str) -> CodeItem:
    return CodeItem(risk, f"{title} {text}", line, title)


# --- The native syntax


def _of_hcl(data: bytes) -> Iterator[CodeItem]:
    pending = [(kind, labels, node) for kind, labels, node in list_blocks(parse_tree(data))]
    while pending:
        kind, labels, node = pending.pop()
        inner = list(list_blocks(node))
        risk = _risk_of(kind, labels)
        if kind == "terraform":
            for name, names, block in inner:
                title, text = " ".join((name, *names[:1])), _text(block, is_backend=True)
                if name in _OF_ENGINE and (title, text) != _OUR_STORE:
                    yield _describe(CodeRisk.ENGINE, line_of(block), title, text)
            continue
        if risk is not None:
            yield _describe(risk, line_of(node), _title(kind, labels), _text(node))
        pending += inner


def _risk_of(kind: str, labels: list[str]) -> CodeRisk | None:
    label = labels[0] if labels else ""
    if kind == "provisioner" or (kind in _DATA and label in _PROGRAMS):
        return CodeRisk.PROGRAM
    if kind == "provider" or (kind in _DATA and label in _REQUESTS):
        return CodeRisk.PROVIDER
    if kind in _DATA and label in _FILES:
        return CodeRisk.PATH
    return None


def _title(kind: str, labels: list[str]) -> str:
    return " ".join((kind, *(f'"{label}"' for label in labels)))[:_MOST]


def _text(node: Node, *, is_backend: bool = False) -> str:
    """Return the text of a block in one spelling; that of a backend without what is each stack's own."""
    if not is_backend:
        return _collapse(text_of(node))
    parts = [f"{name}={text_of(value)}" for name, value in list_attributes(node) if name not in _OWN]
    parts += [_collapse(text_of(block)) for _, _, block in list_blocks(node)]
    return _collapse(" ".join(sorted(parts)))


# --- The JSON syntax


def _of_json(data: bytes) -> Iterator[CodeItem]:
    root = parse_with_lines(data.decode("utf-8-sig"))
    for top in objects_of(root):
        for kind, body in top.items():
            yield from _of_json_kind(kind, body)


def _of_json_kind(kind: PlacedText, body: Any) -> Iterator[CodeItem]:
    if kind == "terraform":
        for one in objects_of(body):
            for name, inner in one.items():
                if name in _OF_ENGINE:
                    yield _describe(CodeRisk.ENGINE, name.line, str(name), _json_text(inner))
        return
    for label, inner in labelled_in(body) if isinstance(body, dict | list) else ():
        risk = _risk_of(str(kind), [str(label)])
        if risk is not None:
            yield _describe(risk, label.line, _title(str(kind), [str(label)]), _json_text(inner))
    yield from _inner_json(body)


def _inner_json(body: Any) -> Iterator[CodeItem]:
    """Yield provisioners of resources, and data sources in checks, wherever they are."""
    pending = [body]
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            pending.extend(value)
        if not isinstance(value, dict):
            continue
        for key, inner in value.items():
            if key == "provisioner":
                yield _describe(CodeRisk.PROGRAM, key.line, "provisioner", _json_text(inner))
            elif key in _DATA and isinstance(inner, dict | list):
                yield from _of_json_kind(key, inner)
                continue
            pending.append(inner)


def _json_text(value: Any) -> str:
    return orjson.dumps(_plain(value), option=orjson.OPT_SORT_KEYS).decode()


def _plain(value: Any) -> Any:
    """Return a value with texts that know no line."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return str(value) if isinstance(value, str) else value
