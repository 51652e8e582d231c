"""The how-to page about upgrades is true: its commands run in a repository with a registry of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.engine import real_engine
from tests.support.pages import Reader
from tests.support.registries import serve_registries
from tests.support.stack_repo import make_repo

from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

PAGE = "docs/howto/upgrade-stacks.md"
_CALL = 'module "vm" {\n  source  = "acme/vm/proxmox"\n  version = "~> 1.0"\n}\n'
FILES = {
    "stacks/prod/main.tf": _CALL,
    "stacks/sandbox/main.tf": _CALL,
    "stacks/sandbox/stack.yaml": "critical: false\n",
}
# What a reader looks for in what a block prints.
EXPECTED = (
    ("--only vm", "~> 1.0 (stacks/prod/main.tf:3)", "2.0.0"),
    ("git diff", '+  version = "~> 1.1"', "Stacks that were changed: 2"),
    ("apply --all", "stack:prod"),
    ("sandbox --write --major", "stack:sandbox: acme/vm/proxmox: 1.1.0 -> 2.0.0"),
    ("--all --write --major", "stack:prod: acme/vm/proxmox: 1.1.0 -> 2.0.0"),
)


def test_the_page_can_be_followed_from_its_start_to_its_end(tmp_path: Path) -> None:
    for name in ("registries", "home"):
        (tmp_path / name).mkdir()
    with serve_registries(tmp_path / "registries") as registries:
        registries.modules["acme/vm/proxmox"] = ("1.0.0", "1.1.0", "2.0.0")
        for version in registries.modules["acme/vm/proxmox"]:
            text = f'resource "terraform_data" "x" {{\n  input = "{version}"\n}}\n'
            registries.module_code[f"acme/vm/proxmox/{version}"] = text
        (tmp_path / "home/.tofurc").write_text(
            'host "registry.opentofu.org" {\n  services = {\n'
            f'    "modules.v1" = "https://{registries.host}/modules/v1/"\n  }}\n}}\n'
        )
        repo = make_repo(tmp_path / "repo", FILES)
        for name, value in (("user.name", "t"), ("user.email", "t@example.org")):
            repo.git("config", name, value)
        reader = Reader(
            folder=repo.root,
            programs=tmp_path / "bin",
            env={
                **registries.environment,
                "NO_PROXY": "localhost",
                "STACKYARD_TOFU": str(real_engine(Flavour.TOFU).path),
                "HOME": str(tmp_path / "home"),
            },
        )
        expected = iter(EXPECTED)
        command, *words = next(expected)
        for block, printed in reader.follow(PAGE):
            if command in block.script:
                missing = [word for word in words if word not in printed]
                assert missing == [], f"{block.script}\n{printed}"
                command, *words = next(expected, ("-",))
        assert command == "-"
