"""Output for programs: exactly one object, or lines that begin and end once, whatever goes wrong."""

from __future__ import annotations

import io
import json

import pytest

from stackyard.base.errors import InternalError, UsageError
from stackyard.cli.result import Result
from stackyard.cli.views.machine import EventsOutput, JsonOutput
from stackyard.cli.views.stream import SafeStream
from stackyard.cli.views.text_writer import TextWriter

ERROR = UsageError("No.")
NOT_UTF8 = b"a\xffb".decode(errors="surrogateescape")


class Outputs:
    """An output of each sort, and what they wrote."""

    def __init__(self, encoding: str = "utf-8") -> None:
        self._bytes = io.BytesIO()
        self._stderr = io.StringIO()
        stream = SafeStream(io.TextIOWrapper(self._bytes, encoding=encoding))
        self.json = JsonOutput(stream, TextWriter(self._stderr, colour=False))
        self.events = EventsOutput(stream)

    @property
    def stdout(self) -> bytes:
        return self._bytes.getvalue()

    @property
    def stderr(self) -> str:
        return self._stderr.getvalue()

    def types(self) -> list[str]:
        return [json.loads(line)["type"] for line in self.stdout.splitlines()]


def test_a_result_is_one_line() -> None:
    outputs = Outputs()
    outputs.json.succeed(Result(document={"a": [1, None, "\u20ac"]}))
    assert outputs.stdout == '{"a":[1,null,"\u20ac"]}\n'.encode()


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (NOT_UTF8, "a\ufffdb"),
        ({NOT_UTF8: (NOT_UTF8, "\ud800")}, {"a\ufffdb": ["a\ufffdb", "\ufffd"]}),
        (2**70, 2**70),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_what_json_cannot_hold_as_it_is_becomes_something_that_it_can(
    value: object, read: object, encoding: str
) -> None:
    outputs = Outputs(encoding)
    outputs.json.succeed(Result(document={"value": value}))
    assert json.loads(outputs.stdout) == {"value": read}


def test_a_stream_that_is_not_utf8_gets_escapes_and_loses_nothing() -> None:
    outputs = Outputs("latin-1")
    outputs.json.succeed(Result(document={"price": "5 \u20ac"}))
    assert outputs.stdout == b'{"price":"5 \\u20ac"}\n'


def test_an_error_after_the_object_goes_elsewhere() -> None:
    outputs = Outputs()
    outputs.json.publish(Result(document={"ready": True}))
    outputs.json.fail(ERROR)
    assert outputs.stdout == b'{"ready":true}\n'
    assert "[E-USAGE]" in outputs.stderr


def test_a_result_that_cannot_be_written_leaves_room_for_the_error() -> None:
    outputs = Outputs()
    with pytest.raises(TypeError):
        outputs.json.succeed(Result(document={"defect": object()}))
    outputs.json.fail(InternalError("TypeError"))
    assert json.loads(outputs.stdout)["error"]["code"] == "E-INTERNAL"


def test_a_published_result_is_not_written_again() -> None:
    outputs = Outputs()
    outputs.json.publish(Result(document={"ready": True}))
    outputs.json.succeed(Result(document={"stopped": True}))
    assert outputs.stdout == b'{"ready":true}\n'


def test_events_tell_that_a_server_is_ready_and_how_it_ended() -> None:
    outputs = Outputs()
    outputs.events.begin("stackyard lab up")
    outputs.events.publish(Result(document={"url": "x"}))
    outputs.events.succeed(Result(document={"stopped": True}))
    assert outputs.types() == ["run.started", "run.ready", "run.finished"]


def test_events_end_once_also_when_the_end_is_interrupted() -> None:
    outputs = Outputs()
    outputs.events.begin("stackyard")
    outputs.events.succeed(Result(document={}))
    outputs.events.fail(ERROR)
    assert outputs.types() == ["run.started", "run.finished"]


def test_a_last_event_that_cannot_be_written_is_replaced_by_the_error_with_its_number() -> None:
    outputs = Outputs()
    outputs.events.begin("stackyard")
    with pytest.raises(TypeError):
        outputs.events.succeed(Result(document={"defect": object()}))
    outputs.events.fail(InternalError("TypeError"))
    last = json.loads(outputs.stdout.splitlines()[-1])
    assert (last["seq"], last["exit_status"], last["result"]["error"]["code"]) == (2, 1, "E-INTERNAL")
