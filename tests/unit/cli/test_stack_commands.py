"""`stackyard stack`: what its commands show a human and a program."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.cli import stackyard
from tests.support.stacks import commit, git, make_repository, write

FILES: dict[str, str | None] = {
    "infrastructure/01-hypervisors/srv01/main.tf": "locals { a = 1 }\n",
    "infrastructure/02-platforms/k8s/main.tf": 'module "vm" { source = "../../modules/vm" }\n',
    "infrastructure/02-platforms/k8s/stack.yaml": "tags: [prod]\n",
    "infrastructure/02-platforms/web/main.tf": 'variable "size" { type = number }\n',
    "infrastructure/modules/vm/main.tf": 'locals { x = file("${path.module}/motd") }\n',
    "infrastructure/modules/vm/motd": "a\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = make_repository(tmp_path, FILES)
    write(made, {"infrastructure/modules/vm/motd": "b\n"})
    return made


def test_list_shows_all_stacks_in_order_with_layers_and_tags(root: Path) -> None:
    shown = stackyard("stack", "list", "--order", cwd=root).stdout.splitlines()
    assert [line.split() for line in shown] == [
        ["stack", "layer", "tags"],
        ["01-hypervisors/srv01", "01-hypervisors"],
        ["02-platforms/k8s", "02-platforms", "prod"],
        ["02-platforms/web", "02-platforms"],
    ]
    assert stackyard("stack", "list", "--tag", "prod", cwd=root).stdout.count("02-platforms/k8s") == 1
    only = stackyard("--json", "stack", "list", "--layer", "01-hypervisors", cwd=root).document
    assert [row["name"] for row in only["stacks"]] == ["01-hypervisors/srv01"]
    wrong = stackyard("stack", "list", "--layer", "x", cwd=root)
    assert wrong.status == 64
    assert "01-hypervisors, 02-platforms" in wrong.stderr


def test_list_changed_shows_why(root: Path) -> None:
    ended = stackyard("--json", "stack", "list", "--changed", cwd=root)
    assert ended.status == 0
    [row] = ended.document["stacks"]
    assert row["name"] == "02-platforms/k8s"
    assert row["reasons"][0]["chain"] == [
        "infrastructure/modules/vm/motd",
        "infrastructure/modules/vm",
        "infrastructure/02-platforms/k8s",
    ]
    # Without git the second time, and the same.
    assert stackyard("--json", "stack", "list", "--changed", cwd=root).document == ended.document
    commit(root)
    assert "No stack differs" in stackyard("stack", "list", "--base", "HEAD", cwd=root).stdout


def test_why_says_also_why_not(root: Path) -> None:
    shown = stackyard("stack", "why", "02-platforms/k8s", cwd=root).stdout
    assert (
        "infrastructure/modules/vm/motd -> infrastructure/modules/vm -> infrastructure/02-platforms" in shown
    )
    assert "file() at infrastructure/modules/vm/main.tf:1" in shown
    assert "not selected, because nothing" in stackyard("stack", "why", "02-platforms/web", cwd=root).stdout
    wrong = stackyard("stack", "why", "02-platforms/wep", cwd=root)
    assert wrong.status == 65
    assert "Did you mean `02-platforms/web`" in wrong.stderr


def test_why_of_a_removed_stack(root: Path) -> None:
    write(root, {"infrastructure/02-platforms/web": None})
    assert stackyard("--json", "stack", "why", "02-platforms/web", cwd=root).document["is_removed"]


def test_show_has_everything(root: Path) -> None:
    document = stackyard("--json", "stack", "show", "02-platforms/k8s", cwd=root).document
    assert document["modules"] == ["infrastructure/modules/vm"]
    assert "infrastructure/modules/vm/motd" in document["reads"]
    shown = stackyard("stack", "show", "infrastructure/02-platforms/web", cwd=root).stdout
    assert "size: number, required" in shown


def test_graph_draws_the_order(root: Path) -> None:
    tree = stackyard("stack", "graph", cwd=root).stdout.splitlines()
    assert tree == ["01-hypervisors/srv01", "├── 02-platforms/k8s", "└── 02-platforms/web"]
    assert 's0["01-hypervisors/srv01"]' in stackyard("stack", "graph", "--format", "mermaid", cwd=root).stdout
    dot = stackyard("stack", "graph", "--format", "dot", cwd=root).stdout
    assert '"01-hypervisors/srv01" -> "02-platforms/k8s";' in dot


def test_a_stack_that_is_wrong_is_shown_and_fails_the_list(root: Path) -> None:
    write(root, {"infrastructure/02-platforms/web/stack.yaml": "tgs: [a]\n"})
    ended = stackyard("stack", "list", cwd=root)
    assert ended.status == 65
    assert "02-platforms/k8s" in ended.stdout
    assert "web/stack.yaml:1:1: A key is not known here" in ended.stdout
    git(root, "status")
