"""What a client says of itself when it locks a state, kept byte by byte as it came."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass

import orjson

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.documents.limits import SMALL
from stackyard.state.refusals import BodyRefusedError

__all__ = ["LockInfo", "make_lock_info", "parse_lock_info"]

_LONGEST_BYTES = 64 * 1024
_LONGEST_ID = 256
# Go's zero time: `tofu force-unlock` sends an ID and nothing else.
_ZERO_TIME = "0001-01-01T00:00:00Z"
_TEXTS = ("ID", "Operation", "Info", "Who", "Version", "Created", "Path")
# What Go's decoder takes; an answer with anything else would only be "failed to unmarshal body" for the user.
_RFC3339 = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})")


@dataclass(frozen=True, slots=True, kw_only=True)
class LockInfo:
    """The lock as the client describes it.

    Attributes:
        id: Its name, chosen by the client.
        operation: What it is for, as the engine spells it (`OperationTypeApply`).
        info: What else the client says.
        who: The user and machine.
        version: The engine.
        created: When the client made it, by the client's clock.
        path: What it locks; empty for this protocol.
        raw: The JSON as it came.
    """

    id: str
    operation: str = ""
    info: str = ""
    who: str = ""
    version: str = ""
    created: str = _ZERO_TIME
    path: str = ""
    raw: str = ""

    @property
    def is_bare(self) -> bool:
        """Whether it names an ID and nothing else, as force-unlock does."""
        return not (self.operation or self.who or self.version)

    def body(self) -> bytes:
        """Return the JSON to show to other clients, which Go's decoder always takes."""
        return self.raw.encode()


def parse_lock_info(body: bytes) -> LockInfo:
    """Read what a client sent.

    Raises:
        BodyRefusedError: It is no lock: not a JSON object, without an ID, or with fields of other types.
    """
    if len(body) > _LONGEST_BYTES:
        raise BodyRefusedError(f"The lock has {len(body)} bytes; at most {_LONGEST_BYTES} are taken.")
    try:
        document = parse_json(body, SMALL)
    except JsonError as err:
        raise BodyRefusedError("The lock is not JSON.") from err
    if not isinstance(document, dict):
        raise BodyRefusedError("The lock is not a JSON object.")
    wrong = [name for name in _TEXTS if not isinstance(document.get(name, ""), str)]
    if wrong:
        raise BodyRefusedError(f"These fields of the lock are not text: {', '.join(wrong)}.")
    identity = document.get("ID", "")
    if not 0 < len(identity) <= _LONGEST_ID or not identity.isprintable():
        raise BodyRefusedError("The lock has no usable ID.")
    created = document.get("Created") or _ZERO_TIME
    is_valid = _is_rfc3339(created) and document.get("Created") != ""
    texts = {name.lower(): document.get(name, "") for name in _TEXTS}
    found = LockInfo(**{**texts, "created": created if is_valid else _ZERO_TIME, "raw": body.decode()})
    return found if is_valid else make_lock_info(found)


def make_lock_info(info: LockInfo) -> LockInfo:
    """Return a lock with the JSON that belongs to its fields."""
    fields = {"ID": info.id, "Operation": info.operation, "Info": info.info, "Who": info.who}
    fields |= {"Version": info.version, "Created": info.created, "Path": info.path}
    raw = orjson.dumps(fields).decode()
    return LockInfo(
        **{name: getattr(info, name) for name in LockInfo.__dataclass_fields__ if name != "raw"}, raw=raw
    )


def _is_rfc3339(text: str) -> bool:
    if not _RFC3339.fullmatch(text):
        return False
    try:
        # The fraction may have nine digits, which Python does not read; the rest decides.
        datetime.datetime.fromisoformat(re.sub(r"\.\d+", "", text))
    except ValueError:
        return False
    return True
