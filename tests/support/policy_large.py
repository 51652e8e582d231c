"""A repository with many modules that keep every rule, and one stack for every twenty of them."""

from __future__ import annotations

from pathlib import Path

from tests.support.policy import MODULE, STACK
from tests.support.stacks import commit, git, write

__all__ = ["write_large_policy"]

_MODULES_OF_A_STACK = 20


def write_large_policy(root: Path, modules: int) -> None:
    """Write and commit it."""
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "--quiet", "--initial-branch", "main")
    git(root, "config", "gc.auto", "0")
    files: dict[str, str | None] = {}
    for number in range(modules):
        # No two files are the same, as in a real repository.
        for name, text in MODULE.items():
            mark = f"\n<!-- {number} -->\n" if name.endswith(".md") else f"\n# {number}\n"
            files[f"modules/m{number:04}/{name}"] = f"{text}{mark}"
    for number in range(modules // _MODULES_OF_A_STACK):
        for name, text in STACK.items():
            files[f"stacks/onprem/s{number:03}/{name}"] = text
        folder = f"stacks/onprem/s{number:03}"
        files[f"{folder}/backend.tf"] = str(STACK["backend.tf"]).replace("onprem/a", f"onprem/s{number:03}")
        first = number * _MODULES_OF_A_STACK
        files[f"{folder}/main.tf"] = "".join(
            f'module "m{one}" {{\n  source = "../../../modules/m{one:04}"\n  length = var.length\n}}\n'
            for one in range(first, first + _MODULES_OF_A_STACK)
        )
    write(root, files)
    commit(root)
    git(root, "repack", "-a", "-d", "--quiet")
