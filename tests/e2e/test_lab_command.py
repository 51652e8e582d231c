"""`stackyard lab`: a server in the background or the foreground, reached, steered and stopped by name."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli import PROGRAM, Ended, stackyard
from tests.support.processes import PATIENCE_S, Watched

pytestmark = pytest.mark.usefixtures("no_lab_left")

READY = {"url", "api_token", "username", "password", "ssh_port", "fingerprint", "nodes"}


@pytest.fixture
def no_lab_left() -> Iterator[None]:
    """End every lab of this test, whatever happened in it."""
    yield
    stackyard("lab", "down", "--all")


def lab(*arguments: str, **options: Any) -> Ended:
    return stackyard("lab", *arguments, **options)


def up(*arguments: str) -> dict[str, Any]:
    ended = lab("up", "--port", "0", *arguments, "--json")
    assert ended.status == 0, ended
    return ended.document


def call(ready: dict[str, Any], path: str, method: str = "GET") -> Any:
    """Make a call of the API with the token."""
    request = urllib.request.Request(f"{ready['url']}/api2/json{path}", method=method)
    request.add_header("Authorization", f"PVEAPIToken={ready['api_token']}")
    context = ssl._create_unverified_context()
    with urllib.request.urlopen(request, context=context, timeout=PATIENCE_S) as answer:
        return json.load(answer)["data"]


# --- In the background


def test_up_returns_when_the_lab_answers_and_status_says_the_same() -> None:
    ready = up("--nodes", "a,b")
    assert ready.keys() >= READY
    assert ready["nodes"] == ["a", "b"]
    assert {row["node"] for row in call(ready, "/nodes")} == {"a", "b"}
    assert lab("status", "--json").document == ready
    with socket.create_connection(("127.0.0.1", ready["ssh_port"]), PATIENCE_S) as connection:
        assert connection.recv(8) == b"SSH-2.0-"


def test_down_stops_it_and_waits_for_its_end() -> None:
    ready = up()
    with Watched(ready["pid"]) as watched:
        assert lab("down", "--json").document == {"stopped": ["default"]}
        assert watched.has_ended()
    with pytest.raises(urllib.error.URLError):
        call(ready, "/version")
    assert lab("down").stdout == "No such lab is running.\n"
    ended = lab("status", "--json")
    assert (ended.status, ended.document["error"]["code"]) == (69, "E-LAB-DOWN")


def test_the_human_view_tells_how_to_reach_and_stop_it() -> None:
    ended = lab("up", "--port", "0")
    assert ended.stdout.startswith("The lab is ready: https://127.0.0.1:")
    assert "root@pam!lab=" in ended.stdout
    assert ended.stdout.endswith("`stackyard lab down` stops it.\n")
    again = lab("up")
    assert again.stdout.startswith("The lab is already running: https://127.0.0.1:")
    assert lab("status").stdout.startswith("The lab is running: https://127.0.0.1:")


def test_a_lab_that_runs_is_not_taken_for_a_different_one() -> None:
    first = up("--nodes", "a")
    assert up("--nodes", "a") == first
    ended = lab("up", "--nodes", "b", "--json")
    assert (ended.status, ended.document["error"]["code"]) == (75, "E-LAB-RUNNING")
    assert "--nodes=b" in ended.document["error"]["detail"]


def test_labs_of_different_names_run_beside_each_other() -> None:
    one, two = up("--name", "one"), up("--name", "two")
    assert one["url"] != two["url"]
    assert lab("status", "--name", "two", "--json").document == two
    assert lab("down", "--all", "--json").document == {"stopped": ["one", "two"]}
    ended = lab("up", "--name", "../x", "--json")
    assert (ended.status, ended.document["error"]["code"]) == (64, "E-USAGE")


def test_a_killed_lab_is_not_taken_for_a_running_one() -> None:
    ready = up()
    with Watched(ready["pid"]) as watched:
        os.kill(ready["pid"], signal.SIGKILL)
        assert watched.has_ended()
    assert lab("status").status == 69
    assert up()["pid"] != ready["pid"]


def test_the_secrets_are_for_the_owner_alone(home: Path) -> None:
    up()
    folder = home / ".local" / "state" / "stackyard" / "labs" / "default"
    assert folder.stat().st_mode & 0o077 == 0
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {"lab.json", "lab.log", "ssh_host_ed25519_key", "server.pem"} <= {path.name for path in files}
    assert [path for path in files if path.stat().st_mode & 0o077] == []


def test_data_survives_and_so_do_the_keys(tmp_path: Path) -> None:
    first = up("--data", "kept", "--chdir", str(tmp_path))
    assert lab("faults", "add", "quorum-lost").status == 0
    os.kill(first["pid"], signal.SIGKILL)
    with Watched(first["pid"]) as watched:
        assert watched.has_ended()
    second = up("--data", str(tmp_path / "kept"))
    same = ("api_token", "password", "fingerprint", "nodes", "data")
    assert {key: first[key] for key in same} == {key: second[key] for key in same}
    listed = lab("faults", "list", "--json")
    assert listed.status == 0, listed.document
    assert [fault["kind"] for fault in listed.document["faults"]] == ["quorum-lost"]
    ended = lab("up", "--name", "other", "--port", "0", "--data", str(tmp_path / "kept"), "--json")
    assert (ended.status, ended.document["error"]["code"]) == (75, "E-LAB-BUSY")


def test_without_data_the_certificate_stays_and_the_content_goes() -> None:
    first = up("--seed", "small")
    lab("down")
    second = up()
    assert second["fingerprint"] == first["fingerprint"]
    assert call(second, "/cluster/resources?type=vm") == []


def test_a_port_that_is_taken_is_a_clear_error_in_both_modes() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for options in (("--port", port), ("--port", "0", "--ssh-port", port, "--foreground")):
            ended = lab("up", *options, "--json")
            assert ended.status == 1
            assert ended.document["error"]["code"] == "E-LISTEN-IN-USE"
            assert f"127.0.0.1:{port}" in ended.document["error"]["detail"]
    assert lab("status").status == 69


@pytest.mark.parametrize(
    ("options", "status", "code"),
    [
        (("--seed", "nothing"), 65, "E-LAB-SEED"),
        (("--nodes", "a,a"), 64, "E-USAGE"),
        (("--data", "/dev/null/x"), 65, "E-FILE"),
    ],
)
def test_a_start_that_cannot_be_ends_with_its_own_error(
    options: tuple[str, ...], status: int, code: str
) -> None:
    ended = lab("up", "--port", "0", *options, "--json")
    assert (ended.status, ended.document["error"]["code"]) == (status, code)
    assert "Traceback" not in ended.stderr
    assert lab("status").status == 69


def test_listening_beyond_this_machine_is_said_loudly() -> None:
    ended = lab("up", "--port", "0", "--bind", "0.0.0.0", "--json")
    assert ended.status == 0
    assert "THE LAB LISTENS ON 0.0.0.0" in ended.stderr
    assert "LISTENS" not in lab("up", "--name", "two", "--port", "0", "--bind", "127.0.0.1").stderr


# --- In the foreground


def start(*arguments: str) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    running = subprocess.Popen(
        [*PROGRAM, "lab", "up", "--foreground", "--json", "--port", "0", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    return running, json.loads(running.stdout.readline())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_in_the_foreground_it_says_one_line_and_ends_well_when_told_to_stop(number: signal.Signals) -> None:
    running, ready = start("--nodes", "x")
    assert ready.keys() >= READY
    assert call(ready, "/version")["version"]
    assert lab("status", "--json").document["pid"] == running.pid
    with socket.create_connection(("127.0.0.1", ready["ssh_port"]), PATIENCE_S):
        running.send_signal(number)
        out, err = running.communicate(timeout=PATIENCE_S)
    assert (running.returncode, out) == (0, "")
    assert "Traceback" not in err
    assert lab("status").status == 69


def test_down_stops_a_lab_in_the_foreground_too() -> None:
    running, _ = start("--name", "here")
    assert lab("down", "--name", "here", "--json").document == {"stopped": ["here"]}
    running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 0


def test_events_tell_when_it_is_ready() -> None:
    running = subprocess.Popen(
        [*PROGRAM, "lab", "up", "--foreground", "--events", "--port", "0"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    kinds = [json.loads(running.stdout.readline()) for _ in range(2)]
    assert [event["type"] for event in kinds] == ["run.started", "run.ready"]
    assert kinds[1]["result"].keys() >= READY
    running.terminate()
    rest, _ = running.communicate(timeout=PATIENCE_S)
    assert json.loads(rest.splitlines()[-1])["exit_status"] == 0


# --- Steering


def test_faults_are_added_listed_and_cleared() -> None:
    ready = up()
    added = lab("faults", "add", "answer", "path=/version", "status=500", "reason=got timeout", "fault=mine")
    assert added.stdout == "Added the fault 'mine'.\n"
    with pytest.raises(urllib.error.HTTPError, match="500: got timeout"):
        call(ready, "/version")
    shown = lab("faults", "list").stdout
    assert "mine   answer  1 of 1  status=500 reason=got timeout path=/version" in shown
    assert lab("faults", "clear", "mine", "--json").document == {"removed": ["mine"]}
    assert lab("faults", "list").stdout == "No faults: the lab works as it should.\n"
    assert call(ready, "/version")["version"]
    assert "node-down: A node cannot be reached." in lab("faults", "kinds").stdout
    wrong = lab("faults", "add", "answer", "--json")
    assert (wrong.status, wrong.document["error"]["code"]) == (65, "E-LAB-REFUSED")
    assert lab("faults", "add", "answer", "status").status == 64


def test_the_journal_shows_calls_and_can_be_cleared() -> None:
    ready = up()
    call(ready, "/version")
    call(ready, "/nodes")
    document = lab("journal", "--path", "/ver*", "--json").document
    assert [entry["path"] for entry in document["calls"]] == ["/version"]
    assert "/nodes" in lab("journal", "--method", "GET", "--limit", "1").stdout
    assert lab("journal", "--clear").stdout == "The journal is empty.\n"
    assert lab("journal").stdout == "No calls.\n"


def test_snapshots_and_resets_change_the_whole_lab(tmp_path: Path) -> None:
    up("--seed", "small")
    assert lab("snapshot", "save", "before").stdout == "Saved 'before'.\n"
    assert lab("reset", "--seed", "empty", "--json").document["guests"] == 0
    assert lab("snapshot", "restore", "before").stdout == "Restored 'before'.\n"
    assert "before" in lab("snapshot", "list").stdout
    assert lab("snapshot", "delete", "before").status == 0
    assert lab("snapshot", "list").stdout == "No snapshots.\n"
    assert lab("snapshot", "restore", "before").status == 65
    (tmp_path / "mine.json").write_text('{"calls": [{"path": "/pools", "parameters": {"poolid": "x"}}]}')
    assert lab("reset", "--seed", "mine.json", cwd=tmp_path).stdout == "The lab is new again: 0 guests.\n"
    assert lab("reset", "--json").document["guests"] == 2


@pytest.mark.parametrize(
    "verb", [("reset",), ("journal",), ("faults", "list"), ("snapshot", "list"), ("faults", "clear")]
)
def test_a_verb_that_needs_a_lab_says_that_none_runs(verb: tuple[str, ...]) -> None:
    ended = lab(*verb, "--name", "none", "--json")
    assert (ended.status, ended.document["error"]["code"]) == (69, "E-LAB-DOWN")
    assert ended.document["error"]["remedy"] == "Start it with `stackyard lab up --name none`."


def test_what_only_asks_a_lab_loads_no_server() -> None:
    code = (
        "import sys; from stackyard.cli.main import main; main(['lab', 'status']);"
        "heavy = {'aiohttp', 'asyncssh', 'cryptography', 'pvelab'} & set(sys.modules);"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
