"""Verifying the parameters of a call against its declared schema, everything at once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.server.params.values import ErrorTexts, Schema, check_value
from pvelab.server.problems import bad_parameters

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Verifier", "split_index"]

# How many devices of a kind Proxmox has; the declared API only says `net[n]`.
_COUNTS: Mapping[str, int] = {
    "acmedomain": 6,
    "dev": 256,
    "hostpci": 16,
    "ide": 4,
    "ipconfig": 32,
    "link": 8,
    "mp": 256,
    "net": 32,
    "numa": 8,
    "parallel": 3,
    "sata": 6,
    "scsi": 31,
    "serial": 4,
    "unused": 256,
    "usb": 14,
    "virtio": 16,
    "virtiofs": 10,
}
_INDEXED = re.compile(r"([a-z]+)(0|[1-9]\d*)")
_UNDEFINED = "property is not defined in schema and the schema does not allow additional properties"
_MISSING = "property is missing and it is not optional"


def split_index(key: str) -> tuple[str, int] | None:
    """Return `("net", 0)` for `net0`, or None for a key without a number."""
    found = _INDEXED.fullmatch(key)
    return (found[1], int(found[2])) if found else None


class Verifier:
    """Checks and converts the parameters of one method.

    Args:
        declared: The parameters as the API declares them, `net[n]` standing for `net0` to `net31`.
    """

    def __init__(self, declared: Mapping[str, Schema]) -> None:
        self._plain = {key: schema for key, schema in declared.items() if not key.endswith("[n]")}
        self._indexed = {key[:-3]: schema for key, schema in declared.items() if key.endswith("[n]")}
        self._required = [key for key, schema in self._plain.items() if not schema.get("optional")]

    def schema(self, key: str) -> Schema | None:
        """Return the schema that governs a key, or None if there is no such parameter."""
        plain = self._plain.get(key)
        if plain is not None:
            return plain
        indexed = split_index(key)
        if indexed is None or indexed[0] not in self._indexed:
            return None
        name, number = indexed
        return self._indexed[name] if number < _COUNTS.get(name, 0) else None

    def verify(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters in their declared types.

        Raises:
            PveError: 400, with a text for each parameter that is wrong, missing or unknown.
        """
        errors: ErrorTexts = {}
        values: dict[str, Any] = {}
        for key, value in given.items():
            schema = self.schema(key)
            if schema is None:
                errors[key] = _UNDEFINED
                continue
            if value is None:
                continue
            values[key] = check_value(key, schema, _join_repeated(schema, value), errors)
            needed = schema.get("requires")
            if needed and given.get(needed) is None:
                errors[needed] = f"missing property required by '{key}'"
        for key in self._required:
            if given.get(key) is None:
                errors[key] = _MISSING
        if errors:
            raise bad_parameters(errors)
        return values


def _join_repeated(schema: Schema, value: Any) -> Any:
    """Join a repeated key where the schema needs one text list, as Proxmox does for old clients."""
    if isinstance(value, list) and schema.get("type") == "string":
        declared = schema.get("format")
        if isinstance(declared, str) and declared.endswith("-list"):
            return ",".join(str(entry) for entry in value)
    return value
