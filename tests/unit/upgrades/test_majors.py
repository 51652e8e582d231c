from __future__ import annotations

from pathlib import Path

from tests.support.stacks import commit, make_repository, write

from stackyard.engine.version import Flavour, Version
from stackyard.sources.stacks.repository import find_stacks
from stackyard.upgrades.majors import MajorGate, open_gate

KEY = ("provider", "registry.opentofu.org/acme/thing")


def code(constraint: str) -> str:
    return (
        "terraform {\n  required_providers {\n"
        f'    thing = {{\n      source  = "acme/thing"\n      version = "{constraint}"\n    }}\n  }}\n}}\n'
    )


def lock(version: str) -> str:
    return f'provider "{KEY[1]}" {{\n  version = "{version}"\n}}\n'


def start(folder: Path) -> Path:
    files: dict[str, str | None] = {
        "stacks/prod/main.tf": code("~> 1.0"),
        "stacks/sandbox/main.tf": code("~> 1.0"),
        "stacks/sandbox/stack.yaml": "critical: false\n",
        "stacks/sandbox/.terraform.lock.hcl": lock("1.2.0"),
    }
    return make_repository(folder, files)


async def gate(root: Path, applied: dict[str, str]) -> MajorGate:
    repository = find_stacks(root)
    return await open_gate(repository, applied, dict.fromkeys(repository.stacks, Flavour.TOFU))


async def test_the_lock_file_of_the_applied_commit_is_the_proof(tmp_path: Path) -> None:
    root = start(tmp_path)
    old = commit(root)
    target = Version.parse("2.0.1")
    before = await gate(root, {"sandbox": old})
    assert "waits until stack:sandbox was applied with 2.x" in before.refusal("prod", KEY, target)
    assert before.refusal("sandbox", KEY, target) == ""
    write(
        root, {"stacks/sandbox/.terraform.lock.hcl": lock("2.0.0"), "stacks/sandbox/main.tf": code("~> 2.0")}
    )
    new = commit(root)
    # Written and committed is not applied.
    assert (await gate(root, {"sandbox": old})).refusal("prod", KEY, target)
    after = await gate(root, {"sandbox": new})
    assert after.refusal("prod", KEY, target) == ""
    assert "3.x" in after.refusal("prod", KEY, Version.parse("3.0.0"))


async def test_a_critical_stack_or_an_unknown_commit_proves_nothing(tmp_path: Path) -> None:
    root = start(tmp_path)
    write(root, {"stacks/prod/.terraform.lock.hcl": lock("2.0.0")})
    found = await gate(root, {"prod": commit(root), "sandbox": "0" * 40})
    assert found.refusal("prod", KEY, Version.parse("2.0.0"))


async def test_before_1_0_each_minor_version_is_tried_first(tmp_path: Path) -> None:
    root = start(tmp_path)
    write(root, {"stacks/sandbox/.terraform.lock.hcl": lock("0.9.0")})
    found = await gate(root, {"sandbox": commit(root)})
    assert found.refusal("prod", KEY, Version.parse("0.9.4")) == ""
    assert "0.10.x" in found.refusal("prod", KEY, Version.parse("0.10.0"))
