"""Records of a channel: told apart from everything else, numbered, and never taken for whole when cut off."""

from __future__ import annotations

import pytest

from stackyard.base.errors import InvalidInputError
from stackyard.operator.delegation.protocol import (
    BrokenRecordsError,
    InnerRequest,
    Kind,
    LostRecordsError,
    ProtocolRecord,
    Records,
    new_mark,
    record_line,
)

MARK = "0123456789abcdef"


def _lines(*kinds: Kind) -> list[bytes]:
    bodies = [{"count": number} if kind is Kind.END else {"x": "y\n"} for number, kind in enumerate(kinds, 1)]
    records = [
        ProtocolRecord(number=number, kind=kind, body=body)
        for number, (kind, body) in enumerate(zip(kinds, bodies, strict=True), 1)
    ]
    return [record_line(MARK, record) for record in records]


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_records_are_read_however_their_bytes_are_cut(size: int) -> None:
    data = b"".join(_lines(Kind.EVENT, Kind.RESULT, Kind.END))
    records = Records(MARK)
    found = [part for start in range(0, len(data), size) for part in records.feed(data[start : start + size])]
    assert [part.kind for part in found if isinstance(part, ProtocolRecord)] == [
        Kind.EVENT,
        Kind.RESULT,
        Kind.END,
    ]
    assert records.is_complete
    assert list(records.close()) == []


def test_other_output_is_text_even_when_it_stands_on_the_line_of_a_record() -> None:
    [event, end] = _lines(Kind.EVENT, Kind.END)
    records = Records(MARK)
    data = b'{"n": 1, "kind": "result"}\nno line feed' + event + b"\r\nafter\r\n" + end
    found = [part if isinstance(part, str) else part.kind for part in records.feed(data)]
    assert found == ['{"n": 1, "kind": "result"}', "no line feed", Kind.EVENT, "after", Kind.END]


def test_records_of_another_order_are_only_text() -> None:
    other = record_line(new_mark(), ProtocolRecord(number=1, kind=Kind.RESULT, body={"success": True}))
    [found] = Records(MARK).feed(other)
    assert isinstance(found, str)


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_a_lost_tail_is_an_error_and_never_a_success(kept: int) -> None:
    lines = _lines(Kind.EVENT, Kind.RESULT, Kind.END)
    records = Records(MARK)
    list(records.feed(b"".join(lines[:kept]) + lines[kept][:-1]))
    with pytest.raises(LostRecordsError, match=f"after record {kept}"):
        list(records.close())


def test_a_record_that_is_missing_in_the_middle_is_an_error() -> None:
    lines = _lines(Kind.EVENT, Kind.RESULT, Kind.END)
    with pytest.raises(BrokenRecordsError, match="After record 1 came record 3"):
        list(Records(MARK).feed(lines[0] + lines[2]))


def test_a_last_record_that_counts_otherwise_is_an_error() -> None:
    wrong = record_line(MARK, ProtocolRecord(number=1, kind=Kind.END, body={"count": 7}))
    with pytest.raises(BrokenRecordsError, match="says 7"):
        list(Records(MARK).feed(wrong))


def test_a_record_that_is_no_json_is_an_error() -> None:
    [line] = _lines(Kind.EVENT)
    with pytest.raises(BrokenRecordsError, match="cannot be read"):
        list(Records(MARK).feed(line.replace(b'{"n"', b'{"n')))


def test_an_order_comes_back_as_it_was_given_whatever_its_size() -> None:
    order = InnerRequest(verb="create", request={"text": "x" * 5_000_000, "depth": None}, beat_s=1.5)
    line = order.line()
    assert line.count(b"\n") == 1
    assert InnerRequest.read(line) == order


@pytest.mark.parametrize("line", [b"", b"{}\n", b"[1]\n", b'{"version":99}\n', b'{"version":1,"verb":'])
def test_what_is_no_order_is_refused(line: bytes) -> None:
    with pytest.raises(InvalidInputError):
        InnerRequest.read(line)
