"""`stackyard connect` when something breaks on the way: all or nothing, and the next run completes it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.support.connecting import Newcomer
from tests.support.forking import Forked, fork_program
from tests.support.path import make_yard

from pvelab.seeds import STOCK_STORAGES, Seed
from stackyard import lab
from stackyard.sources.site.load import Site

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

TOKEN_PATH = "/access/users/stackyard@pve/token/connect"


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Newcomer]:
    (tmp_path / "yard").mkdir()
    with lab.running(nodes=("pve1",)) as running:
        yield Newcomer(running=running, folder=tmp_path / "yard")


def tokens(who: Newcomer) -> list[str]:
    return [row["tokenid"] for row in who.api.access.users("stackyard@pve").token.get()]


def test_a_token_whose_secret_cannot_be_written_is_removed_again(alone: Newcomer) -> None:
    rules = alone.folder / ".sops.yaml"
    rules.write_text("creation_rules:\n  - path_regex: other\n    age: age1nothing\n")
    before = alone.files()
    error = alone.error(status=1)
    assert error["code"] == "E-CONNECT-TAKEN-BACK"
    assert "is removed" in error["detail"]
    assert alone.files() == before
    assert tokens(alone) == []
    rules.unlink()
    alone.connect()
    assert tokens(alone) == ["connect"]


def test_a_token_that_cannot_be_removed_is_said(alone: Newcomer) -> None:
    (alone.folder / ".sops.yaml").write_text("creation_rules:\n  - path_regex: other\n    age: age1nothing\n")
    alone.running.add_fault("answer", status=500, reason="broken", method="DELETE", path=TOKEN_PATH)
    error = alone.error(status=1)
    assert error["code"] == "E-CONNECT-TOKEN-LEFT"
    assert "pveum user token delete stackyard@pve connect" in error["remedy"]


def test_a_refused_call_after_the_token_takes_it_back(alone: Newcomer) -> None:
    alone.running.add_fault(
        "answer", status=403, reason="no", method="PUT", path="/access/acl", nth=2, times=1
    )
    assert alone.error(status=1)["code"] == "E-CONNECT-TAKEN-BACK"
    assert (tokens(alone), alone.files()) == ([], {})
    alone.connect()


def test_a_token_that_another_run_made_meanwhile_is_not_removed(alone: Newcomer) -> None:
    running, api = alone.running, alone.api
    name = running.add_fault("delay", seconds=2, method="PUT", path="/access/acl", nth=1, times=1)
    program = start(alone)
    wait_until_struck(running, name)
    api.access.users("stackyard@pve").token("connect").post()
    assert program.wait() == 1
    assert (tokens(alone), alone.files()) == (["connect"], {})


def test_a_folder_that_is_not_writable_is_found_before_anything_is_created(alone: Newcomer) -> None:
    (alone.folder / "nodes").write_text("in the way")
    before = alone.access()
    error = alone.error(status=65)
    assert error["code"] == "E-FILE"
    assert alone.access() == before


def start(who: Newcomer) -> Forked:
    """Start to connect, and do not wait for the end."""
    running = who.running
    env = {**os.environ, "STACKYARD_PVE_PASSWORD": running.password}
    arguments = ("connect", running.url, "--user", "root@pam", "--fingerprint", running.fingerprint)
    with open(os.devnull, "r+b") as nothing:
        streams = (nothing.fileno(), nothing.fileno(), nothing.fileno())
        return fork_program(arguments, streams=streams, cwd=who.folder, env=env)


def wait_until_struck(running: lab.Running, fault: str) -> None:
    while not running.on_loop(lambda: running.world.faults.rules()[fault][2]):
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("method", "path", "nth", "renews"),
    [
        ("POST", "/access/roles", 1, False),
        pytest.param("POST", "/access/users", 1, False, marks=pytest.mark.soak),
        pytest.param("PUT", "/access/acl", 1, False, marks=pytest.mark.soak),
        ("POST", TOKEN_PATH, 1, True),
        ("PUT", "/access/acl", 2, True),
    ],
    ids=["role", "user", "user entry", "token", "token entry"],
)
def test_a_run_that_is_killed_is_completed_by_the_next(
    alone: Newcomer, method: str, path: str, nth: int, renews: bool
) -> None:
    running = alone.running
    name = running.add_fault("delay", seconds=30, method=method, path=path, when="after", nth=nth, times=1)
    program = start(alone)
    wait_until_struck(running, name)
    program.kill()
    program.wait()
    running.remove_fault(name)
    assert alone.files() == {}
    if renews:
        # The secret died with the run.
        assert alone.error(status=1)["code"] == "E-CONNECT-TOKEN-EXISTS"
        alone.connect("--renew-token")
    else:
        alone.connect()
    alone.run("plan", "first")
    assert alone.connect("--json").document["access"]["done"] == []


def test_an_interrupted_run_takes_its_token_back(alone: Newcomer) -> None:
    running = alone.running
    name = running.add_fault(
        "delay", seconds=2, method="PUT", path="/access/acl", when="after", nth=2, times=1
    )
    program = start(alone)
    wait_until_struck(running, name)
    os.kill(program.pid, signal.SIGINT)
    assert program.wait() == 130
    assert (tokens(alone), alone.files()) == ([], {})
    alone.connect()


def test_a_site_that_was_half_written_is_completed(alone: Newcomer) -> None:
    alone.connect()
    whole = alone.files()
    for name in ("site.yaml", "nodes/pve1.yaml", "envs/dev.yaml"):
        (alone.folder / name).unlink()
    alone.connect()
    assert alone.files() == whole


# --- Files that exist


def test_comments_and_choices_of_existing_files_stay(alone: Newcomer) -> None:
    alone.connect()
    node = alone.folder / "nodes" / "pve1.yaml"
    text = node.read_text().replace("datastore: local-lvm\n", "datastore: local  # mine\n")
    kept = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("ip:"))
    node.write_text(f"# My own words.\n{kept}")
    # The datastore that its user chose takes no disks: the preflight says so.
    done = alone.connect("--json", status=1).document
    assert node.read_text() == f"# My own words.\n{kept}ip: 10.31.0.11\n"
    assert done["site"]["kept"] == {str(node): ["datastore"]}
    assert done["site"]["files"] == ["nodes/pve1.yaml"]


def test_a_node_of_another_cluster_is_a_conflict_and_can_have_another_name(alone: Newcomer) -> None:
    alone.connect()
    with lab.running(nodes=("pve1",)) as other:
        second = Newcomer(running=other, folder=alone.folder)
        before = alone.files(), second.access()
        error = second.error(status=65)
        assert error["code"] == "E-CONNECT-CONFLICTS"
        assert [found["code"] for found in error["diagnostics"]] == ["E-CONNECT-CONFLICT"] * 2
        assert (alone.files(), second.access()) == before
        second.connect("--as", "attic")
        site = Site.load(alone.folder)
        assert site.nodes["attic"].model.node == "pve1"
        assert set(site.secret_values.api_tokens) == {"pve1", "attic"}
        assert [second.run("preflight", "-H", name).status for name in ("pve1", "attic")] == [0, 0]
        # The file knows what the node is called here.
        assert second.connect("--json").document["site"]["files"] == []


def test_a_site_that_has_another_token_keeps_it_unless_told_otherwise(
    alone: Newcomer, tmp_path: Path
) -> None:
    yard = make_yard(alone.running, tmp_path / "made")
    who = Newcomer(running=alone.running, folder=yard.folder)
    before = who.files(), who.access()
    error = who.error(status=65)
    assert error["code"] == "E-CONNECT-OTHER-TOKEN"
    assert "root@pam!lab" in error["detail"]
    assert alone.running.api_token.partition("=")[2] not in str(error)
    assert (who.files(), who.access()) == before
    who.connect("--overwrite")
    assert who.token("lab").startswith("stackyard@pve!connect=")
    text = (yard.folder / "nodes" / "lab.yaml").read_text()
    assert "# Guests of the lab are reached through it" in text
    assert "ssh_jump: true" in text


def test_a_folder_with_other_things_does_not_become_a_site(alone: Newcomer) -> None:
    (alone.folder / "photos").mkdir()
    error = alone.error(status=65)
    assert error["code"] == "E-INIT-FOLDER"
    alone.connect("--site", "new/yard")
    assert yaml.safe_load((alone.folder / "new/yard/nodes/pve1.yaml").read_text())["api_token"] == "pve1"


def test_guests_that_are_there_are_counted_and_the_import_is_offered(alone: Newcomer) -> None:
    alone.connect()
    alone.run("apply", "first")
    done = alone.connect("--json").document
    assert done["cluster"]["guests"] == 1
    assert done["next"][0] == "stackyard import env:existing -H pve1"


def test_a_datastore_takes_what_images_need_when_that_is_asked_for(tmp_path: Path) -> None:
    local = {**STOCK_STORAGES["local"], "content": "iso,vztmpl,backup"}
    seed = Seed(name="fresh", storages={**STOCK_STORAGES, "local": local})
    (tmp_path / "yard").mkdir()
    with lab.running(nodes=("pve1",), seed=seed) as running:
        who = Newcomer(running=running, folder=tmp_path / "yard")
        seen = who.connect(status=1)
        assert "let the datastore local take snippets and import: --add-content does that" in seen.stderr
        assert "E-PREFLIGHT-CONTENT" in seen.stdout
        who.run("apply", "first")
        who.connect("--add-content")
        content = who.api.storage("local").get()["content"].split(",")
        assert sorted(content) == ["backup", "import", "iso", "snippets", "vztmpl"]
        assert who.connect("--add-content", "--json").document["access"]["done"] == []


def test_a_token_is_not_written_into_secrets_that_are_not_encrypted(alone: Newcomer) -> None:
    alone.connect()
    before = alone.access()
    (alone.folder / "secrets.yaml").write_text("api_tokens: {}\n")
    error = alone.error("--renew-token", status=65)
    assert error["code"] == "E-CONNECT-PLAIN-SECRETS"
    assert alone.access() == before


def test_a_site_whose_token_is_missing_gets_one(alone: Newcomer) -> None:
    alone.connect()
    secrets = alone.folder / "secrets.yaml"
    secrets.unlink()
    broken = alone.folder / "envs" / "broken.yaml"
    broken.write_text("vms: [{name: x, preset: nothing}]\n")
    alone.run("site", "validate", status=65)
    alone.connect("--renew-token")
    broken.unlink()
    alone.run("site", "validate")
    assert b"ENC[" in secrets.read_bytes()


def test_two_clusters_of_one_name_keep_a_token_each(tmp_path: Path) -> None:
    (tmp_path / "yard").mkdir()
    with lab.running(nodes=("a1", "a2")) as one, lab.running(nodes=("b1", "b2")) as other:
        for running in (one, other):
            Newcomer(running=running, folder=tmp_path / "yard").connect()
        site = Site.load(tmp_path / "yard")
        assert {name: node.model.api_token for name, node in site.nodes.items()} == {
            "a1": "lab",
            "a2": "lab",
            "b1": "lab-2",
            "b2": "lab-2",
        }
