"""What a file in OpenTofu's JSON syntax says to the rules."""

from __future__ import annotations

from typing import Any

import orjson

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.policy.code import (
    CodeFacts,
    ModuleBlock,
    OutputBlock,
    RequiredProvider,
    ResourceBlock,
    VariableBlock,
)
from stackyard.policy.hcl_facts import ANY
from stackyard.sources.stacks.json_code import PlacedText, labelled_in, objects_of, parse_with_lines

__all__ = ["read_json"]

_REASON = "any:"


def read_json(data: bytes) -> CodeFacts:
    """Return what a file says."""
    try:
        text = data.decode("utf-8-sig")
        parse_json(text)
        root = parse_with_lines(text)
    except JsonError as err:
        return CodeFacts(problem=(err.lineno, f"it is not JSON: {err.msg}"))
    except UnicodeDecodeError:
        return CodeFacts(problem=(1, "it is not UTF-8 text"))
    found = CodeFacts()
    if not isinstance(root, dict | list):
        found.problem = (1, "it holds no object")
    for top in objects_of(root):
        for kind, body in top.items():
            _read_kind(kind, body, found)
    return found


def _read_kind(kind: PlacedText, body: Any, found: CodeFacts) -> None:
    if kind == "terraform":
        for one in objects_of(body):
            _read_terraform(one, found)
    elif kind == "locals":
        for one in objects_of(body):
            found.locals |= {str(name): _text(value) for name, value in one.items()}
    elif kind in ("resource", "data", "ephemeral"):
        for label, one in labelled_in(body):
            _read_resource(kind, label, one, found)
    elif kind in _BLOCKS:
        for label, one in labelled_in(body):
            _BLOCKS[kind](label, one, found)


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str) else orjson.dumps(value, default=str).decode()


def _constant(value: Any) -> str | None:
    return str(value) if isinstance(value, str) and "${" not in value else None


def _line(body: dict[PlacedText, Any], key: str, otherwise: int) -> int:
    return next((name.line for name in body if name == key), otherwise)


def _description(body: dict[PlacedText, Any]) -> str | None:
    said = body.get(PlacedText("description"))
    return str(said).strip() or None if isinstance(said, str) else None


def _read_variable(label: PlacedText, body: dict[PlacedText, Any], found: CodeFacts) -> None:
    kind = body.get(PlacedText("type"))
    said = body.get(PlacedText("//"))
    notes = [str(one) for one in (said if isinstance(said, list) else [said]) if isinstance(one, str)]
    reason = next((one[len(_REASON) :].strip() for one in notes if one.lower().startswith(_REASON)), "")
    has_any = isinstance(kind, str) and ANY.search(kind) is not None
    default = body.get(PlacedText("default"))
    found.variables[str(label)] = VariableBlock(
        label.line,
        _description(body),
        str(kind) if isinstance(kind, str) else None,
        _line(body, "type", label.line),
        reason if has_any else "",
        has_any,
        body.get(PlacedText("sensitive")) is True,
        _text(default) if "default" in body else None,
    )


def _read_output(label: PlacedText, body: dict[PlacedText, Any], found: CodeFacts) -> None:
    found.outputs[str(label)] = OutputBlock(
        label.line,
        _description(body),
        _text(body.get(PlacedText("value"), "")),
        body.get(PlacedText("sensitive")) is True,
    )


def _read_module(label: PlacedText, body: dict[PlacedText, Any], found: CodeFacts) -> None:
    found.modules.append(
        ModuleBlock(
            str(label),
            label.line,
            _constant(body.get(PlacedText("source"))),
            _line(body, "source", label.line),
            _constant(body.get(PlacedText("version"))),
            _line(body, "version", 0),
        )
    )


def _read_provider(label: PlacedText, body: dict[PlacedText, Any], found: CodeFacts) -> None:
    del body
    found.configured.append(label.line)
    found.used.setdefault(str(label), label.line)


def _read_resource(kind: str, label: PlacedText, names: dict[PlacedText, Any], found: CodeFacts) -> None:
    for name, bodies in names.items():
        if kind == "resource":
            found.resources.append(ResourceBlock(str(label), str(name), name.line))
        else:
            found.data += 1
        for body in objects_of(bodies):
            chosen = body.get(PlacedText("provider"))
            word = str(chosen).removeprefix("${") if isinstance(chosen, str) else label.partition("_")[0]
            found.used.setdefault(word.partition(".")[0].rstrip("}"), name.line)


def _read_terraform(body: dict[PlacedText, Any], found: CodeFacts) -> None:
    for key, value in body.items():
        if key in ("backend", "cloud"):
            found.backends.append(key.line)
        elif key == "required_providers":
            for one in objects_of(value):
                found.required |= {str(name): _required(name, said) for name, said in one.items()}


def _required(name: PlacedText, said: Any) -> RequiredProvider:
    if isinstance(said, str):
        return RequiredProvider(name.line, f"hashicorp/{name}", str(said), name.line)
    settings = said if isinstance(said, dict) else {}
    source = _constant(settings.get(PlacedText("source")))
    version = _constant(settings.get(PlacedText("version")))
    return RequiredProvider(
        name.line, source or f"hashicorp/{name}", version, _line(settings, "version", name.line)
    )


_BLOCKS = {
    "variable": _read_variable,
    "output": _read_output,
    "module": _read_module,
    "provider": _read_provider,
}
