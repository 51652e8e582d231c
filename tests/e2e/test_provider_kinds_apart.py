"""What single kinds of the built-in provider do that no table of cases shows, and what bpg refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.engine import real_engine
from tests.support.kinds import hardware_mapping, metrics, storage
from tests.support.parity import changed
from tests.support.provider import Stack, driven, lab_table, require_bpg

from stackyard import lab
from stackyard.engine.version import Flavour

PBS = "proxmox_virtual_environment_storage_pbs.full"


@pytest.fixture
def running() -> Iterator[lab.Running]:
    with lab.running(nodes=("pve1", "pve2")) as it:
        yield it


@pytest.mark.tofu
def test_secrets_stay_what_they_are_until_they_are_taken_away(running: lab.Running, tmp_path: Path) -> None:
    """The key of backups outlives an update, and a token that no state has goes with its version."""
    text = storage.BACKUP_SERVER + metrics.TEXT
    update = {
        "backups { keep_last = 3 }": "",
        'influx_token_wo         = "hidden-canary"\n  influx_token_wo_version = 1': "",
    }

    async def scenario(stack: Stack) -> None:
        stack.write(text)
        await stack.init()
        said = await stack.apply()
        assert "The encryption key is in the state" in said
        made = await stack.values(PBS)
        kept = lab_table(running, "storage_secrets")
        assert made["encryption_key_fingerprint"] in made["generated_encryption_key"]
        assert kept["keyed-pbs"]["password"] == "second-password"
        assert lab_table(running, "metric_tokens")["hidden"] == {"token": "hidden-canary"}
        stack.write(changed(text, update))
        await stack.apply()
        after = await stack.values(PBS)
        assert after["generated_encryption_key"] == made["generated_encryption_key"]
        assert "prune-backups" not in lab_table(running, "storages")["full-pbs"]
        assert "hidden" not in lab_table(running, "metric_tokens")

    driven(real_engine(Flavour.TOFU), running, tmp_path, scenario)


@pytest.mark.bpg
@pytest.mark.tofu
@pytest.mark.timeout(300)
def test_bpg_can_neither_change_a_backup_server_nor_rename_a_mapping(
    running: lab.Running, tmp_path: Path
) -> None:
    require_bpg()
    pbs = next(case for case in storage.CASES if case.id == "storage-pbs")
    mapping = hardware_mapping.CASES[0]

    async def scenario(stack: Stack) -> None:
        stack.write(pbs.text + mapping.text)
        await stack.init()
        await stack.apply(bpg=True)
        for case in (pbs, mapping):
            changes = case.update if case is pbs else case.replace
            stack.write(changed(pbs.text + mapping.text, changes))
            said = await stack.run("apply", "-auto-approve", "-input=false", "-no-color", status=1, bpg=True)
            expected = "unknown value" if case is pbs else "Could not update"
            assert expected in said, said

    driven(real_engine(Flavour.TOFU), running, tmp_path, scenario)


DISABLED = """
resource "proxmox_backup_job" "one" {
  id           = "one"
  schedule     = "*-*-* 02:00"
  storage      = "local"
  all          = true
  exclude_path = ["/tmp/*", "/var/cache"]
}
resource "proxmox_virtual_environment_vm" "one" {
  node_name = "pve1"
  vm_id     = 4400
  started   = false
}
resource "proxmox_haresource" "one" {
  resource_id = "vm:${proxmox_virtual_environment_vm.one.vm_id}"
  state       = "ignored"
}
resource "proxmox_harule" "one" {
  rule      = "one"
  type      = "node-affinity"
  nodes     = { pve1 = 1 }
  resources = [proxmox_haresource.one.resource_id]
  disable   = true
}
"""


@pytest.mark.bpg
@pytest.mark.tofu
@pytest.mark.timeout(300)
def test_bpg_can_neither_read_excluded_paths_nor_put_a_rule_into_force_again(
    running: lab.Running, tmp_path: Path
) -> None:
    require_bpg()
    enabled = changed(DISABLED, {"disable   = true": ""})

    async def scenario(stack: Stack) -> None:
        stack.write(DISABLED)
        await stack.init()
        await stack.apply()
        said = await stack.plan(status=1, bpg=True)
        assert "cannot unmarshal array" in " ".join(said.split()), said
        stack.write(enabled)
        target = ("-target=proxmox_harule.one", "-auto-approve", "-input=false", "-no-color")
        said = await stack.run("apply", *target, status=1, bpg=True)
        assert ".disable: was cty.False, but now cty.True" in said, said
        await stack.apply()
        assert "disable" not in lab_table(running, "ha_rules")["one"]
        await stack.destroy()

    driven(real_engine(Flavour.TOFU), running, tmp_path, scenario)
