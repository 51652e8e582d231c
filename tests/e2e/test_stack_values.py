"""Values of a stack's variables on their way to the real engines: they arrive, and are seen nowhere else."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.engine import engine, real_engine, scripted_engine, workdir_in, write_root
from tests.support.judges import find_judge
from tests.support.secrets import DATA, keyring
from tests.unit.sources.stacks.test_tfvars import TEXT

from stackyard.base import events
from stackyard.engine import failures, statefile, tofu
from stackyard.engine.version import Engine, Flavour
from stackyard.engine.workdir import Workdir
from stackyard.secrets.var_file import PrivateVarFile
from stackyard.secrets.vault.file import seal_whole
from stackyard.sources.stacks.model import Stack
from stackyard.sources.stacks.tfvars import read_tfvars
from stackyard.sources.stacks.var_files import StackVarFiles, find_var_files

__all__ = ["engine"]

SECRET = "hunter2-${not.evaluated}"
SECRETS = b'# kept\npassword = "hunter2-$${not.evaluated}"\n'
ROOT = """
variable "vms" {
  type = map(object({ cores = number }))
}

variable "password" {
  type      = string
  sensitive = true
}

resource "terraform_data" "vm" {
  for_each = var.vms
  input    = each.value.cores
}

resource "terraform_data" "login" {
  input = var.password
}
"""
VMS = "vms = {\n  web = { cores = 2 }\n}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "stack"
    write_root(folder, ROOT)
    (folder / "vms.tfvars").write_text(VMS)
    (folder / "secrets.tfvars").write_bytes(seal_whole(SECRETS, keyring()))
    return folder


async def find(folder: Path) -> StackVarFiles:
    return await find_var_files(Stack(name="stack", folder=folder, path="stack"), keyring=keyring())


def workdir(engine: Engine, folder: Path, *files: Path | PrivateVarFile, **more: Any) -> Workdir:
    return workdir_in(engine, folder, var_files=files, **more)


async def test_a_vaulted_value_arrives_and_is_in_no_argument_file_or_event(
    engine: Engine, folder: Path, tmp_path: Path
) -> None:
    recorder = f'cat /proc/$$/cmdline /proc/$$/environ >>{tmp_path}/seen; exec {engine.path} "$@"'
    (tmp_path / "bin").mkdir()
    recorded = scripted_engine(tmp_path / "bin", recorder, engine.flavour)
    found = await find(folder)
    used = workdir(recorded, folder, *found.passed, redactor=found.redactor())
    seen: list[events.Event] = []
    await tofu.init(used, emit=seen.append)
    await tofu.plan(used, tmp_path / "plan", emit=seen.append)
    document = await tofu.show_plan(used, tmp_path / "plan")
    assert document["variables"]["password"]["value"] == SECRET
    assert document["variables"]["vms"]["value"] == {"web": {"cores": 2}}

    words = (tmp_path / "seen").read_bytes()
    assert b"-var-file=/dev/fd/" in words
    assert b"hunter2" not in words
    assert "hunter2" not in repr(seen)
    # The plan itself is what holds every value.
    (tmp_path / "plan").unlink()
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in left if b"hunter2" in path.read_bytes()]

    await tofu.plan(used, tmp_path / "plan")
    await tofu.apply(used, tmp_path / "plan", emit=seen.append)
    assert "hunter2" not in repr(seen)
    assert len(await statefile.state_list(used)) == 2


async def test_broken_content_is_placed_in_the_users_file_and_not_quoted(
    engine: Engine, folder: Path, tmp_path: Path
) -> None:
    """The reader of stacks refuses it first; the engine's own message must be as safe."""
    users = folder / "secrets.tfvars"
    broken = PrivateVarFile(path=users, content=b'vms = {}\npassword = "s3cret\n')
    used = workdir(engine, folder, broken)
    await tofu.init(workdir(engine, folder, folder / "vms.tfvars"))
    seen: list[events.Event] = []
    with pytest.raises(failures.TofuError) as caught:
        await tofu.plan(used, tmp_path / "plan", emit=seen.append)
    assert str(caught.value.where).startswith(f"{users}:2")
    assert "s3cret" not in str(caught.value) + repr(caught.value.findings) + repr(seen)
    assert "/dev/fd" not in repr(caught.value.findings)

    with pytest.raises(failures.TofuError) as caught:
        await statefile.import_resource(used, "terraform_data.login", "x")
    assert any(f"on {users} line 2" in finding.detail for finding in caught.value.findings)
    assert "s3cret" not in str(caught.value) + repr(caught.value.findings)


