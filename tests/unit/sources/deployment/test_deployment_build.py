"""Compact authoring: every default, where it comes from, and the model that comes out."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.deployment import CONTAINER, SMALL, WHOLE, checked, edited

from stackyard.desired import Container, Desired, Vm, problems
from stackyard.render import render
from stackyard.sources.deployment.defaults import derive_mac
from stackyard.sources.deployment.explain import ExplainedField, explain


def desired(data: dict[str, Any]) -> Desired:
    result = checked(data)
    result.require()
    assert result.desired is not None
    return result.desired


def container(data: dict[str, Any], key: str) -> Container:
    return next(one for one in desired(data).containers if one.key == key)


def test_the_container_of_the_seed_gets_every_default_of_the_contract() -> None:
    made = container(SMALL, "my-container")
    assert (made.name, made.node, made.vm_id, made.pool) == ("my-container", "pve1", 123, "infrastructure")
    assert made.root_disk is not None
    assert (made.root_disk.datastore, made.root_disk.size_gib) == ("local-zfs", 16)
    assert [(nic.name, nic.bridge, nic.firewall, nic.vlan) for nic in made.nics] == [
        ("eth0", "vmbr0", True, 10)
    ]
    assert (made.memory.dedicated_mib, made.memory.swap_mib) == (2048, 2048)
    assert made.tags == ("container", "homelab", "terraform")
    assert made.startup is not None
    assert (made.startup.order, made.startup.up_delay_s) == (123, 10)
    assert (made.on_boot, made.unprivileged, made.protection, made.os_type) == (True, False, False, "debian")


def test_the_firewall_is_on_unless_network_interfaces_says_otherwise() -> None:
    assert [nic.firewall for nic in container(WHOLE, "my-container").nics] == [True]
    assert [nic.firewall for nic in container(WHOLE, "dns-1").nics] == [False]
    data = edited(WHOLE, **{"containers__dns-1__network_interfaces": [{"bridge": "vmbr1"}]})
    assert [(nic.bridge, nic.firewall) for nic in container(data, "dns-1").nics] == [("vmbr1", True)]


def test_swap_is_as_much_as_memory_and_an_explicit_zero_is_honoured() -> None:
    assert container(WHOLE, "docker-1").memory.swap_mib == 512
    assert container(WHOLE, "dns-1").memory.swap_mib == 0
    data = edited(SMALL)
    data["containers"]["my-container"]["memory_swap"] = None
    assert container(data, "my-container").memory.swap_mib == 2048


def test_an_address_is_derived_from_the_id_and_the_network() -> None:
    nic = container(WHOLE, "my-container").nics[0]
    assert (nic.ipv4, nic.gateway4, nic.mac) == ("10.0.10.123/24", "10.0.10.1", None)
    pinned = container(WHOLE, "docker-1").nics[0]
    assert (pinned.ipv4, pinned.gateway4, pinned.vlan) == ("10.0.30.7/24", "10.0.30.1", 31)


def test_a_guest_with_dhcp_has_a_mac_from_its_key_and_no_gateway() -> None:
    nic = container(WHOLE, "roaming").nics[0]
    assert (nic.ipv4, nic.gateway4, nic.mac) == ("dhcp", None, derive_mac("roaming"))
    renamed = edited(WHOLE, containers__roaming__hostname="other-name")
    assert container(renamed, "roaming").nics[0].mac == nic.mac
    assert nic.mac is not None
    assert nic.mac.startswith("02:")


def test_without_networks_a_guest_asks_dhcp() -> None:
    assert container(SMALL, "my-container").nics[0].ipv4 == "dhcp"


def test_a_static_guest_asks_the_gateway_of_its_vlan_for_names_in_the_domain_of_its_vlan() -> None:
    dns = container(WHOLE, "docker-1").dns
    assert dns is not None
    assert (dns.servers, dns.domain) == (("10.0.30.1",), "data.example.com")
    dns = container(WHOLE, "my-container").dns
    assert dns is not None
    assert dns.domain == "example.com"


def test_the_tag_docker_brings_its_features() -> None:
    assert container(WHOLE, "docker-1").features.nesting
    assert container(WHOLE, "docker-1").features.keyctl
    assert not container(WHOLE, "my-container").features.nesting
    said = edited(WHOLE, **{"containers__docker-1__features": {"keyctl": False}})
    assert (container(said, "docker-1").features.nesting, container(said, "docker-1").features.keyctl) == (
        True,
        False,
    )


@pytest.mark.parametrize(("vm_id", "order"), [(123, 123), (999, 999), (1000, 1), (605000, 605)])
def test_the_startup_order_comes_from_the_id(vm_id: int, order: int) -> None:
    data = edited(SMALL, **{"containers__my-container__vm_id": vm_id})
    startup = container(data, "my-container").startup
    assert startup is not None
    assert startup.order == order


def test_mounts_and_devices_are_taken_over() -> None:
    made = container(WHOLE, "docker-1")
    assert [(m.volume, m.path, m.size_gib, m.backup) for m in made.mounts] == [
        ("local-lvm", "/data", 8, True),
        ("/srv", "/srv", None, False),
    ]
    assert [(d.path, d.mode) for d in made.devices] == [("/dev/net/tun", "0666")]


@pytest.mark.parametrize(
    ("template", "volume"),
    [
        ("debian-12-standard_12.7-1_amd64.tar.zst", "local:vztmpl/debian-12-standard_12.7-1_amd64.tar.zst"),
        ("nas:vztmpl/nixos.tar.xz", "nas:vztmpl/nixos.tar.xz"),
    ],
)
def test_a_template_is_a_file_or_a_volume(template: str, volume: str) -> None:
    data = edited(SMALL, proxmox_ct_template_debian=template)
    assert container(data, "my-container").template == volume
    assert desired(data).files == ()


def test_a_template_with_a_url_is_fetched_once_on_each_node_that_needs_it() -> None:
    files = desired(WHOLE).files
    assert sorted(file.node for file in files) == ["pve1", "pve2"]


def test_a_vm_gets_its_own_defaults() -> None:
    vm: Vm = next(iter(desired(WHOLE).vms))
    assert (vm.key, vm.name, vm.cpu.cores, vm.cpu.type) == ("vm-a", "vm-a", 2, "x86-64-v2-AES")
    assert (vm.memory.dedicated_mib, vm.memory.floating_mib) == (2048, 2048)
    assert [(d.interface, d.datastore, d.size_gib, d.iothread) for d in vm.disks] == [
        ("scsi0", "local-lvm", 20, True),
        ("scsi1", "local-lvm", 8, True),
    ]
    assert [(n.ipv4, n.firewall) for n in vm.nics] == [("10.0.10.250/24", False)]
    assert (vm.migrate, vm.bios, vm.tags) == (False, "seabios", ("docker", "homelab"))
    assert vm.cloud_init is not None
    assert [user.name for user in vm.cloud_init.users] == ["debian"]


def test_windows_11_and_an_efi_disk_mean_ovmf() -> None:
    for changes in ({"os_type": "win11"}, {"efi_disk": {"datastore_id": "local-lvm"}}):
        data = edited(WHOLE, **{f"vms__vm-a__{name}": value for name, value in changes.items()})
        assert next(iter(desired(data).vms)).bios == "ovmf"


def test_generators_expand_by_their_rules() -> None:
    made = {one.key: one for one in desired(WHOLE).containers}
    assert made["openbao-11"].vm_id == 811
    assert made["openbao-11"].nics[0].ipv4 == "10.0.10.11/24"
    assert made["openbao-812"].vm_id == 812
    assert made["openbao-812"].nics[0].ipv4 == "10.0.10.12/24"
    disk = made["openbao-812"].root_disk
    assert disk is not None
    assert disk.datastore == "tank"
    assert made["agent-1"].nics[0].ipv4 == "10.0.30.91/24"
    assert made["agent-2"].nics[0].ipv4 == "dhcp"
    assert "agent-3" not in made  # Its node is not commissioned.


def test_a_generator_that_is_off_makes_nothing() -> None:
    data = edited(WHOLE, openbao_cluster={"enabled": False}, node_services=None)
    assert not any(one.key.startswith(("openbao", "agent")) for one in desired(data).containers)


def test_the_key_of_a_guest_is_its_key_in_the_model_and_in_the_configuration() -> None:
    model = desired(WHOLE)
    assert {one.key for one in model.containers} >= set(WHOLE["containers"])
    assert problems(model) == ()
    text = render(model).files["main.tf.json"].decode()
    for key in WHOLE["containers"]:
        assert f'"{key}": {{' in text


def explained(data: dict[str, Any], key: str) -> dict[str, ExplainedField]:
    result = checked(data)
    guest = result.require().find(key)
    assert guest is not None
    return {value.key: value for value in explain(guest, result.document)}


def test_explain_gives_a_line_for_what_is_written_and_a_reason_for_what_is_not() -> None:
    found = explained(SMALL, "my-container")
    assert found["root_disk.size"].where is not None
    assert found["root_disk.datastore_id"].where is None
    assert "datastore_default" in found["root_disk.datastore_id"].why
    assert found["node_name"].why == "`proxmox_node`"
    assert found["memory_swap"].why == "as much as `memory_dedicated`"
    assert "network_cidrs" in found["dhcp"].why
    assert found["vm_id"].where is not None
    assert found["tags"].why == "and the environment"
    fields = checked(SMALL).require().guests[0].fields
    assert set(fields) <= {key.partition(".")[0] for key in found}


def test_explain_leads_from_a_generated_guest_to_its_generator() -> None:
    found = explained(WHOLE, "openbao-11")
    assert found["vm_id"].why == "generated from here"
    assert found["vm_id"].where is not None


def test_a_value_that_proxmox_cannot_take_is_reported_with_the_guest() -> None:
    data = edited(WHOLE, **{"vms__vm-a__additional_disks": [{"interface": "scsi0", "size": 1}]})
    found = checked(data).found.errors
    assert [one.kind.code for one in found] == ["E-DEPLOYMENT-VALUE"]
    assert "scsi0" in found[0].detail


def test_two_guests_with_nothing_but_the_required_fields_are_enough() -> None:
    least = {"vm_id": 200, "hostname": "least", "vlan": "ai"}
    assert container(edited(SMALL, containers__least=least), "least").cpu.cores == 2
    assert CONTAINER["cpu_cores"] == 2
