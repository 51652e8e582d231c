"""A repository in a folder of a larger one: places are from the top of git, settings from the folder."""

from __future__ import annotations

from pathlib import Path

from tests.support.policy import LOCK, MODULE, STACK, check, rules_of
from tests.support.stacks import commit, git, write

EXCEPTION = "exceptions:\n  - {rule: M5, path: modules/pet, reason: x, until: 2027-01-31}\n"


def larger_repository(root: Path) -> Path:
    files = {f"infra/modules/pet/{name}": text for name, text in MODULE.items()}
    files |= {f"infra/stacks/onprem/a/{name}": text for name, text in STACK.items()}
    write(root, {**files, "infra/stackyard.yaml": "policy: []\n", "app/.env": "A=1\n", "modules/x/x.tf": ""})
    git(root, "init", "--quiet", "--initial-branch", "main")
    commit(root)
    return root / "infra"


def test_only_the_folder_is_checked(tmp_path: Path) -> None:
    result = check(larger_repository(tmp_path))
    assert result.findings == ()
    assert (result.modules, result.stacks) == (1, 1)


def test_places_are_from_the_top_and_exceptions_from_the_folder(tmp_path: Path) -> None:
    folder = larger_repository(tmp_path)
    write(folder, {"modules/pet/variables.tf": 'variable "length" {\n  description = "x"\n}\n'})
    [found] = check(folder).errors
    assert str(found.where) == "infra/modules/pet/variables.tf:1"
    write(folder, {"stackyard.yaml": EXCEPTION})
    result = check(folder)
    assert result.findings == ()
    assert len(result.excepted) == 1


def test_a_module_outside_of_the_folder_is_outside_of_the_repository(tmp_path: Path) -> None:
    folder = larger_repository(tmp_path)
    write(folder, {"stacks/onprem/a/x.tf": 'module "x" {\n  source = "../../../../modules/x"\n}\n'})
    [found] = check(folder, "M1").errors
    assert "leads out of the repository" in found.detail


def test_major_versions_are_compared_in_the_folder(tmp_path: Path) -> None:
    folder = larger_repository(tmp_path)
    write(folder, {"stacks/onprem/a/.terraform.lock.hcl": LOCK.replace("3.6.2", "4.0.0")})
    assert rules_of(check(folder, "M12", base="HEAD")) == {"M12"}
    write(folder, {"stackyard.yaml": "defaults: {critical: false}\n"})
    assert rules_of(check(folder, "M12", base="HEAD")) == set()
