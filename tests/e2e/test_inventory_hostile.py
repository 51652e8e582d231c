"""What guests and the cluster write into an inventory stays data when the real Ansible reads it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from stackyard.desired import Desired
from stackyard.inventory import Fact, IncompleteError, Inventory, read_facts, render
from stackyard.inventory.ansible import as_list, as_yaml, group_name, mark_unsafe
from stackyard.inventory.contract import Origin, parse

pytestmark = pytest.mark.timeout(300)

BIN = Path(sys.executable).parent
ORIGIN = Origin(target="env:dev", desired="d", version="v", state="l/1")
VM = "proxmox_virtual_environment_vm.web"
PLAYBOOK = """\
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.debug:
        msg: "{{ [proxmox_node, proxmox_pool, ansible_user, ansible_host, proxmox_tags] }}"
    - ansible.builtin.copy:
        content: "{{ [proxmox_node, proxmox_pool, ansible_user] | to_json }}"
        dest: said.json
      delegate_to: localhost
      vars: {ansible_connection: local, ansible_user: "{{ hostvars['web']['ansible_user'] }}"}
"""


def payload(canary: Path, form: str = "{{ %s }}") -> str:
    return form % f"lookup('pipe', 'touch {canary}')"


def hostile(canary: Path) -> Inventory:
    """Return an inventory in which every text that somebody else can write is a template."""
    web = {
        "key": "web",
        "name": "web",
        "node": "pve1",
        "tags": ["all", "_meta", "ungrouped"],
        "pool": payload(canary, "{%% if %s %%}x{%% endif %%}"),
        "nics": [{"bridge": "vmbr0", "ipv4": "192.0.2.10/24"}],
    }
    facts = {VM: Fact(vm_id=500, node=payload(canary))}
    made = render(Desired.model_validate({"vms": [web]}), facts, ORIGIN)
    # A place where inventories are published may be written by others, too.
    document = json.loads(made.data())
    document["vms"]["web"]["ansible_user"] = payload(canary, "#{{ %s }}\n  - x")
    return parse(orjson.dumps(document))


def ansible(folder: Path, *arguments: str) -> str:
    env = {
        **os.environ,
        "HOME": str(folder),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
    }
    ended = subprocess.run(
        [str(BIN / arguments[0]), *arguments[1:]],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.parametrize("form", ["yaml", "list"])
def test_no_text_of_an_inventory_is_run_by_ansible(tmp_path: Path, form: str) -> None:
    canary = tmp_path / "canary"
    inventory = hostile(canary)
    (tmp_path / "play.yml").write_text(PLAYBOOK)
    if form == "yaml":
        source = tmp_path / "inventory.yml"
        source.write_text(as_yaml(inventory))
    else:
        source = tmp_path / "inventory.sh"
        source.write_text(f"#!/bin/sh\ncat <<'EOF'\n{json.dumps(as_list(inventory))}\nEOF\n")
        source.chmod(0o755)
    said = json.loads(ansible(tmp_path, "ansible-inventory", "-i", str(source), "--list"))
    assert said["all_"]["hosts"] == said["_meta_"]["hosts"] == said["ungrouped_"]["hosts"] == ["web"]
    ansible(tmp_path, "ansible-playbook", "-i", str(source), "play.yml")
    row = inventory.document["vms"]["web"]
    assert json.loads((tmp_path / "said.json").read_text()) == [
        row["node"],
        row["pool_id"],
        row["ansible_user"],
    ]
    assert not canary.exists()


def state(**attributes: Any) -> bytes:
    row = {
        "mode": "managed",
        "type": "proxmox_virtual_environment_vm",
        "name": "web",
        "instances": [{"attributes": {"vm_id": 500, "node_name": "pve1", **attributes}}],
    }
    return orjson.dumps({"resources": [row]})


@pytest.mark.parametrize(
    "reported",
    [
        "2001:db8::1%{{ lookup('pipe','id') }}",
        "2001:db8::1%eth0",
        "::ffff:127.0.0.1",
        "127.0.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "fe80::1",
        "192.0.2.1\n",
        "{{ x }}",
        3232235777,
        None,
        {"a": 1},
    ],
)
def test_only_an_address_that_others_can_use_is_taken_from_a_state(reported: object) -> None:
    facts = read_facts(state(ipv6_addresses=[[reported, "2001:DB8:0::2"]]))
    assert facts[VM].addresses == ("2001:db8::2",)


def test_what_is_no_hardware_address_is_none() -> None:
    cards = [{"mac_address": "{{ x }}"}, {"mac_address": 7}, {"mac_address": "02:00:00:00:00:01"}]
    assert read_facts(state(network_device=cards))[VM].mac == "02:00:00:00:00:01"


@pytest.mark.parametrize(
    ("where", "value"),
    [("ip", "2001:db8::1%{{ x }}"), ("ip", "host"), ("mac", "{{ x }}"), ("gateway", "a b"), ("", "web[1:9]")],
)
def test_a_published_document_with_other_forms_is_refused(where: str, value: str) -> None:
    web = {"key": "web", "name": "web", "node": "pve1", "nics": [{"ipv4": "192.0.2.10/24"}]}
    made = render(Desired.model_validate({"vms": [web]}), {VM: Fact(vm_id=500, node="pve1")}, ORIGIN)
    document = json.loads(made.data())
    if where:
        document["vms"]["web"][where] = value
    else:
        document["vms"][value] = document["vms"].pop("web")
    with pytest.raises(IncompleteError):
        parse(orjson.dumps(document))


def test_a_text_that_no_template_can_be_written_in_stays_plain() -> None:
    web = {"key": "web", "name": "web", "node": "pve1", "nics": [{"ipv4": "192.0.2.10/24"}]}
    made = render(Desired.model_validate({"vms": [web]}), {VM: Fact(vm_id=500, node="pve1")}, ORIGIN)
    assert "!unsafe" not in as_yaml(made)
    assert "__ansible_unsafe" not in json.dumps(as_list(made))
    assert [group_name(name) for name in ("all", "_meta", "web")] == ["all_", "_meta_", "web"]


def test_variables_of_a_spec_are_not_run_by_ansible(tmp_path: Path) -> None:
    """They go to the playbook of a site as a file of extra variables."""
    canary = tmp_path / "canary"
    given = {"local_user": payload(canary), "packages": [payload(canary), "curl"], "ssh_port": 22}
    (tmp_path / "extravars").write_text(json.dumps(mark_unsafe(given)))
    (tmp_path / "play.yml").write_text(
        "- hosts: localhost\n  gather_facts: false\n  connection: local\n  tasks:\n"
        "    - ansible.builtin.copy:\n"
        '        content: "{{ [local_user, packages, ssh_port] | to_json }}"\n'
        "        dest: said.json\n"
    )
    ansible(tmp_path, "ansible-playbook", "-i", "localhost,", "-e", "@extravars", "play.yml")
    assert json.loads((tmp_path / "said.json").read_text()) == list(given.values())
    assert not canary.exists()
