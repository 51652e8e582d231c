"""The stacks of a house with two Proxmox servers and a cloud, as its people work with them every day."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli import PROGRAM
from tests.support.engine import real_engine
from tests.support.import_seed import SEED
from tests.support.lab import proxmoxer_client
from tests.support.opa import put_on_path
from tests.support.path import mirror_of
from tests.support.provider import bpg_binary, lab_table, require_bpg
from tests.support.stack_lab import CLOUD, A, B, make_lab_repo, vms, write_secrets
from tests.support.stack_repo import StackRepo

from stackyard import lab
from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(120)]

_WEB = {"web-vm-01": 301, "web-vm-02": 302}
_DNS = {"dns-01": 310}


@dataclass(frozen=True, kw_only=True)
class House:
    """The repository, and the lab that its Proxmox stacks are for."""

    repo: StackRepo
    running: lab.Running

    def folder(self, stack: str) -> Path:
        return self.repo.root / "tofu/stacks" / stack

    def write_vms(self, stack: str, web: dict[str, int], **more: int) -> None:
        """Write the data file of a stack of the first server."""
        text = vms("pve1", {"web": ("qemu", web), "dns": ("lxc", _DNS)}, **more)
        (self.folder(stack) / "vms.tfvars").write_text(text)

    def guests(self) -> dict[int, dict[str, Any]]:
        return {int(key): guest for key, guest in lab_table(self.running, "guests").items()}

    def selected(self) -> list[str]:
        """Return the stacks that an apply would work on."""
        return [one["target"] for one in self.repo.json("plan", "--changed")["stacks"]]

    def changed(self) -> list[str]:
        """Return the stacks that differ from the default branch."""
        return [one["name"] for one in self.repo.json("stack", "list", "--changed")["stacks"]]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    seed = replace(SEED, calls=())
    with lab.running(nodes=("pve1", "pve2"), seed=seed) as running:
        yield House(repo=make_lab_repo(tmp_path / "repo", running), running=running)


def test_a_vm_is_added_reviewed_merged_and_applied_and_leaves_only_when_it_is_named(house: House) -> None:
    repo = house.repo
    repo.run("apply", "--all")
    assert set(house.guests()) == {301, 302, 310, 410}
    assert house.selected() == []
    # The daily workflow.
    repo.git("checkout", "-q", "-b", "feature/add-web-vm-03")
    house.write_vms(A, {**_WEB, "web-vm-03": 303})
    new = 'module.vm["web-vm-03"].proxmox_virtual_environment_vm.this'
    assert repo.actions(f"stack:{A}") == {new: "create"}
    assert house.changed() == [A]
    repo.commit("feat: Add new web-vm-03 to proxmox server A")
    assert house.changed() == [A]
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--ff-only", "feature/add-web-vm-03")
    assert house.selected() == [f"stack:{A}"]
    applied = repo.json("apply", "--changed")
    assert [(one["target"], one["status"]) for one in applied["stacks"]] == [(f"stack:{A}", "applied")]
    assert house.guests()[303]["config"]["name"] == "web-vm-03"
    assert house.guests()[303]["status"] == "running"
    assert house.selected() == []
    # It is taken out of the data file: that alone destroys nothing.
    house.write_vms(A, _WEB)
    repo.commit("remove it")
    refused = repo.json("apply", f"stack:{A}", status=1)["error"]
    assert refused["code"] == "E-GUARD-REFUSED"
    assert "--allow-destroy web-vm-03" in refused["remedy"]
    assert 303 in house.guests()
    assert repo.json("apply", f"stack:{A}", "--allow-destroy", "web-vm-03")["applied"]["remove"] == 1
    assert set(house.guests()) == {301, 302, 310, 410}


_FRAMEWORK = """
resource "proxmox_vm" "template" {
  node_name = "pve1"
  id        = 320
  name      = "template"
}
resource "proxmox_cloned_vm" "copy" {
  node_name       = "pve1"
  id              = 321
  name            = "copy"
  stop_on_destroy = true
  clone           = { source_vm_id = proxmox_vm.template.id }
}
"""


def test_vms_of_the_framework_are_guests_like_any_other(house: House) -> None:
    repo, code = house.repo, house.folder(A) / "framework.tf"
    code.write_text(_FRAMEWORK)
    repo.commit("two more")
    applied = repo.json("apply", f"stack:{A}")
    # Whether the first one runs, its code does not say: nobody waits for it.
    assert {one["vm_id"] for one in applied["guests"]} == {301, 302, 310, 321}
    assert {320, 321} <= house.guests().keys()
    assert repo.actions(f"stack:{A}") == {}
    code.unlink()
    repo.commit("none of them")
    refused = repo.json("apply", f"stack:{A}", status=1)["error"]
    assert "--allow-destroy copy" in refused["remedy"]
    assert "VM copy (321 on pve1)" in json.dumps(refused)
    repo.json("apply", f"stack:{A}", "--allow-destroy", "copy", "--allow-destroy", "template")
    assert house.guests().keys() & {320, 321} == set()


def test_a_password_is_changed_in_the_vaulted_file_and_shown_nowhere(house: House) -> None:
    repo = house.repo
    # Neither provider compares the password of a user account: Proxmox shows it to nobody.
    used = 'resource "terraform_data" "password" { input = var.user_credentials["dev"].password }\n'
    (house.folder(A) / "users.tf").write_text(used)
    repo.commit("users")
    repo.run("apply", f"stack:{A}")
    repo.git("checkout", "-q", "-b", "rotate")
    write_secrets(repo, A, house.running, password="second-Password-2")
    assert house.changed() == [A]
    planned = repo.run("plan", f"stack:{A}")
    assert "terraform_data.password" in planned.stdout
    assert "Password-" not in planned.stdout + planned.stderr
    repo.commit("rotate")
    applied = repo.run("apply", "--changed", "--json")
    assert [one["applied"] for one in applied.document["stacks"]] == [{"add": 0, "change": 1, "remove": 0}]
    assert "Password-" not in applied.stdout + applied.stderr
    repo.run("plan", f"stack:{A}", "--detailed-exitcode")


def test_a_copied_stack_with_the_key_of_the_other_is_refused_and_both_are_named(house: House) -> None:
    repo = house.repo
    backend = (
        'terraform {{\n  backend "s3" {{\n    bucket = "b"\n    key    = "onprem/{}.tfstate"\n  }}\n}}\n'
    )
    for name in (A, B):
        (house.folder(name) / "backend.tf").write_text(backend.format(name.rpartition("/")[2]))
    new = "onprem/proxmox_server_C_storage"
    shutil.copytree(house.folder(B), house.folder(new))
    repo.commit("C")
    for stack in (B, new):
        for verb in ("plan", "apply", "destroy"):
            error = repo.json(verb, f"stack:{stack}", status=65)["error"]
            (finding,) = (one for one in error["diagnostics"] if one["code"].startswith("E-"))
            assert finding["code"] == "E-STACK-SHARED-STATE"
            assert B in finding["detail"]
            assert new in finding["detail"]
            assert finding["where"]["file"].endswith("backend.tf")
    # The others are none of its business.
    repo.run("plan", f"stack:{CLOUD}")
    assert house.guests() == {}


def test_decrypted_values_of_a_process_substitution_are_read_once_and_used_by_every_step(
    house: House,
) -> None:
    repo = house.repo
    (house.folder(A) / "stack.yaml").write_text("secrets: []\n")
    repo.commit("values come from the command line")
    vault = Path(sys.executable).parent / "ansible-vault"
    secrets = shlex.quote(str(house.folder(A) / "secrets.tfvars"))

    def run(verb: str) -> subprocess.CompletedProcess[str]:
        words = f"-var-file=vms.tfvars -var-file=<({vault} view {secrets})"
        command = f"exec {shlex.join(PROGRAM)} {verb} stack:{A} --json -- {words}"
        env = {**os.environ, **repo.env, "HOME": str(repo.root)}
        return subprocess.run(
            ["bash", "-c", command],
            cwd=repo.root,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    planned = run("plan --out plan.bin")
    assert planned.returncode == 0, planned.stdout + planned.stderr
    assert len(json.loads(planned.stdout)["changes"]) == 3
    assert "first-Password-1" not in planned.stdout + planned.stderr
    # The values are in the saved plan, which is bound to everything else.
    assert repo.json("apply", f"stack:{A}", "--plan", "plan.bin")["applied"]["add"] == 3
    again = run("apply")
    assert again.returncode == 0, again.stdout + again.stderr
    assert json.loads(again.stdout)["has_changes"] is False
    assert house.guests()[301]["status"] == "running"


def test_a_value_before_a_descriptor_is_refused_because_the_last_one_has_to_win(house: House) -> None:
    reader, writer = os.pipe()
    os.close(writer)
    words = ("-var=target_node=pve2", f"-var-file=/dev/fd/{reader}")
    error = house.repo.json("plan", f"stack:{A}", "--", *words, status=64)["error"]
    os.close(reader)
    assert error["code"] == "E-STACK-ARGUMENT"
    assert "-var=target_node=…" in error["detail"]


_ALIAS = """
provider "proxmox" {
  alias     = "other"
  endpoint  = replace(var.proxmox_connection.url, "127.0.0.1", "localhost")
  api_token = var.proxmox_connection.api_token
  insecure  = true
}
resource "proxmox_virtual_environment_pool" "there" {
  provider = proxmox.other
  pool_id  = "there"
}
"""


def test_several_clusters_in_one_stack_are_several_configurations(house: House) -> None:
    repo = house.repo
    before = repo.json("plan", f"stack:{B}")["changes"]
    (house.folder(B) / "more.tf").write_text(_ALIAS)
    after = repo.json("plan", f"stack:{B}")["changes"]
    assert len(after) == len(before) + 1
    assert "proxmox_virtual_environment_pool.there" in json.dumps(after)


def test_the_provider_of_a_stack_is_that_of_its_file_unless_the_user_names_one(house: House) -> None:
    repo = house.repo
    nowhere = repo.root / "nowhere.tfrc"
    nowhere.write_text('provider_installation {\n  filesystem_mirror { path = "/nonexistent" }\n}\n')
    repo.env |= {"STACKYARD_TOFU_CONFIG": str(nowhere)}
    (repo.root / "stackyard.yaml").write_text("defaults:\n  provider: bpg\n")
    # bpg's cannot be installed here: that it is looked for is what shows the choice.
    missing = repo.run("plan", f"stack:{B}", status=1)
    assert "bpg/proxmox" in missing.stderr
    repo.run("plan", f"stack:{B}", "--provider", "builtin")
    repo.env |= {"STACKYARD_PROVIDER": "builtin"}
    repo.run("plan", f"stack:{B}")
    del repo.env["STACKYARD_PROVIDER"]
    (house.folder(B) / "stack.yaml").write_text("provider: builtin\n")
    repo.run("plan", f"stack:{B}")
    assert repo.json("stack", "show", B)["provider"] == "builtin"
    (house.folder(B) / "stack.yaml").write_text("provider: telmate\n")
    error = repo.json("plan", f"stack:{B}", status=65)["error"]
    assert "stack.yaml" in json.dumps(error)


def test_what_one_provider_has_applied_the_other_has_nothing_to_change_in(house: House) -> None:
    require_bpg()
    binary = bpg_binary()
    assert binary is not None
    engine = real_engine(Flavour.TOFU)
    repo = house.repo
    repo.env |= {"STACKYARD_TOFU_CONFIG": str(mirror_of(binary, engine.path, repo.root.parent / "mirror"))}
    repo.run("apply", f"stack:{B}")
    repo.run("plan", f"stack:{B}", "--provider", "bpg", "--detailed-exitcode")
    repo.run("apply", f"stack:{A}", "--provider", "bpg")
    repo.run("plan", f"stack:{A}", "--detailed-exitcode")


def test_a_guest_is_imported_by_its_id_and_a_change_by_hand_is_drift(house: House) -> None:
    repo = house.repo
    address = 'module.lxc["batch-01"].proxmox_virtual_environment_container.this'
    repo.run("apply", f"stack:{B}")
    repo.run("state", "rm", f"stack:{B}", address, status=None)
    api = proxmoxer_client(house.running)
    shutil.rmtree(repo.root / ".stackyard")
    assert repo.actions(f"stack:{B}") == {address: "create"}
    repo.run("import", f"stack:{B}", address, "pve2/410")
    assert repo.actions(f"stack:{B}", status=None).get(address) != "create"
    repo.run("apply", f"stack:{B}")
    repo.run("drift", f"stack:{B}", "--detailed-exitcode")
    api.nodes("pve2").lxc(410).config.put(memory=512)
    drift = repo.json("drift", f"stack:{B}", "--detailed-exitcode", status=2)
    assert drift["has_drift"] is True
    assert [one["address"] for one in drift["drifted"]] == [address]
    assert repo.json("drift", f"stack:{B}")["has_drift"] is True


def test_the_guard_names_guests_that_lose_a_disk_or_reboot_and_keeps_a_protected_stack(house: House) -> None:
    repo = house.repo
    repo.run("apply", f"stack:{A}")
    house.write_vms(A, _WEB, memory=512)
    refused = repo.json("plan", f"stack:{A}", status=3)["guard"]["refused"]
    assert {one["permit"] for one in refused} >= {"--allow-reboot web-vm-01", "--allow-reboot web-vm-02"}
    house.write_vms(A, _WEB)
    module = repo.root / "tofu/modules/proxmox_qemu_vm/main.tf"
    text = module.read_text()
    module.write_text(text.replace('interface    = "scsi0"', 'interface    = "scsi1"'))
    refused = repo.json("plan", f"stack:{A}", status=3)["guard"]["refused"]
    assert "--allow-disk-loss web-vm-01" in {one["permit"] for one in refused}
    module.write_text(text)
    (house.folder(A) / "stack.yaml").write_text("protected: true\n")
    house.write_vms(A, {"web-vm-01": 301})
    repo.commit("protected")
    error = repo.json("apply", f"stack:{A}", "--allow-destroy", "web-vm-02", status=1)["error"]
    assert [one["code"] for one in error["diagnostics"]] == ["E-GUARD-STACK-PROTECTED"]
    assert 302 in house.guests()


def test_what_a_token_may_not_see_is_an_error_and_never_a_deletion(house: House) -> None:
    repo = house.repo
    repo.run("apply", f"stack:{A}")
    api = proxmoxer_client(house.running)
    api.access.users.post(userid="small@pve")
    made = api.access.users("small@pve").token("ci").post(privsep=0)
    for path in ("/vms/302", "/vms/310", "/nodes", "/storage"):
        api.access.acl.put(path=path, users="small@pve", roles="PVEAdmin")
    token = f"small@pve!ci={made['value']}"
    write_secrets(repo, A, house.running, password="first-Password-1", token=token)
    repo.commit("another token")
    names = "web-vm-01,web-vm-02,dns-01"
    for words in (("plan",), ("apply",), ("drift",), ("destroy", "--allow-destroy", names)):
        error = repo.json(words[0], f"stack:{A}", *words[1:], status=1)["error"]
        assert error["code"] == "E-PLAN-NOT-VISIBLE"
        (finding,) = error["diagnostics"]
        assert "web-vm-01 (301 on pve1)" in finding["detail"]
    assert set(house.guests()) == {301, 302, 310}


@pytest.mark.judges("opa")
def test_a_rule_in_rego_sees_the_guests_of_a_stack(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    put_on_path(house.repo.root.parent / "opa-bin", monkeypatch)
    repo = house.repo
    rule = """\
    package stackyard.memory

    deny contains {"msg": msg, "address": change.address, "permit": "small"} if {
      some change in input.plan.resource_changes
      change.type == "proxmox_virtual_environment_container"
      change.change.after.memory[0].dedicated < 512
      msg := sprintf("%s has too little memory", [change.address])
    }
    """
    repo.write({"policy/memory.rego": rule, f"tofu/stacks/{B}/stack.yaml": "policy: [../../../../policy]\n"})
    planned = repo.json("plan", f"stack:{B}", status=3)
    (refused,) = planned["guard"]["refused"]
    assert "batch-01" in refused["detail"]
    repo.run("plan", f"stack:{B}", "--allow-policy", "small")
