"""Several stacks: in the order of layers and dependencies, with outputs that flow, and nothing forgotten."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.support.stack_repo import StackRepo, make_repo

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

_BACKEND = 'terraform {\n  backend "http" {}\n}\n'


def _data(name: str, value: str = '"1"') -> str:
    return f'{_BACKEND}resource "terraform_data" "{name}" {{ input = {value} }}\n'


def _layers(folder: Path) -> StackRepo:
    return make_repo(
        folder,
        {
            "infrastructure/01-hypervisors/srv01/main.tf": _data("bridge", '"vmbr0"')
            + 'output "bridge" { value = terraform_data.bridge.output }\n',
            "infrastructure/02-platforms/k8s-prod/main.tf": _data("node", "var.bridge")
            + 'variable "bridge" { type = string }\n',
            "infrastructure/02-platforms/k8s-prod/stack.yaml": "after:\n"
            "  - stack: 01-hypervisors/srv01\n    outputs: [bridge]\n",
            "infrastructure/03-legacy/pihole/main.tf": _data("pihole"),
            "infrastructure/modules/shared/main.tf": "",
        },
    )


def _statuses(document: dict[str, Any]) -> dict[str, str]:
    return {one["target"].removeprefix("stack:"): one["status"] for one in document["stacks"]}


def test_layers_are_planned_as_far_as_known_and_applied_in_order(tmp_path: Path) -> None:
    repo = _layers(tmp_path)
    planned = repo.json("plan", "--all")
    assert _statuses(planned) == {
        "01-hypervisors/srv01": "planned",
        "02-platforms/k8s-prod": "waiting",
        "03-legacy/pihole": "planned",
    }
    waiting = next(one for one in planned["stacks"] if one["status"] == "waiting")
    assert waiting["waiting_for"] == ["stack:01-hypervisors/srv01"]
    alone = repo.json("apply", "--layer", "02-platforms", status=1)
    assert _statuses(alone) == {"02-platforms/k8s-prod": "waiting"}
    applied = repo.json("apply", "--all")
    assert set(_statuses(applied).values()) == {"applied"}
    ran = [run["target"] for run in repo.json("runs", "list")["runs"] if run["verb"] == "apply"]
    assert ran[:3] == ["stack:03-legacy/pihole", "stack:02-platforms/k8s-prod", "stack:01-hypervisors/srv01"]
    assert set(_statuses(repo.json("plan", "--all", "--detailed-exitcode")).values()) == {"unchanged"}
    assert repo.json("plan", "stack:02-platforms/k8s-prod")["inputs"].startswith("01-hypervisors/srv01 ")


def test_a_saved_plan_is_bound_to_the_state_that_gave_its_inputs(tmp_path: Path) -> None:
    repo = _layers(tmp_path)
    repo.run("apply", "stack:01-hypervisors/srv01")
    repo.run("plan", "stack:02-platforms/k8s-prod", "--out", "plan.bin")
    path = repo.root / "infrastructure/01-hypervisors/srv01/main.tf"
    path.write_text(path.read_text().replace("vmbr0", "vmbr1"))
    repo.commit()
    repo.run("apply", "stack:01-hypervisors/srv01")
    moved = repo.json("apply", "stack:02-platforms/k8s-prod", "--plan", "plan.bin", status=65)["error"]
    assert "what other stacks gave" in moved["detail"]


def test_a_failed_stack_skips_only_its_dependents(tmp_path: Path) -> None:
    repo = make_repo(
        tmp_path,
        {
            "stacks/bad/main.tf": _data("x", 'file("missing.txt")'),
            "stacks/next/main.tf": _data("x"),
            "stacks/next/stack.yaml": "after: [bad]\n",
            "stacks/last/main.tf": _data("x"),
            "stacks/last/stack.yaml": "after: [next]\n",
            "stacks/other/main.tf": _data("x"),
        },
    )
    ended = repo.json("apply", "--all", status=1)
    assert _statuses(ended) == {"bad": "failed", "next": "skipped", "last": "skipped", "other": "applied"}
    skipped = next(one for one in ended["stacks"] if one["target"] == "stack:last")
    assert skipped["waiting_for"] == ["stack:bad"]


def test_a_stack_that_is_not_valid_fails_and_skips_only_its_dependents(tmp_path: Path) -> None:
    repo = make_repo(
        tmp_path,
        {
            "stacks/bad/main.tf": _data("x"),
            "stacks/bad/stack.yaml": "afer: [other]\n",
            "stacks/next/main.tf": _data("x"),
            "stacks/next/stack.yaml": "after: [bad]\n",
            "stacks/other/main.tf": _data("x"),
        },
    )
    planned = repo.json("plan", "--all", status=1)
    assert _statuses(planned) == {"bad": "failed", "next": "planned", "other": "planned"}
    shown = repo.run("apply", "--all", status=1)
    assert "stacks/bad/stack.yaml:1:1: `afer` is not known here." in shown.stdout
    assert _statuses(repo.json("apply", "--all", status=1)) == {
        "bad": "failed",
        "next": "skipped",
        "other": "unchanged",
    }


def test_stacks_are_destroyed_in_reverse(tmp_path: Path) -> None:
    repo = _layers(tmp_path)
    repo.run("apply", "--all")
    repo.run("destroy", "--all", status=1)
    names = "terraform_data.bridge,terraform_data.node,terraform_data.pihole"
    gone = repo.json("destroy", "--all", "--allow-destroy", names)
    assert set(_statuses(gone).values()) == {"applied"}
    ran = [run["target"] for run in repo.json("runs", "list")["runs"] if run["verb"] == "destroy"]
    assert ran[0] == "stack:01-hypervisors/srv01"
    again = repo.json("destroy", "--all", "--allow-destroy", names)
    assert set(_statuses(again).values()) == {"unchanged"}


def test_what_is_left_is_destroyed_with_values_in_place_of_outputs_that_are_gone(tmp_path: Path) -> None:
    repo = _layers(tmp_path)
    repo.run("apply", "--all")
    repo.run("destroy", "stack:01-hypervisors/srv01", "--allow-destroy", "terraform_data.bridge")
    left = ("destroy", "stack:02-platforms/k8s-prod", "--allow-destroy", "terraform_data.node")
    waiting = repo.json(*left, status=1)["error"]
    assert waiting["code"] == "E-STACK-WAITING"
    assert "-var=NAME=VALUE" in waiting["remedy"]
    assert repo.json(*left, "--", "-var=bridge=vmbr0")["applied"]["remove"] == 1


def test_a_stack_whose_folder_is_gone_is_named_and_destroyed_from_its_last_commit(tmp_path: Path) -> None:
    repo = _layers(tmp_path)
    repo.run("apply", "--all")
    shutil.rmtree(repo.root / "infrastructure/03-legacy")
    repo.commit("remove")
    changed = repo.json("plan", "--changed", "--detailed-exitcode", status=2)
    assert [one["target"] for one in changed["removed"]] == ["stack:03-legacy/pihole"]
    # Not without its name.
    listed = repo.json("stack", "list", "--changed")["stacks"]
    assert [(one["name"], one["state"]) for one in listed] == [("03-legacy/pihole", "removed")]
    refused = repo.json("apply", "--changed", status=1)
    assert [one["target"] for one in refused["removed"]] == ["stack:03-legacy/pihole"]
    gone = repo.json("apply", "--changed", "--allow-destroy", "stack:03-legacy/pihole")
    assert _statuses(gone)["03-legacy/pihole"] == "applied"
    assert repo.json("plan", "--changed", "--detailed-exitcode")["removed"] == []


def test_changed_stacks_are_those_since_their_last_apply_on_the_default_branch(tmp_path: Path) -> None:
    repo = _layers(tmp_path)
    assert len(repo.json("plan", "--changed")["stacks"]) == 3
    repo.run("apply", "--all")
    assert repo.json("plan", "--changed")["stacks"] == []
    repo.write({"infrastructure/03-legacy/pihole/main.tf": _data("pihole", '"2"')})
    repo.commit()
    repo.write({"README.md": "words\n"})
    repo.commit()
    planned = repo.json("plan", "--changed")
    assert _statuses(planned) == {"03-legacy/pihole": "planned"}
    assert planned["stacks"][0]["reasons"]
    assert [one["name"] for one in repo.json("stack", "list", "--changed")["stacks"]] == ["03-legacy/pihole"]
    assert "not selected" in repo.run("stack", "why", "02-platforms/k8s-prod").stdout
    repo.run("apply", "--changed")
    assert repo.json("plan", "--changed")["stacks"] == []


def test_a_program_runs_in_each_selected_stack(tmp_path: Path) -> None:
    repo = _layers(tmp_path)
    ended = repo.run("stack", "run", "--", "sh", "-c", "echo $STACKYARD_STACK_NAME; pwd")
    assert "01-hypervisors/srv01" in ended.stdout
    assert str(repo.root / "infrastructure/03-legacy/pihole") in ended.stdout
    failed = repo.json("stack", "run", "--", "test", "-f", "stack.yaml", status=1)
    assert _statuses(failed) == {
        "01-hypervisors/srv01": "failed",
        "02-platforms/k8s-prod": "skipped",
        "03-legacy/pihole": "skipped",
    }


def test_a_stack_that_is_not_valid_stops_only_what_comes_after_it(tmp_path: Path) -> None:
    repo = make_repo(
        tmp_path,
        {
            "stacks/broken/main.tf": _data("x"),
            "stacks/broken/stack.yaml": "aftr: [other]\n",
            "stacks/next/main.tf": _data("x"),
            "stacks/next/stack.yaml": "after: [broken]\n",
            "stacks/other/main.tf": _data("x"),
        },
    )
    ended = repo.json("apply", "--all", status=1)
    assert _statuses(ended) == {"broken": "failed", "next": "skipped", "other": "applied"}
    (failed,) = (one for one in ended["stacks"] if one["status"] == "failed")
    assert "stack.yaml" in str(failed["error"])
    ran = repo.json("stack", "run", "--", "true", status=1)
    assert _statuses(ran) == {"broken": "failed", "next": "skipped", "other": "done"}


def test_the_last_stack_can_be_removed_and_an_adopted_one_too(tmp_path: Path) -> None:
    main = 'resource "terraform_data" "x" {\n  input = 1\n}\n'
    repo = make_repo(tmp_path, {"stacks/only/main.tf": main})
    repo.run("apply", "stack:only")
    moved = repo.json("stack", "adopt", "only")
    assert moved["resources"] == 1
    assert repo.json("stack", "adopt", "only")["before"] == moved["now"]
    repo.commit("adopt")
    assert repo.actions("stack:only") == {}
    shutil.rmtree(repo.root / "stacks")
    repo.commit("remove")
    removed = repo.json("plan", "--changed")["removed"]
    assert [one["target"] for one in removed] == ["stack:only"]
    repo.run("destroy", "stack:only", "--allow-destroy", "terraform_data.x")
    assert repo.json("plan", "--all", status=65)["error"]["code"] == "E-STACK-NONE"


def test_a_removed_stack_is_destroyed_from_a_folder_of_a_larger_repository(tmp_path: Path) -> None:
    repo = make_repo(
        tmp_path,
        {
            "infra/stackyard.yaml": "roots: [stacks]\n",
            "infra/stacks/a/main.tf": _data("x"),
            "infra/stacks/b/main.tf": _data("x"),
            "README.md": "",
        },
    )
    inside = StackRepo(root=repo.root / "infra")
    inside.run("apply", "--all")
    repo.git("rm", "-rq", "infra/stacks/a")
    repo.commit()
    gone = inside.json("destroy", "stack:a", "--allow-destroy", "terraform_data.x")
    assert gone["applied"]["remove"] == 1


def test_what_is_changed_while_others_are_applied_counts_as_not_committed(tmp_path: Path) -> None:
    changing = (
        _BACKEND + 'resource "terraform_data" "x" {\n'
        '  provisioner "local-exec" { command = "echo >> ../b/main.tf" }\n}\n'
    )
    repo = make_repo(
        tmp_path,
        {
            "stacks/a/main.tf": changing,
            "stacks/b/main.tf": _data("x"),
            "stacks/b/stack.yaml": "after: [a]\n",
        },
    )
    ended = repo.json("apply", "--all", status=1)
    assert _statuses(ended) == {"a": "applied", "b": "failed"}
    refused = next(one for one in ended["stacks"] if one["target"] == "stack:b")["error"]
    assert refused["code"] == "E-STACK-DIRTY"


def test_a_stack_stays_protected_when_its_folder_is_removed(tmp_path: Path) -> None:
    repo = make_repo(tmp_path, {"stacks/a/main.tf": _data("x"), "stacks/b/main.tf": _data("x")})
    repo.run("apply", "--all")
    repo.write({"stacks/a/stack.yaml": "protected: true\n"})
    repo.commit()
    repo.git("rm", "-rq", "stacks/a")
    repo.commit()
    refused = repo.json("destroy", "stack:a", "--allow-destroy", "terraform_data.x", status=65)["error"]
    assert refused["code"] == "E-STACK-GONE-PROTECTED"
    ended = repo.json("apply", "--all", "--allow-destroy", "stack:a", status=1)
    assert _statuses(ended) == {"a": "failed", "b": "unchanged"}
