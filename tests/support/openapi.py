"""GitHub's published OpenAPI: which requests are ones, and which documents are answers."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jsonschema_rs
import pytest
from tests.support.octokit import REST, WEBHOOKS, Package

__all__ = ["OpenApi", "Operation", "find_openapi", "find_webhooks"]

BASE = "urn:github"
JSON = "application/json"


@dataclass(frozen=True)
class Operation:
    """A request that the description knows."""

    method: str
    template: str
    document: Mapping[str, Any]


@dataclass
class OpenApi:
    """A description."""

    document: dict[str, Any]
    _registry: jsonschema_rs.Registry = field(init=False)
    _validators: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.document = _as_json_schema(self.document)
        self._registry = jsonschema_rs.Registry([(BASE, self.document)])

    def find(self, method: str, path: str) -> Operation:
        """Return the operation of a path; that with the fewest variables, where several fit."""
        fits = [
            template
            for template, operations in self.document["paths"].items()
            if method.lower() in operations and _pattern(template).fullmatch(path)
        ]
        assert fits, f"GitHub has no {method} {path}"
        template = min(fits, key=lambda one: one.count("{"))
        return Operation(method, template, self.document["paths"][template][method.lower()])

    def check_request(self, operation: Operation, query: Mapping[str, str], body: object) -> None:
        """Fail for a parameter or a property that is not described, or for one that is of another kind."""
        where = f"{operation.method} {operation.template}"
        parameters = [self.resolve(one) for one in operation.document.get("parameters", ())]
        known = {one["name"]: one["schema"] for one in parameters if one["in"] == "query"}
        assert query.keys() <= known.keys(), f"{where} has no parameter {query.keys() - known.keys()}"
        for name, value in query.items():
            kind = self.resolve(known[name]).get("type")
            self.check(known[name], int(value) if kind == "integer" else value, f"{where}: {name}")
        described = self.resolve(operation.document.get("requestBody", {}))
        if body is None:
            assert not described.get("required"), f"{where} needs a body"
            return
        schema = described["content"][JSON]["schema"]
        properties = self.resolve(schema).get("properties", {})
        assert isinstance(body, dict)
        assert body.keys() <= properties.keys(), f"{where} has no property {body.keys() - properties.keys()}"
        self.check(schema, body, where)

    def complete(self, operation: Operation, status: int, answer: Any) -> Any:
        """Return an answer with everything that the description requires, and check it."""
        responses = operation.document["responses"]
        where = f"{operation.method} {operation.template}: {status}"
        assert str(status) in responses, f"{where} is not described"
        content = self.resolve(responses[str(status)]).get("content")
        if content is None:
            assert answer is None or status >= 400, where
            return answer
        schema = next(iter(content.values()))["schema"]
        whole = self.fill(schema, answer)
        self.check(schema, whole, where)
        return whole

    def check(self, schema: Mapping[str, Any], instance: object, what: str) -> None:
        """Fail where a value is not one of a schema."""
        key = json.dumps(schema, sort_keys=True)
        if key not in self._validators:
            rebased = json.loads(key.replace('"$ref": "#/', f'"$ref": "{BASE}#/'))
            self._validators[key] = jsonschema_rs.Draft202012Validator(rebased, registry=self._registry)
        found = [
            f"{'/'.join(map(str, error.instance_path))}: {error.message[:300]}"
            for error in self._validators[key].iter_errors(instance)
        ]
        assert not found, f"{what}: {found[:5]}"

    def resolve(self, node: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what a reference leads to."""
        while "$ref" in node:
            found: Any = self.document
            for part in node["$ref"].removeprefix("#/").split("/"):
                found = found[part.replace("~1", "/").replace("~0", "~")]
            node = found
        return node

    def fill(self, schema: Mapping[str, Any], given: Any = None, depth: int = 0) -> Any:
        """Return a value with what a schema requires; what is given stays.

        Raises:
            AssertionError: A schema has no end.
        """
        assert depth < 40, "a schema without end"
        schema = self.resolve(schema)
        parts = schema.get("allOf") or ()
        choices = [self.resolve(one) for one in schema.get("anyOf") or schema.get("oneOf") or ()]
        if choices:
            parts = (*parts, self._choose(choices, given))
        if isinstance(given, list):
            items: Mapping[str, Any] = next(
                (self.resolve(one)["items"] for one in (schema, *parts) if "items" in self.resolve(one)), {}
            )
            return [self.fill(items, one, depth + 1) for one in given]
        if given is not None and not isinstance(given, dict):
            return given
        if given is None and (parts or not schema.get("properties")):
            return self._simplest(schema, parts, depth)
        found = dict(given or {})
        # What one part adds may need more by another one.
        for part in (*parts, *parts):
            found |= self.fill(part, found, depth + 1)
        properties = schema.get("properties", {})
        # Another part may have left it at null, which this one need not allow.
        empty = {name for name, value in found.items() if value is None and name in properties}
        for name in {*schema.get("required", ())} - found.keys() | empty:
            if name not in found or not self._may_be_null(properties[name]):
                found[name] = self._fill_required(properties.get(name, {}), depth)
        for name, value in found.items():
            if name in properties and isinstance(value, dict | list):
                found[name] = self.fill(properties[name], value, depth + 1)
        return found

    def _fill_required(self, schema: Mapping[str, Any], depth: int) -> Any:
        return None if self._may_be_null(schema) else self.fill(schema, None, depth + 1)

    def _may_be_null(self, schema: Mapping[str, Any]) -> bool:
        schema = self.resolve(schema)
        kinds = schema.get("type", ())
        if choices := (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
            return any(map(self._may_be_null, choices))
        return "null" in ([kinds] if isinstance(kinds, str) else kinds)

    def _choose(self, choices: list[Mapping[str, Any]], given: Any) -> Mapping[str, Any]:
        if isinstance(given, dict):
            objects = [one for one in choices if one.get("type") != "null"]
            return max(objects, key=lambda one: len(given.keys() & one.get("properties", {}).keys()))
        return choices[0]

    def _simplest(self, schema: Mapping[str, Any], parts: Any, depth: int) -> Any:
        """Return the simplest value of a schema without properties of its own."""
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][0]
        kinds = schema.get("type", ())
        kinds = [kinds] if isinstance(kinds, str) else list(kinds)
        if parts:
            values = [self.fill(part, None, depth + 1) for part in parts]
            whole = {key: value for one in values if isinstance(one, dict) for key, value in one.items()}
            return whole or values[0]
        simple: dict[str, Any] = {
            "null": None,
            "boolean": False,
            "integer": schema.get("minimum", 0),
            "number": 0,
            "array": [],
            "object": {},
        }
        for kind in kinds:
            if kind in simple:
                return simple[kind]
        text = {"uri": "https://example.org", "date-time": "2026-01-01T00:00:00Z", "email": "a@example.org"}
        return text.get(schema.get("format", ""), "x" * schema.get("minLength", 0)) if kinds else {}


