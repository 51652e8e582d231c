"""What objects must be like: names, the values of built-in kinds, and the schemas of definitions."""

from __future__ import annotations

import base64
import binascii
import copy
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pvelab.kubernetes import problems
from pvelab.kubernetes.problems import Cause

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pvelab.kubernetes.kinds import ServedKind

__all__ = ["admit"]

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
}
_TYPE = "FieldValueTypeInvalid"
# A field that the schema does not have: what is applied with it is refused, and what is written loses it.
_UNTYPED = "FieldUnknown"
_WORDS = {dict: "object", list: "array", str: "string", int: "integer", bool: "boolean", float: "number"}
_RBAC_NAMES = "rbac.authorization.k8s.io"
_LABELS = ("labels", "annotations")


def admit(obj: dict[str, Any], kind: ServedKind, *, is_applied: bool = False) -> dict[str, Any]:
    """Return an object as it is stored: defaults set, and values converted.

    Args:
        obj: The object.
        kind: Its kind.
        is_applied: Whether it is applied on the server's side, which has errors of its own.

    Raises:
        KubeStatusError: Something of it is not valid; every cause is listed.
    """
    name = str(obj["metadata"].get("name", ""))
    causes = list(_check_metadata(obj["metadata"], name, kind))
    obj = copy.deepcopy(obj)
    if kind.is_custom:
        body = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")}
        schema = {**kind.schema, "properties": _without_metadata(kind.schema)}
        _set_defaults(body, schema)
        causes += _check_schema(body, schema, "")
        obj = {**obj, **body}
    elif kind.kind == "Secret":
        _convert_secret(obj, is_applied=is_applied)
    elif kind.kind == "Namespace":
        obj.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
        obj.setdefault("status", {}).setdefault("phase", "Active")
    elif kind.kind == "ConfigMap":
        causes += [
            Cause("FieldValueInvalid", "Invalid value: must be a string", f"data[{key}]")
            for key, value in (obj.get("data") or {}).items()
            if not isinstance(value, str)
        ]
    wrong = [row for row in causes if row.reason in (_UNTYPED, _TYPE)]
    if wrong and is_applied:
        raise problems.untyped(obj, "; ".join(f".{row.field}: {row.message}" for row in wrong))
    causes = [row for row in causes if row.reason != _UNTYPED]
    if causes:
        raise problems.invalid(kind.kind, name, causes)
    return obj


def _check_metadata(metadata: Mapping[str, Any], name: str, kind: ServedKind) -> Iterator[Cause]:
    is_valid = bool(name) if kind.group == _RBAC_NAMES else bool(_NAME.fullmatch(name)) and len(name) <= 253
    if not is_valid:
        said = (
            f'Invalid value: "{name}": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric'
        )
        yield Cause("FieldValueInvalid", f"{said} characters, '-' or '.'", "metadata.name")
    for part in _LABELS:
        for key, value in (metadata.get(part) or {}).items():
            if not isinstance(value, str):
                yield Cause("FieldValueInvalid", "Invalid value: must be a string", f"metadata.{part}.{key}")


def _convert_secret(obj: dict[str, Any], *, is_applied: bool) -> None:
    data = dict(obj.get("data") or {})
    for key, value in data.items():
        try:
            base64.b64decode(str(value), validate=True)
        except (binascii.Error, ValueError) as err:
            why = f"error decoding from json: illegal base64 data in {key}"
            raise (problems.untyped(obj, why) if is_applied else problems.bad_request(why)) from err
    for key, value in (obj.pop("stringData", None) or {}).items():
        data[key] = base64.b64encode(str(value).encode()).decode()
    if data:
        obj["data"] = data
    obj.setdefault("type", "Opaque")


def _without_metadata(schema: Mapping[str, Any]) -> dict[str, Any]:
    left_out = ("apiVersion", "kind", "metadata")
    return {key: value for key, value in (schema.get("properties") or {}).items() if key not in left_out}


def _set_defaults(value: Any, schema: Mapping[str, Any]) -> None:
    if isinstance(value, dict):
        for name, inner in (schema.get("properties") or {}).items():
            if name not in value and "default" in inner:
                value[name] = copy.deepcopy(inner["default"])
            if name in value:
                _set_defaults(value[name], inner)
    elif isinstance(value, list):
        for item in value:
            _set_defaults(item, schema.get("items") or {})


def _check_schema(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Yield what a value has that its schema does not allow."""
    wanted = schema.get("type")
    if value is None and (schema.get("nullable") or not path):
        return
    if schema.get("x-kubernetes-int-or-string") and isinstance(value, int | str):
        return
    if wanted and (
        not isinstance(value, _TYPES[wanted]) or (isinstance(value, bool) and wanted not in ("boolean",))
    ):
        word = "null" if value is None else _WORDS.get(type(value), "object")
        message = f'Invalid value: "{word}": {path} in body must be of type {wanted}: "{word}"'
        yield Cause(_TYPE, message, path)
        return
    allowed = schema.get("enum")
    if allowed is not None and value not in allowed:
        listed = ", ".join(f'"{item}"' for item in allowed)
        yield Cause(
            "FieldValueNotSupported", f'Unsupported value: "{value}": supported values: {listed}', path
        )
    if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
        message = f"Invalid value: \"{value}\": {path} in body should match '{schema['pattern']}'"
        yield Cause("FieldValueInvalid", message, path)
    if isinstance(value, dict):
        yield from _check_mapping(value, schema, path)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _check_schema(item, schema.get("items") or {}, f"{path}[{number}]")


def _check_mapping(value: dict[str, Any], schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    for name in schema.get("required") or ():
        if name not in value:
            yield Cause("FieldValueRequired", "Required value", f"{path}.{name}".lstrip("."))
    known = schema.get("properties") or {}
    more = schema.get("additionalProperties")
    for name, inner in list(value.items()):
        where = f"{path}.{name}".lstrip(".")
        if name in known:
            yield from _check_schema(inner, known[name], where)
        elif isinstance(more, Mapping):
            yield from _check_schema(inner, more, where)
        elif known and not more and not schema.get("x-kubernetes-preserve-unknown-fields"):
            yield Cause(_UNTYPED, "field not declared in schema", where)
