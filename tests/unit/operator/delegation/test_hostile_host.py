"""An inner host that was taken over: what it says is data, bounded, and about its own guests alone."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support.ssh_hosts import real_shell

from stackyard.base import events
from stackyard.base.errors import StackyardError
from stackyard.clients import ssh
from stackyard.clients.ssh import shell as ssh_shell
from stackyard.clients.ssh.failures import SshError
from stackyard.clients.ssh.known_hosts import KnownHosts, forget_hosts
from stackyard.operator.delegation import bootstrap, protocol, remote
from stackyard.operator.delegation.inner_host import InnerHost, InnerHostError, Steps
from stackyard.operator.delegation.protocol import BrokenRecordsError, InnerRequest, Records, RemoteRunError
from stackyard.operator.delegation.relay import parse_event
from stackyard.operator.delegation.remote import DelegationLimits, run_order
from stackyard.operator.outcome import NodeOutcome

MARK = "0123456789abcdef"
STEP = {"type": "step.progressed", "step": "s", "done": 1, "total": 2, "unit": "bytes"}
NODE = {"name": "web", "status": "completed", "host": "inner"}


class Saying:
    """A channel whose other end says what it likes."""

    def __init__(self, output: Iterator[bytes], aside: Iterator[bytes] | None = None) -> None:
        self._output, self._aside = output, aside or iter(())

    async def write(self, data: bytes) -> None:
        del data

    async def read(self) -> bytes:
        await asyncio.sleep(0)
        return next(self._output, b"")

    async def read_aside(self) -> bytes:
        await asyncio.sleep(0)
        return next(self._aside, b"")

    async def close(self) -> None:
        return


def record(number: Any, kind: str, body: Any) -> bytes:
    return b"\x1e%s %s\n" % (MARK.encode(), orjson.dumps({"n": number, "kind": kind, "body": body}))


def heard(channel: Saying, emitted: list[events.Event] | None = None) -> Any:
    order = InnerRequest(verb="create", request={}, mark=MARK)
    emit = (lambda _: None) if emitted is None else emitted.append
    return asyncio.run(
        run_order(channel, order, host="inner", limits=DelegationLimits(whole_s=60), emit=emit)
    )


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "_LONGEST_BYTES", 2**20)
    with pytest.raises(BrokenRecordsError, match="A line of more than"):
        heard(Saying(itertools.repeat(b"x" * 65536)))


def test_pieces_of_a_long_line_are_not_copied_with_each_piece() -> None:
    records = Records(MARK)
    kept = records._unfinished
    for _ in range(100):
        assert list(records.feed(b"x" * 65536)) == []
    assert records._unfinished is kept


def test_other_output_without_end_is_cut() -> None:
    aside = iter([b"x" * 65536] * 200)
    ended = (b"noise\n" for _ in range(400))
    emitted: list[events.Event] = []
    with pytest.raises(StackyardError) as caught:
        heard(Saying(ended, aside), emitted)
    longest = max(len(one.text) for one in emitted if isinstance(one, events.LogLine))
    assert longest <= 2 * remote._LONGEST_LINE_BYTES
    assert len(caught.value.detail) < 10_000


@pytest.mark.parametrize(
    ("number", "kind", "body"),
    [
        (1, "result", []),
        (1, "end", "x"),
        (1, "error", None),
        (True, "event", {}),
        ("1", "event", {}),
        (1.0, "event", {}),
        (2, "event", {}),
        (1, "order", {}),
    ],
)
def test_records_that_are_none_are_refused(number: Any, kind: str, body: Any) -> None:
    with pytest.raises(BrokenRecordsError):
        heard(Saying(iter([record(number, kind, body)])))


@pytest.mark.parametrize(
    "result", [{}, {"verb": "create"}, {"verb": "create", "nodes": 5}, {"verb": 1, "nodes": [{"name": []}]}]
)
def test_a_result_that_is_none_is_refused(result: Any) -> None:
    with pytest.raises(BrokenRecordsError, match="cannot be read"):
        heard(Saying(iter([record(1, "result", result), record(2, "end", {"count": 2})])))


@pytest.mark.parametrize("diagnostics", [None, 5, "x", [5, None, "x"], [{"summary": 5}]])
def test_an_error_is_quoted_whatever_its_parts_are(diagnostics: Any) -> None:
    body = {"summary": "s", "code": "E-X", "detail": "d", "diagnostics": diagnostics, "remedy": 5}
    with pytest.raises(RemoteRunError, match="On inner: s"):
        heard(Saying(iter([record(1, "error", body), record(2, "end", {"count": 2})])))


@pytest.mark.parametrize(
    "change",
    [
        *({"done": "1"}, {"total": "x"}, {"total": [1]}, {"step": 5}, {"unit": None}, {"done": {}}),
        *({"type": "step.finished", "outcome": [], "detail": "", "elapsed_s": 1.0},),
        {"type": "log", "level": "info", "source": "x", "text": ["a"]},
    ],
)
def test_an_event_with_the_wrong_kinds_of_values_is_dropped(change: dict[str, Any]) -> None:
    assert parse_event(STEP, "inner") is not None
    assert parse_event({**STEP, **change}, "inner") is None


@pytest.mark.parametrize(
    ("said", "address"),
    [
        ("10.0.0.5", "10.0.0.5"),
        ("2001:DB8::1", "2001:db8::1"),
        ("2001:db8::1%{{ lookup('pipe','id') }}", None),
        ("$(id)", None),
        ("-oProxyCommand=id", None),
        (5, None),
        (["10.0.0.5"], None),
    ],
)
def test_an_address_is_one_or_none(said: Any, address: str | None) -> None:
    assert NodeOutcome.from_json({**NODE, "ip": said}).address == address


def test_a_command_that_writes_without_end_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh_shell, "_LARGEST_OUTPUT_MIB", 1)

    async def ask() -> None:
        async with real_shell(tmp_path) as host, ssh.connect(host) as shell:
            assert await shell.run("head -c 1000000 /dev/zero | wc -c") == "1000000\n"
            await shell.run("yes", timeout_s=60)

    with pytest.raises(SshError, match="wrote more than 1 MiB"):
        asyncio.run(ask())


@pytest.mark.parametrize("said", ["", "x", "a\nb", "\x1b[2Jx86_64\n"])
def test_answers_that_no_host_gives_are_an_error_and_no_crash(tmp_path: Path, said: str) -> None:
    class Answering:
        host = ssh.Host(address="inner")

        async def run(self, command: str, **_: object) -> str:
            del command
            return said

    async def make_ready() -> None:
        inner = InnerHost(name="inner", shell=Answering())  # type: ignore[arg-type]
        steps = Steps(host="inner", emit=events.ignore)
        await bootstrap.bootstrap(inner, None, steps)  # type: ignore[arg-type]

    with pytest.raises(InnerHostError, match="an answer that is not valid"):
        asyncio.run(make_ready())


def test_a_host_is_not_forgotten_when_the_file_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "known_hosts"
    KnownHosts(path).remember(ssh.Host(address="a", alias="a"), "ssh-ed25519 AAAA")
    KnownHosts(path).remember(ssh.Host(address="b", alias="b"), "ssh-ed25519 BBBB")
    before = path.read_text()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", full)
        with pytest.raises(StackyardError):
            forget_hosts(path, ["a"])
    assert path.read_text() == before
    forget_hosts(path, ["a"])
    assert path.read_text() == "b ssh-ed25519 BBBB\n"
    assert path.stat().st_mode & 0o777 == 0o600
