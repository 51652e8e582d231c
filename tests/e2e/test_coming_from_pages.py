"""The pages for people who come from other programs are true: their files and commands work."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from tests.support.engine import real_engine
from tests.support.pages import ROOT, Reader
from tests.support.stack_repo import StackRepo, make_repo

from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

_MODULE = """
    variable "name" { type = string }
    resource "terraform_data" "bridge" { input = var.name }
    output "bridge" { value = terraform_data.bridge.output }
"""
_WEB = """
    variable "bridge" { type = string }
    resource "terraform_data" "web" { input = var.bridge }
"""


def files_of(page: str) -> dict[str, str]:
    """Return the files that a page shows, by the name in their first line."""
    text = (ROOT / page).read_text()
    return dict(re.findall(r"```(?:yaml|hcl)\n# (\S+)\n(.*?)```", text, re.DOTALL))


def follow(page: str, repo: StackRepo, tmp_path: Path) -> str:
    reader = Reader(
        folder=repo.root,
        programs=tmp_path / "bin",
        env={"STACKYARD_TOFU": str(real_engine(Flavour.TOFU).path)},
    )
    return "".join(printed for _, printed in reader.follow(page))


def apply_plainly(folder: Path, *arguments: str) -> None:
    """Apply with OpenTofu alone, as another program would."""
    tofu = real_engine(Flavour.TOFU).path
    for words in (("init",), ("apply", "-auto-approve", *arguments)):
        subprocess.run((tofu, *words, "-input=false"), cwd=folder, check=True, capture_output=True)


def test_a_unit_of_terragrunt_becomes_a_stack_and_nothing_is_replaced(tmp_path: Path) -> None:
    page = "docs/coming-from/terragrunt.md"
    repo = make_repo(
        tmp_path / "repo",
        {"modules/network/main.tf": _MODULE, "stacks/web/main.tf": _WEB, **files_of(page)},
    )
    # What Terragrunt does with a unit: the module is the root, and its state is elsewhere.
    unit = tmp_path / "unit"
    unit.mkdir()
    (unit / "main.tf").write_text((repo.root / "modules/network/main.tf").read_text())
    (repo.root / "old").mkdir()
    apply_plainly(unit, "-var", "name=vmbr1", f"-state={repo.root}/old/network.tfstate")
    printed = follow(page, repo, tmp_path)
    assert "└── web" in printed
    assert "Applied: 0 created, 0 changed, 0 destroyed." in printed
    assert re.search(r"stack:web +applied +1 created", printed)
    assert repo.actions("stack:network") == {}


def test_stacks_of_terramate_have_nothing_to_change(tmp_path: Path) -> None:
    page = "docs/coming-from/terramate.md"
    data = 'resource "terraform_data" "x" { input = 1 }\n'
    repo = make_repo(
        tmp_path / "repo", {"live/network/main.tf": data, "live/web/main.tf": data, **files_of(page)}
    )
    for name in ("network", "web"):
        apply_plainly(repo.root / "live" / name)
    repo.write({".gitignore": ".stackyard/\n*.tfstate*\n.terraform*\n"})
    repo.commit()
    printed = follow(page, repo, tmp_path)
    assert re.search(r"stack:network +unchanged", printed)
    assert re.search(r"stack:web +unchanged", printed)
    assert repo.json("stack", "list", "--changed")["stacks"] == []


def test_projects_of_atlantis_have_nothing_to_change_and_their_rules_are_read(tmp_path: Path) -> None:
    page = "docs/coming-from/atlantis-and-digger.md"
    data = 'resource "terraform_data" "x" { input = 1 }\n'
    names = ("prod/network", "prod/web")
    repo = make_repo(
        tmp_path / "repo", {**{f"live/{name}/main.tf": data for name in names}, **files_of(page)}
    )
    for name in names:
        apply_plainly(repo.root / "live" / name)
    repo.write({".gitignore": ".stackyard/\n*.tfstate*\n.terraform*\n"})
    repo.commit()
    printed = follow(page, repo, tmp_path)
    assert printed.index("prod/network") < printed.index("prod/web")
    assert re.search(r"stack:prod/web +unchanged", printed)
    # A mistake in the rules would stop every command above; a key that is none is one.
    repo.write({"stackyard.yaml": files_of(page)["stackyard.yaml"].replace("approvals", "approval")})
    assert "approval" in str(repo.json("stack", "list", status=65)["error"]["diagnostics"])
