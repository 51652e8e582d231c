"""The how-to page about stacks is true: its commands run in a repository of three stacks."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.engine import real_engine
from tests.support.pages import Reader
from tests.support.stack_repo import make_repo

from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

PAGE = "docs/howto/stacks.md"
_STORE = 'terraform {\n  backend "http" {}\n}\n'
FILES = {
    "stacks/onprem/server_a/main.tf": _STORE
    + """
    variable "bridge" { type = string }
    variable "token" {
      type      = string
      sensitive = true
      default   = ""
    }
    resource "terraform_data" "bridge" { input = var.bridge }
    output "bridge" { value = terraform_data.bridge.output }
    output "ansible_inventory" {
      value = { hosts = { web1 = { ansible_host = "10.0.0.5", groups = ["k3s"] } } }
    }
    """,
    "stacks/onprem/server_a/vms.tfvars": 'bridge = "vmbr1"\n',
    "stacks/onprem/web/main.tf": _STORE
    + """
    variable "bridge" { type = string }
    resource "terraform_data" "web" { input = var.bridge }
    """,
    "stacks/onprem/web/stack.yaml": "after:\n  - stack: onprem/server_a\n    outputs: [bridge]\n",
    "stacks/onprem/legacy/main.tf": 'resource "terraform_data" "old" { input = 1 }\n',
}
# What a reader looks for in what a block prints.
EXPECTED = (
    ("stack graph", "└── onprem/web", "onprem/legacy"),
    ("--plan plan.bin", "1 created", "vmbr1"),
    ("apply --all", "stack:onprem/web"),
    ("secrets encrypt", "Nothing to change"),
    ("stack adopt", "Moved the state of stack:onprem/legacy", "Nothing to change"),
    ("stack leave", "terraform.tfstate"),
    ("@blue", "1 created"),
    ("-target", "Planned with -target=terraform_data.bridge"),
    ("--allow-dirty", "1 changed"),
    ("git rm", "stack:onprem/legacy was removed, but its resources still exist", "1 destroyed"),
    ("stack run", "onprem/web is in"),
    ("inventory.d", "10.0.0.5"),
)


def test_the_page_can_be_followed_from_its_start_to_its_end(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", FILES)
    repo.write({".gitignore": ".stackyard/\n*.tfstate*\nplan.bin\nsecrets.tfvars\n"})
    for name, value in (("user.name", "t"), ("user.email", "t@example.org")):
        repo.git("config", name, value)
    repo.commit()
    (tmp_path / "home").mkdir()
    reader = Reader(
        folder=repo.root,
        programs=tmp_path / "bin",
        env={"STACKYARD_TOFU": str(real_engine(Flavour.TOFU).path), "HOME": str(tmp_path / "home")},
    )
    expected = iter(EXPECTED)
    command, *words = next(expected)
    for block, printed in reader.follow(PAGE):
        if command in block.script:
            missing = [word for word in words if word not in printed]
            assert missing == [], f"{block.script}\n{printed}"
            command, *words = next(expected, ("-",))
    assert command == "-"
