"""Own OpenTofu code beside a site joins the configuration of its envs, from the plan to the destruction."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.engine import real_engine
from tests.support.path import SMALL_GUEST, Yard, make_yard, mirror_of

from stackyard import lab
from stackyard.engine.version import Flavour
from stackyard.path.environment import EnvironmentSource

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

# A record for each guest, from a template beside the code and a module elsewhere in the site.
RECORDS = """
variable "guests" {}
variable "env" {}
module "suffix" {
  source = "../../modules/suffix"
}
resource "terraform_data" "record" {
  for_each = var.guests
  input    = templatefile("${path.module}/templates/record.tpl", { guest = each.value, env = var.env })
}
output "records" {
  value = { for key, record in terraform_data.record : key => "${record.output}${module.suffix.text}" }
}
"""
TEMPLATE = (
    "${guest.name} ${guest.type} ${guest.vm_id} ${guest.node} "
    '${join(",", guest.ipv4)} ${env.name} ${env.node}'
)
POOL = """
terraform {
  required_providers {
    proxmox = { source = "bpg/proxmox" }
  }
}
resource "proxmox_virtual_environment_pool" "mine" {
  pool_id = "mine"
}
"""


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    with lab.running(nodes=("pve1",), ssh_port=0) as running:
        made = make_yard(running, tmp_path / "site", STACKYARD_TOFU=str(real_engine(Flavour.TOFU).path))
        made.write_env("dev", [SMALL_GUEST])
        yield made


def write(yard: Yard, name: str, text: str) -> Path:
    path = yard.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def write_records(yard: Yard) -> None:
    write(yard, "envs/dev.tf/main.tf", RECORDS)
    write(yard, "envs/dev.tf/templates/record.tpl", TEMPLATE)
    write(yard, "modules/suffix/main.tf", 'output "text" {\n  value = "."\n}\n')


def actions(document: dict[str, Any]) -> dict[str, str]:
    changes = document.get("changes", document.get("managed", ()))
    return {change["address"]: change["action"] for change in changes}


def pools(yard: Yard) -> set[str]:
    """Return the pools of the lab."""
    return yard.running.on_loop(lambda: set(yard.running.world.store.items("pools")))


def refused_names(yard: Yard, *command: str) -> str:
    """Run a command that the guard refuses; return the names that it asks for."""
    words = shlex.split(yard.json(*command, status=1)["error"]["remedy"])
    return words[words.index("--allow-destroy") + 1]


def test_own_code_uses_the_guests_and_lives_and_goes_with_its_env(yard: Yard) -> None:
    write_records(yard)
    assert "module.own" in yard.run("explain", "dev").stdout
    assert "1 code file" in yard.run("site", "validate").stdout
    planned = yard.json("plan", "dev")
    assert actions(planned)['module.own.terraform_data.record["web"]'] == "create"
    assert planned["outputs"] == ["records"]
    yard.run("apply", "dev", "--yes")
    outputs = yard.json("output", "dev")
    (address,) = outputs["guests"]["web"]["ipv4"]
    assert outputs["outputs"] == {"records": {"web": f"web ct 101 pve1 {address} dev pve1."}}
    assert yard.json("plan", "dev")["has_changes"] is False
    assert actions(yard.json("drift", "dev", "--detailed-exitcode")) == {}
    write(yard, "envs/dev.tf/templates/record.tpl", "other ${env.name}")
    drift = yard.json("drift", "dev", "--detailed-exitcode", status=2)
    assert actions(drift) == {'module.own.terraform_data.record["web"]': "update"}
    yard.run("apply", "dev", "--yes")
    assert yard.json("output", "dev")["outputs"] == {"records": {"web": "other dev."}}
    # An output alone is a change too: it would never get its value.
    write(yard, "modules/suffix/main.tf", 'output "text" {\n  value = "!"\n}\n')
    planned = yard.json("plan", "dev", "--detailed-exitcode", status=2)
    assert (planned["changes"], planned["outputs"]) == ([], ["records"])
    yard.run("apply", "dev", "--yes")
    assert yard.json("output", "dev")["outputs"] == {"records": {"web": "other dev!"}}
    names = refused_names(yard, "destroy", "dev", "--yes")
    yard.run("destroy", "dev", "--yes", "--allow-destroy", names)
    assert yard.guests() == {}
    assert yard.json("output", "dev") == {"target": "env:dev", "guests": {}}


def test_a_plan_of_own_code_needs_no_second_start_of_the_engine(yard: Yard, tmp_path: Path) -> None:
    write_records(yard)
    starts = tmp_path / "starts"
    engine = write(
        yard, "../engine", f'#!/bin/sh\necho "$1" >> {starts}\nexec {yard.env["STACKYARD_TOFU"]} "$@"\n'
    )
    engine.chmod(0o755)
    counted = yard.with_env(STACKYARD_TOFU=str(engine))
    assert counted.json("plan", "dev")["has_changes"] is True
    assert "show" not in starts.read_text().split()
    # A template needs nothing to be installed; another module does.
    write(yard, "envs/dev.tf/templates/record.tpl", "x")
    starts.unlink()
    counted.run("plan", "dev")
    assert "init" not in starts.read_text().split()
    write(yard, "envs/dev.tf/more.tf", 'module "more" {\n  source = "../../modules/suffix"\n}\n')
    counted.run("plan", "dev")
    assert "init" in starts.read_text().split()


def test_what_a_removed_folder_made_goes_only_by_name_and_is_destroyed_without_it(yard: Yard) -> None:
    write_records(yard)
    write(yard, "envs/dev.tf/pool.tofu", POOL)
    yard.run("apply", "dev", "--yes")
    assert "mine" in pools(yard)
    shutil.rmtree(yard.folder / "envs/dev.tf")
    assert yard.codes("apply", "dev", "--yes") == ["E-GUARD-DESTROYS-OBJECT"] * 2
    names = refused_names(yard, "destroy", "dev", "--yes")
    yard.run("destroy", "dev", "--yes", "--allow-destroy", names)
    assert "mine" not in pools(yard)


def test_a_saved_plan_is_moved_by_a_changed_own_file(yard: Yard) -> None:
    write_records(yard)
    yard.run("plan", "dev", "--out", "dev.plan")
    for name in ("envs/dev.tf/templates/record.tpl", "modules/suffix/main.tf"):
        before = (yard.folder / name).read_text()
        write(yard, name, f"{before}\n")
        assert yard.json("apply", "dev", "--plan", "dev.plan", status=65)["error"]["code"] == "E-PLAN-MOVED"
        write(yard, name, before)
    yard.run("apply", "dev", "--plan", "dev.plan")
    assert list(yard.guests()) == [101]


def test_code_for_all_envs_joins_each_and_nothing_else(yard: Yard) -> None:
    yard.write_env("other", [])
    write(
        yard,
        "extra/all.tf.json",
        '{"variable": {"env": {}}, "output": {"env": {"value": "${var.env.name}"}},'
        ' "resource": {"terraform_data": {"all": {"input": "${var.env.name}"}}}}',
    )
    write(yard, "envs/dev.tf/own.tf", 'output "own" {\n  value = 1\n}\n')
    for env in ("dev", "other"):
        yard.run("apply", env, "--yes")
    assert yard.json("output", "dev")["outputs"] == {"env": "dev", "own": 1}
    assert yard.json("output", "other")["outputs"] == {"env": "other"}
    # An env without guests whose code makes something is not empty.
    assert yard.json("plan", "other")["has_changes"] is False
    shutil.rmtree(yard.folder / "extra")
    assert yard.json("plan", "other", status=65)["error"]["code"] == "E-INPUT-EMPTY"
    assert actions(yard.json("plan", "site:shared")) == {}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('resource "terraform_data" "x" {\n  input = nope\n}\n', 2),
        ('resource "terraform_data" "x" {\n  input = "a\n}\n', 2),
        ('module "gone" {\n  source = "./gone"\n}\n', 1),
    ],
)
def test_a_mistake_is_named_with_the_users_file_and_line_and_nothing_is_changed(
    yard: Yard, text: str, line: int
) -> None:
    write(yard, "envs/dev.tf/wrong.tf", text)
    ended = yard.run("apply", "dev", "--yes", status=None)
    assert ended.status != 0
    assert f"envs/dev.tf/wrong.tf:{line}" in ended.stderr
    assert yard.guests() == {}


def test_a_secret_reaches_own_code_and_is_shown_nowhere(yard: Yard, tmp_path: Path) -> None:
    secret = "only-for-own-code-4711"
    write(
        yard,
        "envs/dev.tf/main.tf",
        'variable "token" {\n  type      = string\n  sensitive = true\n}\n'
        'resource "terraform_data" "uses" {\n  input = sha256(var.token)\n}\n'
        'output "token" {\n  value     = var.token\n  sensitive = true\n}\n',
    )
    error = yard.json("plan", "dev", status=65)["error"]
    (found,) = error["diagnostics"]
    assert found["code"] == "E-OWN-CODE-VARIABLE"
    assert found["where"]["file"].endswith("envs/dev.tf/main.tf")
    assert found["where"]["line"] == 1
    editor = tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\nprintf 'variables:\\n  token: {secret}\\n' >> \"$1\"\n")
    editor.chmod(0o755)
    yard.with_env(EDITOR=str(editor)).run("secrets", "edit", "secrets.yaml")
    printed = [
        yard.run(*command) for command in (("plan", "dev"), ("apply", "dev", "--yes"), ("output", "dev"))
    ]
    assert "(sensitive)" in printed[-1].stdout
    assert all(secret not in ended.stdout + ended.stderr for ended in printed)
    work = yard.folder / ".stackyard/work"
    written = [Path(above, name) for above, _, names in os.walk(work) for name in names]
    assert written
    assert all(secret.encode() not in path.read_bytes() for path in written if path.is_file())


def test_code_that_would_not_be_read_is_an_error(yard: Yard) -> None:
    write(yard, "envs/dev.tf", "")
    error = yard.json("plan", "dev", status=65)["error"]
    assert [found["code"] for found in error["diagnostics"]] == ["E-OWN-CODE-FILE"]
    assert "envs/dev.tf/main.tf" in error["diagnostics"][0]["detail"]
    (yard.folder / "envs/dev.tf").unlink()
    write(yard, "envs/dve.tf/main.tf", RECORDS)
    error = yard.json("plan", "env:dve", status=65)["error"]
    assert [found["code"] for found in error["diagnostics"]] == ["E-OWN-CODE-ENV"]
    assert "Did you mean `dev`?" in error["diagnostics"][0]["detail"]
    assert yard.json("site", "validate", status=65)["error"]["diagnostics"] == error["diagnostics"]
    # It stops no other env, which says so.
    assert "envs/dve.tf" in yard.run("plan", "dev").stderr


def test_a_run_that_waited_sees_a_changed_own_file(yard: Yard) -> None:
    write_records(yard)
    source = EnvironmentSource.find(str(yard.folder))
    assert source.is_current()
    for name in ("envs/dev.tf/templates/record.tpl", "modules/suffix/main.tf", "extra/new.tf"):
        write(yard, name, "# another\n")
        assert not source.is_current()
        source = EnvironmentSource.find(str(yard.folder))


def test_a_guest_of_own_code_is_left_to_that_code(yard: Yard) -> None:
    write(
        yard,
        "envs/dev.tf/vm.tf",
        'variable "env" {}\nterraform {\n  required_providers {\n'
        '    proxmox = { source = "bpg/proxmox" }\n  }\n}\n'
        'resource "proxmox_virtual_environment_vm" "mine" {\n'
        '  name      = "mine"\n  node_name = var.env.node\n  vm_id     = 777\n  started   = false\n}\n',
    )
    applied = yard.json("apply", "dev", "--yes")
    assert applied["inventory"]["error"] is None
    assert set(yard.guests()) == {101, 777}
    assert set(yard.json("output", "dev")["guests"]) == {"web"}
    assert yard.json("plan", "dev")["has_changes"] is False
    assert yard.json("drift", "dev")["unmanaged"] == []


@pytest.mark.skipif("STACKYARD_TEST_BPG" not in os.environ, reason="STACKYARD_TEST_BPG names no provider")
def test_proxmox_in_own_code_is_served_by_bpg_where_the_run_says_so(yard: Yard, tmp_path: Path) -> None:
    write(yard, "envs/dev.tf/pool.tf", POOL)
    yard.write_env("dev", [])
    binary, engine = Path(os.environ["STACKYARD_TEST_BPG"]), Path(yard.env["STACKYARD_TOFU"])
    bpg = yard.with_env(STACKYARD_TOFU_CONFIG=str(mirror_of(binary, engine, tmp_path / "bpg")))
    bpg.run("apply", "dev", "--yes", "--provider", "bpg")
    assert "mine" in pools(yard)
    assert yard.json("plan", "dev")["has_changes"] is False