@functools.cache
def _pattern(template: str) -> re.Pattern[str]:
    parts = re.split(r"(\{[^}]+\})", template)
    # The name of a branch may have slashes in it here; nothing else may.
    end = ".+" if template.endswith("/git/ref/{ref}") else "[^/]+"
    last = len(parts) - 2
    return re.compile(
        "".join(
            re.escape(part) if not part.startswith("{") else end if index == last else "[^/]+"
            for index, part in enumerate(parts)
        )
    )


def _as_json_schema(node: Any) -> Any:
    """Return a description of OpenAPI 3.0 in the words of JSON Schema, which has no `nullable`."""
    if isinstance(node, list):
        return [_as_json_schema(one) for one in node]
    if not isinstance(node, dict):
        return node
    found = {name: _as_json_schema(value) for name, value in node.items() if name != "example"}
    if found.pop("nullable", False) is True:
        if isinstance(found.get("type"), str):
            found["type"] = [found["type"], "null"]
            if "enum" in found and None not in found["enum"]:
                found["enum"] = [*found["enum"], None]
        else:
            found = {"anyOf": [found, {"type": "null"}]}
    return found


@functools.cache
def find_openapi() -> OpenApi | str:
    """Return the description of the REST interface, or why there is none."""
    return _load(REST)


@functools.cache
def find_webhooks() -> OpenApi | str:
    """Return the description of the webhooks, or why there is none."""
    return _load(WEBHOOKS)


def require(found: OpenApi | str) -> OpenApi:
    """Return a description, or skip the test by name."""
    if isinstance(found, str):
        pytest.skip(found)
    return found


def _load(package: Package) -> OpenApi | str:
    found = package.get()
    return found if isinstance(found, str) else OpenApi(json.loads(found.read_bytes()))
