"""The words of one channel between an operator and the one inside of a host: lines of JSON both ways.

Inwards: one line with the order, then a beat every few seconds, answers to requests for the store of the
outer run, and at most one word to stop. The end of the input is a word to stop too, and so is silence.

Outwards: records that begin with a mark no one else can know, because each order brings a new one; whatever
else turns up on that output is distinguished from them. They are numbered without gaps, and the last one says
how many there were: a result whose tail is lost is never taken for a whole one.
"""

from __future__ import annotations

import enum
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base.documents.jsontext import parse_json
from stackyard.base.errors import InvalidInputError, StackyardError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.operator.delegation.store_channel import OfferedStore

__all__ = [
    "BEAT",
    "STOP",
    "BrokenRecordsError",
    "InnerRequest",
    "Kind",
    "LostRecordsError",
    "ProtocolRecord",
    "Records",
    "RemoteRunError",
    "line_of",
    "new_mark",
    "record_line",
]

VERSION = 1
# Nothing that a person or a program writes as text has this character in it.
_START = b"\x1e"
_MARK_BYTES = 16
# An outcome of ten thousand nodes has less.
_LONGEST_BYTES = 64 * 2**20

BEAT = b'{"beat":1}\n'
STOP = b'{"stop":1}\n'


class LostRecordsError(UnreachableError):
    """The connection to an inner host ended before everything had been said."""

    code = "E-DELEGATION-LOST"
    summary = "The connection to an inner host was lost"
    default_remedy = "Run the command again: it continues with the existing guests."


class BrokenRecordsError(StackyardError):
    """What an inner host says does not fit together, or is of another version of stackyard."""

    code = "E-DELEGATION-BROKEN"
    summary = "An inner host does not speak as agreed"
    default_remedy = "Run the command again with -v and report what it prints."


class RemoteRunError(StackyardError):
    """The stackyard of an inner host could not begin, or ended with an error of its own, which is quoted."""

    code = "E-DELEGATION-RUN"
    summary = "The run on an inner host ended with an error"
    default_remedy = "Correct what the error names and run the command again."


class Kind(enum.StrEnum):
    """What a record is."""

    EVENT = "event"
    STORE = "store"
    BEAT = "beat"
    RESULT = "result"
    ERROR = "error"
    END = "end"


def new_mark() -> str:
    """Return a mark that no one can guess."""
    return secrets.token_hex(_MARK_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerRequest:
    """What the inner side is asked to do.

    Attributes:
        verb: What to do.
        request: What to do it with, as `Request.as_json` gives it.
        mark: What every record begins with.
        beat_s: How often each side says that it is there.
        silence_s: How long silence is borne before the other side is taken to be gone.
        store_key: The key to seal with in the store that the outer run offers; none where it offers none.
        offered: That store, on the outer side; it goes nowhere.
    """

    verb: str
    request: Mapping[str, Any]
    store_key: str | None = field(default=None, repr=False)
    offered: OfferedStore | None = field(default=None, repr=False, compare=False)
    mark: str = field(default_factory=new_mark)
    beat_s: float = 5.0
    silence_s: float = 60.0

    def line(self) -> bytes:
        """Return the first line of the channel."""
        document = {
            "version": VERSION,
            "verb": self.verb,
            "request": dict(self.request),
            "mark": self.mark,
            "beat_s": self.beat_s,
            "silence_s": self.silence_s,
            "store_key": self.store_key,
        }
        return line_of(document)

    @classmethod
    def read(cls, line: bytes) -> InnerRequest:
        """Return the order that a line holds.

        Raises:
            InvalidInputError: It is none, or of another version.
        """
        try:
            document = parse_json(line)
            version = document["version"]
            if version != VERSION:
                raise InvalidInputError(f"The order is of version {version}, and this is version {VERSION}.")
            return cls(
                verb=str(document["verb"]),
                request=dict(document["request"]),
                mark=str(document["mark"]),
                beat_s=float(document["beat_s"]),
                silence_s=float(document["silence_s"]),
                store_key=None if document.get("store_key") is None else str(document["store_key"]),
            )
        except (ValueError, KeyError, TypeError) as err:
            raise InvalidInputError(f"The order cannot be read: {err}.") from err


def line_of(document: Mapping[str, Any]) -> bytes:
    """Return a document as one line."""
    return orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS) + b"\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolRecord:
    """One record of the inner side."""

    number: int
    kind: Kind
    body: Mapping[str, Any]


def record_line(mark: str, record: ProtocolRecord) -> bytes:
    """Return a record as a line."""
    document = {"n": record.number, "kind": record.kind.value, "body": dict(record.body)}
    return b"%s%s %s" % (_START, mark.encode(), line_of(document))


class Records:
    """Takes the output of the inner side apart: records, and whatever else there is.

    Args:
        mark: The mark of the order.
    """

    def __init__(self, mark: str) -> None:
        self._mark = _START + mark.encode() + b" "
        self._unfinished = bytearray()
        self._last = 0
        self._is_over = False

    @property
    def is_complete(self) -> bool:
        """Whether the last record has come."""
        return self._is_over

    def feed(self, data: bytes) -> Iterator[ProtocolRecord | str]:
        """Take more of the output; return the records in it, and other lines as text.

        Raises:
            BrokenRecordsError: Records are missing or make no sense.
        """
        first, *others = data.split(b"\n")
        for other in (first, *others)[: len(others)]:
            line = bytes(self._unfinished + other)
            self._unfinished.clear()
            yield from self._line(line)
        # Added in place: a line that has no end would else be copied with each piece of it.
        self._unfinished += others[-1] if others else first
        if len(self._unfinished) > _LONGEST_BYTES:
            raise BrokenRecordsError(f"A line of more than {_LONGEST_BYTES} bytes came.")

    def close(self) -> Iterator[str]:
        """Take the end of the output; return what is left of other text.

        Raises:
            LostRecordsError: The last record has not come.
        """
        rest = bytes(self._unfinished)
        if rest and self._mark not in rest:
            yield rest.decode(errors="replace")
        if not self._is_over:
            raise LostRecordsError(f"The output ended after record {self._last}, without a last one.")

    def _line(self, line: bytes) -> Iterator[ProtocolRecord | str]:
        other, mark, text = line.partition(self._mark)
        if other.strip():
            yield other.decode(errors="replace").rstrip("\r")
        if mark:
            yield self._record(text)

    def _record(self, text: bytes) -> ProtocolRecord:
        try:
            document = parse_json(text)
            record = ProtocolRecord(number=document["n"], kind=Kind(document["kind"]), body=document["body"])
            if type(record.number) is not int or not isinstance(record.body, dict):
                raise TypeError("it has no number, or no body")
        except (ValueError, KeyError, TypeError) as err:
            raise BrokenRecordsError(f"The record after {self._last} cannot be read: {err}.") from err
        if record.number != self._last + 1 or self._is_over:
            raise BrokenRecordsError(f"After record {self._last} came record {record.number}.")
        self._last = record.number
        if record.kind is Kind.END:
            if record.body.get("count") != record.number:
                raise BrokenRecordsError(f"The last record says {record.body.get('count')} records.")
            self._is_over = True
        return record
