"""Rendering: the same bytes for the same model, labels that never meet, texts that stay texts, no secret."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.desired.test_desired import FULL, changed

from stackyard.desired import CloudInit, Desired, Secret, User, Vm, WrittenFile
from stackyard.render import Provider, render
from stackyard.render.terms import literal, template


def document(desired: Desired, provider: Provider | None = None) -> dict[str, Any]:
    found = json.loads(render(desired, provider).files["main.tf.json"])
    assert isinstance(found, dict)
    return found


def vm(**values: Any) -> dict[str, Any]:
    desired = Desired.model_validate({"vms": [{"key": "a", "name": "a", "node": "pve1", **values}]})
    rendered = document(desired)["resource"]["proxmox_virtual_environment_vm"]["a"]
    assert isinstance(rendered, dict)
    return rendered


def test_the_same_model_gives_the_same_bytes_whatever_the_order_of_its_words() -> None:
    one = Desired.model_validate(FULL)
    other = Desired.model_validate(dict(reversed(FULL.items())))
    assert render(one).files == render(other).files


@given(st.text())
def test_any_text_is_read_back_as_it_was(text: str) -> None:
    # A lone carriage return is an expression, with the dollars before it.
    written = re.sub(r'\$\{"(\$*)\\r"\}', lambda found: f"{found[1]}\r", literal(text))
    assert not re.search(r"(?<!\$)\$\{|(?<!%)%\{", written)
    assert written.replace("$${", "${").replace("%%{", "%{") == text


def test_what_looks_like_an_expression_is_a_text() -> None:
    assert vm(description="costs ${var.price} %{if x}")["description"] == "costs $${var.price} %%{if x}"


def test_secrets_are_variables_and_nowhere_in_the_files() -> None:
    rendered = render(Desired.model_validate(FULL))
    assert [(v.name, v.secret.secret) for v in rendered.variables] == [
        ("secret_passwords_ops_x2e", "passwords.ops")
    ]
    assert document(Desired.model_validate(FULL))["variable"] == {
        "secret_passwords_ops_x2e": {"type": "string", "sensitive": True}
    }
    assert b"${var.secret_passwords_ops_x2e}" in rendered.files["main.tf.json"]


def test_every_vm_has_a_serial_port_unless_told_otherwise() -> None:
    assert vm()["serial_device"] == [{"device": "socket"}]
    assert "serial_device" not in vm(serials=[])


def test_an_import_is_imported_and_another_image_copied() -> None:
    disk = {"interface": "scsi0", "datastore": "local-lvm"}
    assert (
        vm(disks=[{**disk, "file": "local:import/a.qcow2"}])["disk"][0]["import_from"]
        == "local:import/a.qcow2"
    )
    assert vm(disks=[{**disk, "file": "local:iso/a.img"}])["disk"][0]["file_id"] == "local:iso/a.img"


def test_a_card_without_addresses_between_others_keeps_its_place() -> None:
    nics = [{"ipv4": "dhcp"}, {}, {"ipv4": "192.0.2.5/24"}, {}]
    configs = vm(nics=nics, cloud_init={})["initialization"][0]["ip_config"]
    assert configs == [
        {"ipv4": [{"address": "dhcp"}]},
        {},
        {"ipv4": [{"address": "192.0.2.5/24"}]},
    ]


def test_a_card_of_a_container_without_addresses_says_so() -> None:
    nics = [{"name": "eth0"}, {"name": "eth1", "ipv4": "dhcp"}]
    desired = Desired.model_validate(changed("containers", 0, "nics", to=nics))
    container = document(desired)["resource"]["proxmox_virtual_environment_container"]["dns"]
    assert container["initialization"][0]["ip_config"] == [
        {"ipv4": [{"address": "manual"}]},
        {"ipv4": [{"address": "dhcp"}]},
    ]


def test_one_plain_user_needs_no_snippet() -> None:
    rendered = vm(cloud_init={"users": [{"name": "ops", "keys": ["ssh-ed25519 A"]}]})
    assert rendered["initialization"][0]["user_account"] == [{"username": "ops", "keys": ["ssh-ed25519 A"]}]
    assert "user_data_file_id" not in rendered["initialization"][0]


def test_more_than_proxmox_can_say_becomes_user_data_that_says_all_of_it() -> None:
    init = CloudInit(
        users=(
            User(name="ops", keys=("ssh-ed25519 A",), sudo="nopasswd", password=Secret(secret="p")),
            User(name="dev", keys=("ssh-ed25519 B",)),
        ),
        packages=("htop",),
        timezone="Europe/Berlin",
        files=(WrittenFile(path="/etc/token", content=('say "', Secret(secret="t"), '"\n'), mode="0600"),),
        commands=("echo ${HOME}",),
    )
    desired = Desired(vms=(Vm(key="web", name="web", node="pve1", cloud_init=init),))
    resources = document(desired)["resource"]
    guest = resources["proxmox_virtual_environment_vm"]["web"]
    # Written out, so that data that changes is written again without the guest being replaced.
    assert guest["initialization"][0]["user_data_file_id"] == "local:snippets/web-user-data.yaml"
    assert guest["depends_on"] == ["proxmox_virtual_environment_file.web_user_data"]
    assert "user_account" not in guest["initialization"][0]
    data = resources["proxmox_virtual_environment_file"]["web_user_data"]["source_raw"][0]["data"]
    # What OpenTofu makes of it, with values that would break a careless quoting.
    values = {"p": '$6$sa"lt\\$hash', "t": 'to"ken'}
    for name, value in values.items():
        quoted = f"jsonencode(var.secret_{name})"
        written = f'${{trimsuffix(trimprefix({quoted}, "\\""), "\\"")}}'
        data = data.replace(written, json.dumps(value)[1:-1])
    config = yaml.safe_load(data.replace("$${", "${"))
    assert data.startswith("#cloud-config\n")
    assert [user["name"] for user in config["users"]] == ["ops", "dev"]
    assert config["users"][0]["hashed_passwd"] == values["p"]
    assert config["users"][0]["sudo"] == "ALL=(ALL) NOPASSWD:ALL"
    assert "sudo" not in config["users"][1]
    assert config["write_files"][0]["content"] == 'say "to"ken"\n'
    assert config["packages"] == ["htop"]
    assert config["runcmd"] == ["echo ${HOME}"]
    assert config["hostname"] == "web"


def test_guests_wait_for_the_networks_they_plug_into() -> None:
    nics = [{"bridge": "vmbr1"}, {"bridge": "vnet1"}]
    desired = Desired.model_validate(changed("vms", 0, "nics", to=nics))
    needed = document(desired)["resource"]["proxmox_virtual_environment_vm"]["web"]["depends_on"]
    assert {"proxmox_network_linux_bridge.pve1_vmbr1", "proxmox_sdn_applier.sdn"} <= set(needed)


def test_swap_is_as_large_as_memory_unless_said_and_zero_is_zero() -> None:
    def memory(document_of: dict[str, Any]) -> Any:
        desired = Desired.model_validate(document_of)
        return document(desired)["resource"]["proxmox_virtual_environment_container"]["dns"]["memory"]

    assert memory(FULL) == [{"dedicated": 512, "swap": 512}]
    assert memory(changed("containers", 0, "memory", to={"swap_mib": 0})) == [{"dedicated": 512, "swap": 0}]


def test_providers_are_pinned_and_reached_without_a_word_in_the_file() -> None:
    found = document(Desired.model_validate(FULL))
    assert found["terraform"]["required_providers"]["proxmox"] == {
        "source": "bpg/proxmox",
        "version": "~> 0.111",
    }
    assert found["provider"] == {"proxmox": {}}
    provider = Provider(ssh_user="root", ssh_nodes=(("pve1", "192.0.2.1", 22),))
    ssh = document(Desired.model_validate(FULL), provider)["provider"]["proxmox"]["ssh"]
    assert ssh == [{"username": "root", "node": [{"name": "pve1", "address": "192.0.2.1", "port": 22}]}]


def test_a_secret_outside_quotes_comes_as_it_is() -> None:
    assert template(("key=", Secret(secret="api.token"))) == "key=${var.secret_api_token_x2e}"


def test_of_an_imported_guest_is_left_alone_what_nobody_can_read() -> None:
    plain = vm(imported=True, os_type="other", agent={"enabled": False})
    assert plain["lifecycle"] == {"ignore_changes": ["operating_system", "initialization"]}
    assert "agent" not in plain
    said = vm(imported=True, agent={"enabled": True}, cloud_init={})
    assert "lifecycle" not in said
    assert said["agent"][0]["enabled"] is True
    assert "lifecycle" not in vm(os_type="other", agent={"enabled": False})
    made = {"key": "a", "name": "a", "node": "pve1", "root_disk": {"datastore": "local"}}
    resources = document(Desired.model_validate({"containers": [{**made, "imported": True}]}))["resource"]
    container = resources["proxmox_virtual_environment_container"]["a"]
    assert container["lifecycle"] == {"ignore_changes": ["operating_system"]}
    assert "operating_system" not in container
    assert "replicate" not in container["disk"][0]


def test_small_devices_are_there_only_when_they_are_said() -> None:
    assert not {"audio_device", "rng", "watchdog"} & vm().keys()
    said = vm(audio={}, random_numbers={"max_bytes": 2048}, watchdog={"action": "reset"})
    assert said["audio_device"] == [{"device": "intel-hda", "driver": "spice", "enabled": True}]
    assert said["rng"] == [{"source": "/dev/urandom", "max_bytes": 2048}]
    assert said["watchdog"] == [{"model": "i6300esb", "action": "reset", "enabled": True}]


def test_guests_under_high_availability_have_resources_and_rules_of_their_own() -> None:
    guest = {"node": "pve1", "ha": {"max_restart": 2}}
    desired = Desired.model_validate(
        {
            "vms": [{"key": key, "name": key, **guest} for key in ("b", "a")],
            "affinities": [{"name": "apart", "guests": ["b", "a"]}],
        }
    )
    resources = document(desired)["resource"]
    assert resources["proxmox_haresource"]["a"] == {
        "resource_id": "vm:${proxmox_virtual_environment_vm.a.vm_id}",
        "state": "started",
        "max_restart": 2,
        "max_relocate": 1,
        "lifecycle": {"replace_triggered_by": ["proxmox_virtual_environment_vm.a.id"]},
    }
    assert resources["proxmox_harule"]["apart"]["resources"] == [
        "${proxmox_haresource.a.resource_id}",
        "${proxmox_haresource.b.resource_id}",
    ]
    # Where such a guest runs is for the cluster to say.
    assert resources["proxmox_virtual_environment_vm"]["a"]["lifecycle"] == {"ignore_changes": ["node_name"]}


def test_a_firewall_closes_once_all_that_it_lets_in_is_there() -> None:
    firewall = {
        "rules": [{"type": "in", "action": "ACCEPT", "source": "+guest/peers"}],
        "aliases": {"office": "10.0.0.0/8"},
        "ipsets": {"peers": ["guest/office"]},
    }
    guest = {
        "key": "a",
        "name": "a",
        "node": "pve1",
        "nics": [{}],
        "firewall": firewall,
        "replication": "pve2",
    }
    resources = document(Desired.model_validate({"vms": [guest]}))["resource"]
    prefix = "proxmox_virtual_environment_firewall"
    alias, ipset = f"{prefix}_alias.a_office_x2f", f"{prefix}_ipset.a_peers_x2f"
    assert resources[f"{prefix}_ipset"]["a_peers_x2f"]["depends_on"] == [alias]
    assert resources[f"{prefix}_rules"]["a"]["depends_on"] == [alias, ipset]
    options = resources[f"{prefix}_options"]["a"]
    assert options["depends_on"] == [alias, ipset, f"{prefix}_rules.a"]
    # What Proxmox, bpg and we take for granted differs: all of it is said.
    assert {key: options[key] for key in ("enabled", "dhcp", "input_policy", "radv")} == {
        "enabled": True,
        "dhcp": True,
        "input_policy": "DROP",
        "radv": False,
    }
    copy = resources["proxmox_replication"]["a_0"]
    assert (copy["id"], copy["target"]) == ("${proxmox_virtual_environment_vm.a.vm_id}-0", "pve2")


def test_dhcp_is_let_through_only_where_a_card_may_need_it() -> None:
    for address, wanted in (("dhcp", True), (None, True), ("192.0.2.1/24", False), ("manual", False)):
        nics = [{"ipv4": address}]
        guest = {"key": "a", "name": "a", "node": "pve1", "nics": nics, "firewall": {}}
        resources = document(Desired.model_validate({"vms": [guest]}))["resource"]
        assert resources["proxmox_virtual_environment_firewall_options"]["a"]["dhcp"] is wanted