async def test_a_value_of_the_wrong_type_is_placed_and_not_shown(
    engine: Engine, folder: Path, tmp_path: Path
) -> None:
    (folder / "more.tf").write_text('variable "port" {\n  type = number\n}\n')
    secret = seal_whole(SECRETS + b'port = "not-a-number-s3cret"\n', keyring())
    (folder / "secrets.tfvars").write_bytes(secret)
    found = await find(folder)
    used = workdir(engine, folder, *found.passed, redactor=found.redactor())
    await tofu.init(workdir(engine, folder))
    with pytest.raises(failures.TofuError) as caught:
        await tofu.plan(used, tmp_path / "plan")
    places = {(one.where.path, one.where.line) for one in caught.value.findings if one.where is not None}
    # OpenTofu, which evaluates variables early, names the declaration alone.
    declared, users = (str(folder / "more.tf"), 1), (str(folder / "secrets.tfvars"), 3)
    assert places == {declared if engine.flavour is Flavour.TOFU else users}
    assert "s3cret" not in str(caught.value) + repr(caught.value.findings)


async def test_an_undeclared_value_is_reported_under_the_users_name(
    engine: Engine, folder: Path, tmp_path: Path
) -> None:
    extra = PrivateVarFile(path=folder / "other.secret.tfvars", content=b"unknown = 1\n")
    used = workdir(engine, folder, *(await find(folder)).passed, extra)
    await tofu.init(used)
    planned = await tofu.plan(used, tmp_path / "plan")
    (warning,) = planned.warnings
    assert "other.secret.tfvars" in warning.detail
    assert "/dev/fd" not in warning.detail


@pytest.fixture
def opentofu() -> Engine:
    return real_engine(Flavour.TOFU)


@pytest.mark.tofu
async def test_opentofu_uses_the_values_in_a_backend_at_every_verb(opentofu: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "stack"
    write_root(
        folder, 'variable "place" {}\nterraform {\n  backend "local" {\n    path = var.place\n  }\n}\n'
    )
    (folder / "more.tf").write_text('resource "terraform_data" "a" {}\n')
    content = f'place = "{tmp_path}/kept.tfstate"\n'.encode()
    used = workdir(opentofu, folder, PrivateVarFile(path=folder / "secrets.tfvars", content=content))
    await tofu.init(used)
    await tofu.plan(used, tmp_path / "plan")
    await tofu.apply(used, tmp_path / "plan")
    assert (tmp_path / "kept.tfstate").exists()
    assert await statefile.state_list(used) == ("terraform_data.a",)
    assert await tofu.output(used) == {}
    assert await tofu.validate(used) == ()
    snapshot = await statefile.state_pull(used)
    assert snapshot is not None
    await statefile.state_rm(used, ("terraform_data.a",))


async def test_the_engine_reads_the_same_values_as_our_reader(engine: Engine, tmp_path: Path) -> None:
    ours = {name: one.value for name, one in read_tfvars(TEXT, "x.tfvars").variables.items()}
    folder = tmp_path / "stack"
    write_root(folder, "".join(f'variable "{name}" {{}}\n' for name in ours))
    used = workdir(engine, folder, PrivateVarFile(path=tmp_path / "x.tfvars", content=TEXT))
    await tofu.init(used)
    await tofu.plan(used, tmp_path / "plan")
    document = await tofu.show_plan(used, tmp_path / "plan")
    assert {name: one["value"] for name, one in document["variables"].items()} == ours


@pytest.mark.judges("ansible-vault")
async def test_a_file_made_by_ansible_vault_is_read(folder: Path) -> None:
    vault = str(find_judge("ansible-vault"))
    (folder / "secrets.tfvars").write_bytes(SECRETS)
    env = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    command = [vault, "encrypt", "--vault-password-file", str(DATA / "vault-password.txt"), "secrets.tfvars"]
    subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True, timeout=120)
    found = await find(folder)
    assert found.passed[1] == PrivateVarFile(path=folder / "secrets.tfvars", content=SECRETS)
