"""Reading a state as the engine writes it, plain or encrypted, and giving it another serial."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.documents.jsontext import JsonError, JsonLimitError, parse_json
from stackyard.base.documents.limits import DocumentLimits
from stackyard.state.refusals import BodyRefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Holding", "StateDocument", "read_document", "with_serial"]

_HIGHEST_SERIAL = 2**63 - 1
_FORMAT = 4
# What is asked of all states at once: who manages a guest, and who uses a file.
_INDEXED = "proxmox_"
# Ten thousand guests have two million values.
_LIMITS = DocumentLimits(size=512 * 2**20, values=5_000_000)
_SPACE = re.compile(r"[ \t\r\n]*")


# What a resource represents: its type, its node (empty where it has none), its id.
Holding = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateDocument:
    """What a state says of itself.

    Attributes:
        serial: Which version it is.
        lineage: Which state it is a version of.
        is_encrypted: Whether the engine encrypted it, so that the rest is not known.
        resources: How many resources it describes.
        instances: How many instances they have.
        outputs: How many outputs it has.
        engine_version: The engine that wrote it.
        holdings: What its resources of Proxmox VE represent: type, node where there is one, id.
    """

    serial: int
    lineage: str
    is_encrypted: bool = False
    resources: int = 0
    instances: int = 0
    outputs: int = 0
    engine_version: str = ""
    holdings: tuple[Holding, ...] = ()


def read_document(data: bytes) -> StateDocument:
    """Read a state.

    Raises:
        BodyRefusedError: It is none: empty, cut off, not JSON, or without what every state has.
    """
    if not data.strip():
        raise BodyRefusedError("The state is empty.")
    try:
        found = parse_json(data, _LIMITS)
    except JsonLimitError as err:
        raise BodyRefusedError(f"The state is not taken: it is {err.msg}.") from err
    except JsonError as err:
        raise BodyRefusedError("The state is not JSON, or cut off.") from err
    if not isinstance(found, dict):
        raise BodyRefusedError("The state is not a JSON object.")
    serial, lineage = found.get("serial"), found.get("lineage")
    if not isinstance(serial, int) or isinstance(serial, bool) or not 0 <= serial <= _HIGHEST_SERIAL:
        raise BodyRefusedError("The state has no serial.")
    if not isinstance(lineage, str) or not lineage:
        raise BodyRefusedError("The state has no lineage.")
    if "encrypted_data" in found:
        return StateDocument(serial=serial, lineage=lineage, is_encrypted=True)
    return _plain(found, serial, lineage)


def _plain(found: dict[str, Any], serial: int, lineage: str) -> StateDocument:
    resources, outputs = found.get("resources"), found.get("outputs") or {}
    if found.get("version") != _FORMAT:
        raise BodyRefusedError(
            f"The state is not of format {_FORMAT}, the one that OpenTofu and Terraform write."
        )
    if resources is None:
        resources = []
    if not isinstance(resources, list) or not isinstance(outputs, dict):
        raise BodyRefusedError("The resources or outputs of the state are not what a state has there.")
    rows = [row for row in resources if isinstance(row, dict)]
    instances = [row.get("instances") for row in rows]
    return StateDocument(
        serial=serial,
        lineage=lineage,
        resources=len(resources),
        instances=sum(len(rows) for rows in instances if isinstance(rows, list)),
        outputs=len(outputs),
        engine_version=str(found.get("terraform_version", "")),
        holdings=tuple(_holdings(rows)),
    )


def _holdings(rows: list[dict[str, Any]]) -> Iterator[Holding]:
    for row in rows:
        kind, instances = row.get("type"), row.get("instances")
        if row.get("mode") != "managed" or not isinstance(kind, str) or not isinstance(instances, list):
            continue
        if not kind.startswith(_INDEXED):
            continue
        for instance in instances:
            values = instance.get("attributes") if isinstance(instance, dict) else None
            if isinstance(values, dict) and (identity := _identity(values)) is not None:
                node = values.get("node_name")
                yield kind, node if isinstance(node, str) else "", identity


def _identity(values: dict[str, Any]) -> str | None:
    """Return the id of a resource; that of a guest may be a number, or have a name of its own."""
    for name in ("id", "vm_id"):
        value = values.get(name)
        if isinstance(value, str | int) and not isinstance(value, bool):
            return str(value)
    return None


def with_serial(data: bytes, serial: int, lineage: str) -> bytes:
    """Return a plain state with another serial and lineage, and every other byte as it was.

    Reading and writing the whole would lose what Python's numbers cannot hold.
    """
    text = data.decode()
    for name, value in (("serial", str(serial)), ("lineage", json.dumps(lineage))):
        start, end = _member(text, name)
        text = text[:start] + value + text[end:]
    return text.encode()


def _member(text: str, wanted: str) -> tuple[int, int]:
    """Return where the value of a member of the outermost object begins and ends."""
    decoder = json.JSONDecoder()
    place = _skip(text, 0) + 1
    while True:
        name, place = decoder.raw_decode(text, _skip(text, place))
        start = _skip(text, _skip(text, place) + 1)
        _, end = decoder.raw_decode(text, start)
        if name == wanted:
            return start, end
        # Behind the value stands a comma: `read_document` has seen both members.
        place = _skip(text, end) + 1


def _skip(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return place if found is None else found.end()
