"""Attacks on a control machine by files of a pull request: each is found before anything is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.gitops_repo import PullRepository

from stackyard.gitops.code_check import check_code
from stackyard.gitops.model import CodeRisk
from stackyard.gitops.targets import find_changed_targets
from stackyard.sources.store import ChosenStore

EXTERNAL = 'data "external" "z" { program = ["id"] }\n'
MAIN = """
terraform {
  required_providers { proxmox = { source = "bpg/proxmox" } }
}
provider "proxmox" {
  endpoint = local.where
  # insecure = true
}
locals { where = "https://${var.host}:8006" }
variable "host" { default = "pve.example.org" }
data "external" "facts" { program = ["sh", "${path.module}/run.sh"] }
output "t" { value = templatefile("${path.module}/t.tftpl", {}) }
"""
FILES: dict[str, str | None] = {
    "stacks/web/main.tf": MAIN,
    "stacks/web/run.sh": "echo {}\n",
    "stacks/web/t.tftpl": "hello\n",
    "stacks/web/notes.txt": "notes\n",
    "modules/vm/main.tf": 'variable "host" { default = "pve.example.org" }\n',
}


def more(text: str, name: str = "more.tf") -> dict[str, str | None]:
    return {f"stacks/web/{name}": text}


def changed(old: str, new: str) -> dict[str, str | None]:
    assert old in MAIN
    return {"stacks/web/main.tf": MAIN.replace(old, new)}


ATTACKS = {
    # Engines follow a link of such a name.
    "code behind a link": (
        {"stacks/web/notes.txt": EXTERNAL, "stacks/web/more.tf": "-> notes.txt"},
        CodeRisk.PROGRAM,
        'data "external" "z"',
    ),
    # The block that runs it is on the base branch, in the same words.
    "a program that is trusted gets another text": (
        {"stacks/web/run.sh": "touch /tmp/it-ran\n"},
        CodeRisk.PROGRAM,
        "a part of what",
    ),
    "a program that is trusted, elsewhere": (
        {"stacks/db/main.tf": MAIN, "stacks/db/run.sh": "id\n", "stacks/web/main.tf": f"{MAIN}# db\n"},
        CodeRisk.PROGRAM,
        "a part of what",
    ),
    "a file that a program loads": ({"stacks/web/lib/x.py": "import os\n"}, CodeRisk.PROGRAM, "a part of"),
    "a local that is the address of a provider": (
        changed('"https://${var.host}:8006"', '"https://evil.example"'),
        CodeRisk.PROVIDER,
        "where, which a provider takes",
    ),
    "a default that is a part of that address": (
        changed('default = "pve.example.org"', 'default = "evil.example"'),
        CodeRisk.PROVIDER,
        "host, which a provider takes",
    ),
    "the input of a module that has a provider": (
        more('module "vm" {\n  source = "../../modules/vm"\n  host = "evil.example"\n}\n'),
        CodeRisk.PROVIDER,
        "host, which a provider takes",
    ),
    "a value for a local": (more('host = "evil.example"\n', "terraform.tfvars"), CodeRisk.PROVIDER, "host"),
    "a comment that becomes a setting": (
        changed("# insecure", "#\n insecure"),
        CodeRisk.PROVIDER,
        'provider "proxmox"',
    ),
    "a template that reads": (
        more('${file("/etc/passwd")}\n', "t.tftpl"),
        CodeRisk.PATH,
        "a template that reads files: file",
    ),
    "a template that reads, with a comment in the call": (
        more('${ file /* ( */ ("/etc/passwd")}\n', "t.tftpl"),
        CodeRisk.PATH,
        "a template that reads files: file",
    ),
    "a template of a value": (
        more('output "x" { value = templatestring(local.where, {}) }\n'),
        CodeRisk.PATH,
        "a template of a value",
    ),
    # An engine takes both; a reader of JSON only the last one.
    "a name twice in JSON": (
        more('{"data":{"external":{"q":{"program":["id"]}}},"data":{"terraform_data":{}}}', "m.tf.json"),
        CodeRisk.ENGINE,
        "cannot be read",
    ),
    "a label with an escape": (
        more('data "ext\\u0065rnal" "z" { program = ["id"] }\n'),
        CodeRisk.PROGRAM,
        'data "external" "z"',
    ),
    "a label without quotes": (more('data external z { program = ["id"] }\n'), CodeRisk.PROGRAM, "external"),
    "a nested module": (
        more('module "vm" { source = "../../modules/vm" }\n') | {"modules/vm/in.tofu": EXTERNAL},
        CodeRisk.PROGRAM,
        'data "external" "z"',
    ),
    "a module behind a link": (
        more('module "x" { source = "./out/x" }\n') | {"stacks/web/out": "-> /tmp"},
        CodeRisk.PATH,
        "a link to /tmp",
    ),
    "the name of a file with a line end": (more(EXTERNAL, "a\n`b` <b>.tf"), CodeRisk.PROGRAM, "external"),
    "files of a folder outside": (
        more('output "x" { value = fileset(path.module, "../../../../*") }\n'),
        CodeRisk.PATH,
        "outside",
    ),
}  # fmt: skip


async def find(
    folder: Path, change: dict[str, str | None], files: dict[str, str | None] | None = None
) -> list[tuple[CodeRisk, str]]:
    pull = PullRepository(folder)
    base, head = pull.commit(files or FILES), pull.commit(change, branch="work")
    checkouts = await pull.fetched()
    store = ChosenStore(base=folder / "store" / ".stackyard")
    async with checkouts.merge_result(base, head) as checkout:
        changes = await find_changed_targets(checkouts, checkout, base, store)
        assert changes.targets, "the change selects nothing"
        found = await check_code(checkouts, checkout, base, changes)
    return [(one.risk, one.detail) for one in found.get("stack:web", ())]


@pytest.mark.parametrize(("change", "risk", "detail"), ATTACKS.values(), ids=ATTACKS)
async def test_an_attack_by_files_is_found(
    tmp_path: Path, change: dict[str, str | None], risk: CodeRisk, detail: str
) -> None:
    seen = await find(tmp_path, change)
    assert any(one is risk and detail in text for one, text in seen), seen


@pytest.mark.parametrize(
    "change",
    [
        more("hello ${name}\n", "t.tftpl"),
        more('resource "terraform_data" "x" { input = var.host }\n'),
        {"README.md": "a page\n", "stacks/web/main.tf": f"{MAIN}# a word\n"},
    ],
)
async def test_plain_changes_beside_what_is_trusted_need_nobody(
    tmp_path: Path, change: dict[str, str | None]
) -> None:
    seen = await find(tmp_path, change)
    # What lies beside a program that each plan runs may be a part of it.
    is_beside = "stacks/web/t.tftpl" in change
    assert bool(seen) is is_beside, seen


BACKEND = """
terraform {
  backend "s3" {
    bucket = "states"
    key = "web"
    workspace_key_prefix = "w"
  }
}
"""


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        ({"stacks/web/backend.tf": BACKEND.replace('"web"', '"db"')}, 'another state: key="db"'),
        (
            {"stacks/web/backend.tf": None, "stacks/web/other.tf": BACKEND.replace('"web"', '"db"')},
            'another state: key="db"',
        ),
        (
            {"stacks/web/backend.tf": BACKEND.replace('    workspace_key_prefix = "w"\n', "")},
            'another state: without workspace_key_prefix="w"',
        ),
        ({"stacks/web/backend.tf": f"# a word\n{BACKEND}"}, ""),
        ({"stacks/web/backend.tf": None, "stacks/web/terraform.tf": BACKEND}, ""),
    ],
)
async def test_a_stack_that_is_there_gets_no_other_state(
    tmp_path: Path, change: dict[str, str | None], detail: str
) -> None:
    files: dict[str, str | None] = {
        "stacks/web/backend.tf": BACKEND,
        "stacks/web/main.tf": "locals { a = 1 }\n",
    }
    seen = await find(tmp_path, change, files)
    assert [text for _, text in seen] == ([detail] if detail else [])


async def test_a_new_stack_has_a_state_of_its_own(tmp_path: Path) -> None:
    files: dict[str, str | None] = {"stacks/web/backend.tf": BACKEND}
    own = {"stacks/db/backend.tf": BACKEND.replace('"web"', '"db"'), "stacks/web/main.tf": "locals {}\n"}
    assert await find(tmp_path, dict(own), files) == []
