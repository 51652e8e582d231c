"""`stackyard preflight` as a user runs it, and its page."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cli import stackyard
from tests.support.lab_inside import has_sandbox, need_sandbox
from tests.support.path import Yard, make_yard
from tests.support.preflight import look
from tests.support.site import write_site

from stackyard import lab
from stackyard.operator.preflight import Purpose

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "preflight.md").read_text()
LINES = [
    line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines() if line
]


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    home = tmp_path_factory.mktemp("preflight")
    with pytest.MonkeyPatch.context() as patch, lab.running(nodes=("pve1",), ssh_port=0) as running:
        patch.setenv("HOME", str(home))
        patch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
        env = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}
        yield make_yard(running, home / "site", **env)


@pytest.mark.parametrize("line", LINES)
def test_the_commands_of_the_page_work(yard: Yard, line: str) -> None:
    program, *arguments = shlex.split(line, comments=True)
    assert program == "stackyard"
    # Its guest has a spec, which is applied by programs in the guest.
    is_able = "n1-basic" not in arguments or has_sandbox()
    yard.run(*arguments, status=0 if is_able else 1)


def test_every_check_is_a_line_and_every_finding_has_its_remedy(yard: Yard) -> None:
    gone = {"name": "edge", "type": "vm", "preset": "vm-small", "image": "local:iso/gone.img"}
    text = json.dumps({"schema_version": 2, "name": "m", "nodes": [gone]})
    ended = yard.run("preflight", "--manifest-json", text, "-H", "lab", status=1)
    rows = {line.split()[0]: line.split()[1] for line in ended.stdout.splitlines() if line[:1].islower()}
    assert rows["api"] == "ok"
    assert rows["images"] == "fail"
    assert "[E-PREFLIGHT-IMAGE]" in ended.stdout
    assert "Put it on the datastore" in ended.stdout
    assert "lab is not ready, 1 problem" in ended.stdout
    document = yard.json("preflight", "--manifest-json", text, status=1)
    assert document["ready"] is False
    assert [error["code"] for error in document["errors"]] == ["E-PREFLIGHT-IMAGE"]
    assert {check["name"] for check in document["checks"]} <= set(re.findall(r"`(\w+)`", PAGE))


def test_nodes_inside_nodes_are_looked_at_too(yard: Yard) -> None:
    is_able = has_sandbox()
    document = yard.json("preflight", "manifest:n2-quick", status=0 if is_able else 1)
    (nested,) = (check for check in document["checks"] if check["name"] == "nested")
    if is_able:
        assert (nested["status"], nested["text"]) == ("ok", "on")
        return
    # Such a guest cannot be set up where it runs no programs; a run would find out too late.
    assert (nested["status"], nested["text"]) == ("fail", "not in this lab")
    assert [error["code"] for error in document["errors"]] == ["E-PREFLIGHT-LAB-GUESTS"]
    assert "bubblewrap" in document["errors"][0]["detail"]
    assert "bubblewrap" in document["errors"][0]["remedy"]
    refused = yard.json("test", "-M", "n2-quick", "-H", "lab", status=1)
    assert "E-PREFLIGHT-LAB-GUESTS" in json.dumps(refused)
    assert yard.guests() == {}


def test_a_lab_whose_guests_run_no_programs_is_refused_for_guests_that_are_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", without_bubblewrap(os.environ["PATH"]))
    vm = {"name": "edge", "type": "vm", "vmid": 99001, "preset": "vm-small", "image": "debian-12"}
    box = {"name": "edge", "type": "ct", "vmid": 99001, "image": "debian-13-ct", "cores": 1, "memory": 512}
    nodes = [vm | {"spec": "base"}, vm | {"spec": "base", "execution": {"mode": "pull"}}, box | {"disk": 4}]
    with lab.running(nodes=("pve1",), ssh_port=0) as running:
        own = make_yard(running, tmp_path / "site")
        for node in nodes:
            text = json.dumps({"schema_version": 2, "name": "m", "nodes": [node]})
            (found,) = own.json("preflight", "--manifest-json", text, "-H", "lab", status=1)["errors"]
            assert found["code"] == "E-PREFLIGHT-LAB-GUESTS"
            assert "edge could not be set up" in found["detail"]
        for name in ("n1-basic", "n2-quick"):
            (found,) = own.json("preflight", "-M", name, "-H", "lab", status=1)["errors"]
            assert found["code"] == "E-PREFLIGHT-LAB-GUESTS"
            refused = own.json("test", "-M", name, "-H", "lab", status=1)
            assert "E-PREFLIGHT-LAB-GUESTS" in json.dumps(refused)
        assert own.guests() == {}
        # Nothing runs in a guest without a spec, and what was made can be taken away everywhere.
        plain = json.dumps({"schema_version": 2, "name": "m", "nodes": [vm]})
        assert own.json("preflight", "--manifest-json", plain, "-H", "lab")["ready"]
        assert look(own.folder, "n1-basic", purpose=Purpose.DESTROY).is_ready


def without_bubblewrap(path: str) -> str:
    """Return a search path without the folders in which bubblewrap is."""
    folders = path.split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if not (Path(folder) / "bwrap").exists())


def test_a_lab_with_sandboxes_is_ready_for_guests_that_are_configured(yard: Yard) -> None:
    need_sandbox()
    for name in ("n1-basic", "n2-quick"):
        assert yard.json("preflight", "-M", name, "-H", "lab")["ready"]


def test_names_that_are_not_there_are_invalid_input_and_an_api_that_is_not_is_unreachable(
    tmp_path: Path,
) -> None:
    site = write_site(tmp_path / "site")
    for arguments in (("-H", "gone"), ("-M", "gone", "-H", "pve"), ()):
        assert stackyard("preflight", *arguments, cwd=site).status == 65, arguments
    assert stackyard("preflight", "env:gone", cwd=site).status == 64
    assert stackyard("preflight", "env:dev", "-M", "n2-quick", cwd=site).status == 64
    node = site / "nodes" / "pve.yaml"
    node.write_text(node.read_text().replace("localhost:8006", "127.0.0.1:9"))
    ended = stackyard("preflight", "-H", "pve", "--json", cwd=site)
    assert ended.status == 69
    assert ended.document["errors"][0]["code"] == "E-PREFLIGHT-API"


def test_this_machine_is_looked_at_where_no_file_of_the_site_names_it(tmp_path: Path) -> None:
    write_site(tmp_path)
    own = socket.gethostname().partition(".")[0]
    for words in (("preflight", "--local"), ("--preflight", "--local")):
        ended = stackyard(*words, "--json", cwd=tmp_path)
        document = ended.document
        assert document["host"] == own
        names = [check["name"] for check in document["checks"]]
        assert names == ["machine", "secrets", "tools"]
        assert "which no file of the site names" in document["checks"][0]["text"]
    refused = stackyard("preflight", "--local", "-H", "father", cwd=tmp_path)
    assert refused.status == 64
