"""`apply` and `destroy` at a terminal: they show the plan, name what is destroyed, and ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.path import SMALL_GUEST, Yard, make_yard
from tests.support.terminal import CTRL_C, Terminal

from stackyard import lab

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

QUESTION = "Apply this plan to env:one? [y/N]:"


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    with lab.running(nodes=("pve1",)) as running:
        made = make_yard(running, tmp_path)
        made.write_env("one", [SMALL_GUEST])
        yield made


def at_terminal(yard: Yard, *arguments: str) -> Terminal:
    return Terminal(*arguments, cwd=yard.folder, env=yard.env)


def test_a_plan_is_applied_only_after_a_yes(yard: Yard) -> None:
    refused = at_terminal(yard, "apply", "one")
    refused.read_until(QUESTION)
    assert "+ create   container web (101 on pve1)" in refused.text
    refused.press("\n")
    assert refused.finish() == 1
    assert "Nothing was changed." in refused.text
    assert yard.guests() == {}

    stopped = at_terminal(yard, "apply", "one")
    stopped.read_until(QUESTION)
    stopped.press(CTRL_C)
    assert stopped.finish() == 130
    assert yard.json("state", "locks")["locks"] == []
    assert yard.guests() == {}

    agreed = at_terminal(yard, "apply", "one")
    # What is typed before the question is no answer to it.
    agreed.press("n\n")
    agreed.read_until(QUESTION)
    agreed.press("y\n")
    assert agreed.finish() == 0
    assert list(yard.guests()) == [101]

    yard.write_env("one", [{**SMALL_GUEST, "name": "other", "vmid": 102}])
    losing = at_terminal(yard, "apply", "one", "--allow-destroy", "web")
    losing.read_until(QUESTION)
    assert "This destroys container web (101 on pve1)." in losing.text
    losing.press("n\n")
    assert losing.finish() == 1
    assert list(yard.guests()) == [101]

    yard.write_env("one", [SMALL_GUEST])
    destroyed = at_terminal(yard, "destroy", "one", "--allow-destroy", "web", "--yes")
    assert destroyed.finish() == 0
    assert "[y/N]" not in destroyed.text
    assert yard.guests() == {}


def test_a_program_that_reads_json_is_not_asked(yard: Yard) -> None:
    read = at_terminal(yard, "apply", "one", "--json")
    assert read.finish() == 0
    assert "[y/N]" not in read.text
    assert list(yard.guests()) == [101]


def test_the_question_of_a_manifest_names_what_its_state_has_too(yard: Yard) -> None:
    manifest = yard.folder / "manifests" / "two.yaml"
    node = "{name: %s, type: ct, vmid: %d, image: debian-13-ct, cores: 1, memory: 128, disk: 4}"
    head = "schema_version: 2\nname: two\nsettings: {verify_ssh: false}\nnodes:\n"
    manifest.write_text(f"{head}  - {node % ('one', 201)}\n  - {node % ('two', 202)}\n")
    yard.run("apply", "manifest:two", "-H", "lab", "--no-verify")
    # The manifest loses a node, and the cluster still has it.
    manifest.write_text(f"{head}  - {node % ('one', 201)}\n")
    assert yard.json("destroy", "-M", "two", "-H", "lab", "--dry-run")["unlisted"] == ["two"]

    asked = at_terminal(yard, "destroy", "manifest:two", "-H", "lab")
    asked.press("y\n")
    asked.read_until("[y/N]:")
    assert "This destroys one, two of two on lab, with all disks." in asked.text
    asked.press("n\n")
    assert asked.finish() == 1
    assert sorted(yard.guests()) == [201, 202]

    ended = yard.json("destroy", "manifest:two", "-H", "lab", "--yes")
    assert {one["name"]: one["status"] for one in ended["nodes"]} == {"one": "destroyed", "two": "destroyed"}
    assert yard.guests() == {}


@pytest.mark.parametrize("command", [("apply", "manifest:one"), ("create", "-M", "one")])
def test_a_no_to_the_plan_of_a_manifest_leaves_no_failed_run(yard: Yard, command: tuple[str, ...]) -> None:
    node = "{name: one, type: ct, vmid: 201, image: debian-13-ct, cores: 1, memory: 128, disk: 4}"
    head = "schema_version: 2\nname: one\nsettings: {verify_ssh: false}\nnodes:\n"
    (yard.folder / "manifests" / "one.yaml").write_text(f"{head}  - {node}\n")
    asked = at_terminal(yard, *command, "-H", "lab", "--skip-preflight")
    asked.read_until("Apply this plan to manifest:one")
    asked.press("n\n")
    assert asked.finish() == 1
    assert "Nothing was changed." in asked.text
    assert yard.guests() == {}
    assert list((yard.folder / "reports").glob("*")) == []
    (run,) = yard.json("runs", "list")["runs"]
    assert run["outcome"] == "stopped"
