"""The guests of stacks: waited for after an apply, and in an inventory that the real Ansible reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.import_seed import SEED
from tests.support.stack_lab import A, B, ansible_inventory, make_lab_repo
from tests.support.stack_repo import StackRepo

from pvelab.faults.latency import Work
from stackyard import lab

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(120)]

# Longer than any test.
NEVER_S = 10_000.0
FOLDER = ".stackyard/inventory.d"
_OUTPUT = """
output "ansible_inventory" {
  value = {
    hosts = {
      "batch-01" = { groups = ["k8s-repo"], motd = "{{ lookup('file', '/etc/passwd') }}" }
      "edge-01"  = { ansible_host = "192.0.2.7", groups = ["cloud"] }
    }
    groups = { "k8s-repo" = { k3s_version = "v1.36" } }
  }
}
"""


@pytest.fixture
def running() -> Iterator[lab.Running]:
    with lab.running(nodes=("pve1", "pve2"), seed=replace(SEED, calls=())) as it:
        yield it


@pytest.fixture
def repo(tmp_path: Path, running: lab.Running) -> StackRepo:
    return make_lab_repo(tmp_path / "repo", running)


def set_boot_time(running: lab.Running, seconds: float) -> None:
    running.on_loop(lambda: setattr(running.world.latency, "overrides_s", {Work.BOOT: seconds}))


def read(repo: StackRepo) -> dict[str, Any]:
    """Return what the real Ansible reads from the inventories of all stacks."""
    found: dict[str, Any] = json.loads(ansible_inventory(repo.root, FOLDER))
    return found


def files(repo: StackRepo) -> list[str]:
    folder = repo.root / FOLDER
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def set_output(repo: StackRepo, stack: str, text: str) -> None:
    repo.write({f"tofu/stacks/{stack}/inventory.tf": text})
    repo.commit("inventory")


def test_a_guest_that_gets_its_address_late_is_waited_for(repo: StackRepo, running: lab.Running) -> None:
    set_boot_time(running, 1.0)
    applied = repo.json("apply", f"stack:{A}")
    up = {one["name"]: one["addresses"] for one in applied["guests"]}
    assert set(up) == {"web-vm-01", "web-vm-02", "dns-01"}
    assert all(up.values())
    assert read(repo)["_meta"]["hostvars"]["web-vm-01"]["ansible_host"] == up["web-vm-01"][0]


def test_a_guest_that_never_comes_up_fails_the_apply_until_a_later_one_has_seen_it(
    repo: StackRepo, running: lab.Running
) -> None:
    text = (repo.root / f"tofu/stacks/{A}/vms.tfvars").read_text()
    repo.write({f"tofu/stacks/{A}/vms.tfvars": text.replace('"dns-01" = { id = 310 }', "")})
    repo.commit("VMs only")
    set_boot_time(running, NEVER_S)
    failed = repo.json("apply", f"stack:{A}", status=1)
    assert failed["applied"]["add"] == 2
    assert {one["code"] for one in failed["down"]} == {"E-GUEST-DOWN"}
    assert "web-vm-01" in json.dumps(failed["down"])
    assert files(repo) == []
    assert repo.json("runs", "list")["runs"][0]["outcome"] == "failed"
    # What was created is in the state: there is nothing left to change, and the guests are looked at again.
    again = repo.json("apply", f"stack:{A}", status=1)
    assert again["has_changes"] is False
    assert len(again["down"]) == 2
    set_boot_time(running, 0.0)
    up = repo.json("apply", f"stack:{A}")
    assert up["applied"] is None
    assert {one["name"] for one in up["guests"]} == {"web-vm-01", "web-vm-02"}
    assert len(files(repo)) == 1
    hosts = read(repo)["_meta"]["hostvars"]
    assert hosts["web-vm-01"]["ansible_host"] == up["guests"][0]["addresses"][0]


def test_two_stacks_are_one_inventory_and_every_text_in_it_is_data(repo: StackRepo) -> None:
    set_output(repo, B, _OUTPUT)
    repo.run("apply", "--all")
    assert len(files(repo)) == 2
    said = read(repo)
    hosts = said["_meta"]["hostvars"]
    assert set(hosts) == {"web-vm-01", "web-vm-02", "dns-01", "batch-01", "edge-01"}
    assert hosts["web-vm-01"]["ansible_user"] == "dev"
    assert hosts["web-vm-01"]["proxmox_vmid"] == 301
    # So Ansible shows a text that it does not look into.
    assert hosts["batch-01"]["motd"] == {"__ansible_unsafe": "{{ lookup('file', '/etc/passwd') }}"}
    assert hosts["batch-01"]["k3s_version"] == "v1.36"
    assert set(said["managed"]["hosts"]) == {"web-vm-01", "web-vm-02", "dns-01", "batch-01"}
    assert set(said["containers"]["hosts"]) == {"dns-01", "batch-01"}
    assert set(said["vms"]["hosts"]) == {"web-vm-01", "web-vm-02"}
    assert said["pve2"]["hosts"] == said["k8s_repo"]["hosts"] == ["batch-01"]
    assert said["cloud"]["hosts"] == ["edge-01"]
    assert "Password" not in (repo.root / FOLDER / files(repo)[0]).read_text()
    repo.run("destroy", f"stack:{B}", "--allow-destroy", "batch-01")
    assert len(files(repo)) == 1
    assert "batch-01" not in read(repo)["_meta"]["hostvars"]


NO_INVENTORIES = [
    (
        '{ hosts = { x = { ansible_host = "192.0.2.1", ansible_password = "hunter2" } } }',
        "E-INVENTORY-SECRET",
    ),
    ('{ hosts = { x = { db = { root_password = "hunter2" } } } }', "E-INVENTORY-SECRET"),
    ('{ hosts = { "{{ evil }}" = { ansible_host = "192.0.2.1" } } }', "E-INVENTORY-NAME"),
    ("{ host = { x = {} } }", "E-INVENTORY-OUTPUT"),
    ('{ hosts = { x = "y" } }', "E-INVENTORY-OUTPUT"),
]


def test_an_output_that_is_no_inventory_is_refused_and_the_file_before_stays(repo: StackRepo) -> None:
    repo.run("apply", f"stack:{B}")
    (name,) = files(repo)
    before = (repo.root / FOLDER / name).read_bytes()
    for output, code in NO_INVENTORIES:
        set_output(repo, B, f'output "ansible_inventory" {{\n  value = {output}\n}}\n')
        failed = repo.json("apply", f"stack:{B}", status=1)
        assert failed["inventory"]["error"]["diagnostics"][0]["code"] == code, output
        assert "hunter2" not in json.dumps(failed["inventory"])
        assert (repo.root / FOLDER / name).read_bytes() == before
    # Nothing is changed by then, and it is said again.
    assert repo.json("apply", f"stack:{B}", status=1)["inventory"]["error"] is not None


def test_a_guest_without_an_address_is_missed_unless_the_output_names_one(
    repo: StackRepo, running: lab.Running
) -> None:
    module = repo.root / "tofu/modules/proxmox_lxc_container/main.tf"
    text = module.read_text().replace('  network_interface { name = "veth0" }\n', "")
    module.write_text(text.replace('    ip_config {\n      ipv4 { address = "dhcp" }\n    }\n', ""))
    repo.commit("no card")
    failed = repo.json("apply", f"stack:{B}", status=1)
    (finding,) = failed["inventory"]["error"]["diagnostics"]
    assert finding["code"] == "E-INVENTORY-NO-ADDRESS"
    assert "batch-01 (410 on pve2)" in finding["detail"]
    assert files(repo) == []
    value = '{ hosts = { "batch-01" = { ansible_host = "192.0.2.9" } } }'
    set_output(repo, B, f'output "ansible_inventory" {{\n  value = {value}\n}}\n')
    repo.run("apply", f"stack:{B}")
    assert read(repo)["_meta"]["hostvars"]["batch-01"]["ansible_host"] == "192.0.2.9"


def test_the_inventory_of_a_stack_is_rendered_published_and_answered_by_a_script(repo: StackRepo) -> None:
    set_output(repo, B, _OUTPUT)
    repo.run("apply", f"stack:{B}")
    (name,) = files(repo)
    shown = repo.run("inventory", "render", f"stack:{B}", "--format", "yaml").stdout
    assert shown.strip() == (repo.root / FOLDER / name).read_text().strip()
    document = repo.json("inventory", "render", f"stack:{B}")
    assert document["inventory"]["groups"]["k8s_repo"] == {
        "hosts": ["batch-01"],
        "vars": {"k3s_version": "v1.36"},
    }
    (repo.root / FOLDER / name).unlink()
    published = repo.json("inventory", "publish", f"stack:{B}")
    assert (published["is_new"], Path(published["where"]).name) == (True, name)
    assert repo.json("inventory", "publish", f"stack:{B}")["is_new"] is False
    repo.run("inventory", "publish", f"stack:{B}", "--to", "elsewhere")
    assert (repo.root / "elsewhere" / name).read_bytes() == (repo.root / FOLDER / name).read_bytes()
    repo.run("inventory", "script", f"stack:{B}", "--out", "inventory.sh")
    listed = repo.run("inventory", "render", f"stack:{B}", "--format", "list").stdout
    script = (repo.root / "inventory.sh").read_text()
    assert f"inventory render stack:{B} --format list" in script
    (repo.root / "listed.sh").write_text(f"#!/bin/sh\ncat <<'EOF'\n{listed}\nEOF\n")
    (repo.root / "listed.sh").chmod(0o755)
    said = json.loads(ansible_inventory(repo.root, "./listed.sh"))
    assert said["_meta"]["hostvars"] == read(repo)["_meta"]["hostvars"]
    assert repo.json("inventory", "show", f"stack:{B}", status=64)["error"]["code"] == "E-USAGE"
    assert (
        repo.json("inventory", "render", f"stack:{B}", "-H", "pve1", status=64)["error"]["code"] == "E-USAGE"
    )
