"""Reading a file in the JSON syntax of OpenTofu (`*.tf.json`, `*.tofu.json`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.documents.jsontext import JsonError, next_token, parse_json
from stackyard.base.documents.lines import LineIndex
from stackyard.sources.stacks.code_file import (
    UNKNOWN,
    BackendBlock,
    CodeFile,
    Expression,
    FileRead,
    ModuleCall,
    RemoteState,
    VariableBlock,
)
from stackyard.sources.stacks.hcl import parse_expression, parse_template

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "PlacedText",
    "labelled_in",
    "objects_of",
    "parse_json_code",
    "parse_json_values",
    "parse_with_lines",
]

_LONGEST_TEXT = 120
_RESOURCES = ("resource", "data", "ephemeral")


class PlacedText(str):
    """A text of a file, with its line."""

    __slots__ = ("line",)
    line: int


def parse_json_code(data: bytes) -> CodeFile:
    """Return what a file says."""
    try:
        text = data.decode("utf-8-sig")
        parse_json(text)
        root = parse_with_lines(text)
    except JsonError as err:
        return CodeFile(problem=(err.lineno, f"The file is not JSON: {err.msg}."))
    except UnicodeDecodeError:
        return CodeFile(problem=(1, "The file is not UTF-8 text."))
    if not isinstance(root, dict | list):
        return CodeFile(problem=(1, "The file holds no object."))
    found = CodeFile()
    for top in objects_of(root):
        for kind, body in top.items():
            _read_kind(kind, body, found)
    return found


def parse_json_values(data: bytes) -> dict[str, Expression] | None:
    """Return the values that a file of values (`*.tfvars.json`) sets, None where it cannot be read."""
    try:
        values = parse_json(data)
    except JsonError:
        return None
    # Texts of such a file are no templates.
    return {name: _plain(value) for name, value in values.items()} if isinstance(values, dict) else None


def parse_with_lines(text: str) -> Any:
    """Return the values of a text that is JSON, each string with its line."""
    lines = LineIndex(text)
    stack: list[Any] = []
    keys: list[PlacedText | None] = []
    at = 0
    result: Any = None
    while (found := next_token(text, at)) is not None:
        start, mark = found
        at = start + len(mark)
        if mark in ",:":
            continue
        value: Any
        if mark in "]}":
            stack.pop()
            keys.pop()
            continue
        if mark[0] == '"':
            value = PlacedText(parse_json(mark))
            value.line = lines.line_of(start)
        else:
            value = {} if mark == "{" else [] if mark == "[" else parse_json(mark)
        if not stack:
            result = value
        elif isinstance(stack[-1], list):
            stack[-1].append(value)
        elif keys[-1] is None:
            keys[-1] = value
            continue
        else:
            stack[-1][keys[-1]] = value
            keys[-1] = None
        if mark in "[{":
            stack.append(value)
            keys.append(None)
    return result


def objects_of(value: Any) -> Iterator[dict[PlacedText, Any]]:
    """Return the objects that a value stands for: itself, or each of a list."""
    if isinstance(value, dict):
        yield value
    elif isinstance(value, list):
        yield from (one for one in value if isinstance(one, dict))


def labelled_in(value: Any) -> Iterator[tuple[PlacedText, dict[PlacedText, Any]]]:
    """Return the label and the body of each block of a kind with one label."""
    for one in objects_of(value):
        for label, bodies in one.items():
            yield from ((label, body) for body in objects_of(bodies))


def _plain(value: Any) -> Expression:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return ["o", {str(key): _plain(inner) for key, inner in value.items()}]
    if isinstance(value, list):
        return ["l", *(_plain(inner) for inner in value)]
    return UNKNOWN if value is None else str(value)


def _expression(value: Any) -> Expression:
    """Return a value of the configuration, in which each text is a template."""
    if isinstance(value, str):
        return parse_template(value)[0]
    if isinstance(value, dict):
        return ["o", {str(key): _expression(inner) for key, inner in value.items()}]
    if isinstance(value, list):
        return ["l", *(_expression(inner) for inner in value)]
    return _plain(value)


def _settings(body: dict[PlacedText, Any]) -> dict[str, Expression]:
    return {str(key): _expression(value) for key, value in body.items() if key != "//"}


def _read_kind(kind: PlacedText, body: Any, found: CodeFile) -> None:
    if kind == "//":
        return
    labelled = list(labelled_in(body))
    if kind == "terraform":
        for one in objects_of(body):
            _read_terraform(one, found)
    elif kind == "locals":
        for one in objects_of(body):
            found.locals |= _settings(one)
    elif kind == "variable":
        found.variables |= {str(label): _variable(label, one) for label, one in labelled}
    elif kind == "module":
        found.modules += [_module(label, one) for label, one in labelled]
    elif kind in ("output", "provider"):
        (found.outputs if kind == "output" else found.implied).extend(str(label) for label, _ in labelled)
    elif kind in _RESOURCES:
        for label, one in labelled:
            _read_resource(label, one, found)
    if kind != "variable":
        found.reads.extend(_find_reads(body, with_texts=kind in (*_RESOURCES, "provider", "check")))


def _read_terraform(body: dict[PlacedText, Any], found: CodeFile) -> None:
    for key, value in body.items():
        if key == "backend":
            found.backends.extend(
                BackendBlock(str(label), _settings(one), label.line) for label, one in labelled_in(value)
            )
        elif key == "cloud":
            found.backends.extend(
                BackendBlock("cloud", _settings(one), key.line) for one in objects_of(value)
            )
        elif key == "required_providers":
            for one in objects_of(value):
                for name, said in one.items():
                    source = said.get("source") if isinstance(said, dict) else None
                    found.required[str(name)] = (
                        str(source) if isinstance(source, str) else f"hashicorp/{name}"
                    )


def _variable(label: PlacedText, body: dict[PlacedText, Any]) -> VariableBlock:
    kind = body.get(PlacedText("type"))
    return VariableBlock(
        str(kind) if isinstance(kind, str) else None,
        "default" in body,
        body.get(PlacedText("sensitive")) is True,
        _plain(body.get(PlacedText("default"))),
        label.line,
        parse_expression(kind) if isinstance(kind, str) and "object" in kind else None,
    )


def _module(label: PlacedText, body: dict[PlacedText, Any]) -> ModuleCall:
    settings = _settings(body)
    source, each = settings.pop("source", UNKNOWN), settings.pop("for_each", UNKNOWN)
    return ModuleCall(str(label), source, settings, label.line, each)


def _read_resource(kind: PlacedText, instances: dict[PlacedText, Any], found: CodeFile) -> None:
    for name, bodies in instances.items():
        for body in objects_of(bodies):
            chosen = body.get(PlacedText("provider"))
            word = str(chosen).removeprefix("${") if isinstance(chosen, str) else str(kind).partition("_")[0]
            found.implied.append(word.partition(".")[0])
            if kind == "terraform_remote_state":
                settings = _settings(body)
                config = settings.get("config", UNKNOWN)
                inner = config[1] if isinstance(config, list) and config[0] == "o" else {}
                backend = settings.get("backend", UNKNOWN)
                found.remote_states.append(RemoteState(str(name), backend, inner, name.line))


def _find_reads(top: Any, *, with_texts: bool) -> Iterator[FileRead]:
    pending: list[tuple[Any, dict[str, Expression]]] = [(top, {})]
    while pending:
        value, names = pending.pop()
        if isinstance(value, dict):
            if "for_each" in value:
                names = {**names, "each": ["each", _expression(value[PlacedText("for_each")])]}
            pending.extend((inner, names) for key, inner in value.items() if key != "//")
        elif isinstance(value, list):
            pending.extend((inner, names) for inner in value)
        elif isinstance(value, PlacedText) and "${" in value:
            whole, inside = parse_template(value)
            for read in inside.reads:
                yield read._replace(names={**names, **read.names}, line=value.line)
            if with_texts and isinstance(whole, list) and whole[0] == "t" and whole[1][:2] == ["r", "path"]:
                yield FileRead("", [whole], names, value.line, str(value)[:_LONGEST_TEXT])
