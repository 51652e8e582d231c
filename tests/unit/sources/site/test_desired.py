"""An env becomes the model that everything after it works on."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.site import FULL, KEY, KEY_2, SEED, codes, findings, write_site

from stackyard.desired import Container, DeclaredFile, Desired, Download, Secret, Vm, VxlanZone, problems
from stackyard.sources.site import ConfigResolver, Site

SHOP = FULL["envs/shop.yaml"]


@pytest.fixture
def shop(tmp_path: Path) -> Desired:
    return ConfigResolver(write_site(tmp_path, FULL)).resolve_desired("shop")


def test_the_seeds_guest_is_a_machine_with_its_image_and_the_sites_user(tmp_path: Path) -> None:
    desired = ConfigResolver(write_site(tmp_path)).resolve_desired("dev", "pve")
    (vm,) = desired.vms
    assert (vm.key, vm.name, vm.node, vm.vm_id) == ("test", "test", "pve", 99900)
    assert (vm.cpu.cores, vm.memory.dedicated_mib) == (1, 2048)
    (disk,) = vm.disks
    assert (disk.datastore, disk.size_gib, disk.file) == ("local-zfs", 20, "local:iso/debian-12.img")
    (nic,) = vm.nics
    assert (nic.bridge, nic.ipv4) == ("vmbr0", "dhcp")
    assert vm.cloud_init is not None
    assert [user.name for user in vm.cloud_init.users] == ["homestak", "root"]
    assert vm.cloud_init.users[0].keys == (KEY, KEY_2)
    assert vm.cloud_init.users[1].password == Secret(secret="passwords.vm_root")


def test_the_packages_of_the_site_and_of_the_posture_reach_a_guest_with_its_own(tmp_path: Path) -> None:
    env = SEED["envs/dev.yaml"] + "    packages: [jq, htop]\n"
    boot = ConfigResolver(write_site(tmp_path, envs__dev=env)).resolve_desired("dev", "pve").vms[0].cloud_init
    assert boot is not None
    assert boot.packages == ("htop", "curl", "wget", "net-tools", "strace", "tcpdump", "jq")


def test_a_built_model_has_no_contradictions_and_survives_json(shop: Desired) -> None:
    assert problems(shop) == ()
    assert Desired.from_json(shop.to_json()) == shop


def test_no_secret_is_in_the_model(tmp_path: Path) -> None:
    resolver = ConfigResolver(write_site(tmp_path, FULL))
    text = resolver.resolve_desired("shop").model_dump_json()
    assert not any(value in text for _, value in resolver.site.secrets.values())


def test_a_network_of_the_sdn_is_made_with_its_router_as_the_gateway(shop: Desired) -> None:
    (zone,) = shop.zones
    assert isinstance(zone, VxlanZone)
    assert zone.peers == ("192.0.2.11", "192.0.2.12")
    assert [(vnet.name, vnet.zone, vnet.tag) for vnet in shop.vnets] == [("shop", "shop", 20010)]
    assert [(subnet.cidr, subnet.gateway) for subnet in shop.subnets] == [("10.10.20.0/24", "10.10.20.1")]
    router, web = shop.vms
    assert (router.nics[0].gateway4, router.nics[1].gateway4) == ("192.0.2.1", None)
    assert (web.nics[0].bridge, web.nics[0].gateway4) == ("shop", "10.10.20.1")


def test_networks_of_the_site_are_used_and_not_made_by_an_env(shop: Desired) -> None:
    assert shop.bridges == ()
    assert shop.vlans == ()
    cache = shop.containers[0]
    assert (cache.nics[0].bridge, cache.nics[0].vlan, cache.nics[0].gateway4) == ("vmbr0", 30, None)


def test_every_field_of_the_model_can_be_written(shop: Desired) -> None:
    web = shop.vms[1]
    assert isinstance(web, Vm)
    assert (web.cpu.cores, web.cpu.type, web.cpu.sockets) == (2, "host", 2)
    assert (web.memory.dedicated_mib, web.memory.floating_mib) == (4096, 1024)
    assert [(disk.interface, disk.size_gib, disk.ssd) for disk in web.disks] == [
        ("scsi0", 10, True),
        ("scsi5", 50, False),
    ]
    assert web.startup is not None
    assert (web.startup.order, web.depends_on, web.tags, web.pool) == (
        2,
        ("router",),
        ("shop", "web"),
        "shop",
    )
    cache = shop.containers[0]
    assert isinstance(cache, Container)
    assert (cache.memory.dedicated_mib, cache.memory.swap_mib) == (512, 0)
    assert cache.features.nesting
    assert cache.root_disk is not None
    assert (cache.root_disk.datastore, cache.root_disk.size_gib) == ("ceph", 4)
    assert cache.mounts[0].path == "/data"
    assert cache.ssh_keys == (KEY,)


def test_files_are_declared_once_a_node_and_only_where_they_are_used(shop: Desired) -> None:
    files = {file.key: file for file in shop.files}
    assert set(files) == {"image/alpine", "image/debian-ct@pve2", "hook"}
    image = files["image/alpine"]
    assert isinstance(image, Download)
    assert (image.node, image.content, image.file_name) == ("pve1", "import", "shop-alpine.qcow2")
    assert image.checksum_algorithm == "sha256"
    assert files["image/debian-ct@pve2"].node == "pve2"
    assert shop.vms[1].disks[0].file == DeclaredFile(file="image/alpine")
    assert shop.containers[0].template == DeclaredFile(file="image/debian-ct@pve2")


def test_bridges_and_vlans_with_create_are_made_on_every_node_of_the_env(tmp_path: Path) -> None:
    networks = """\
networks:
  inner: {type: bridge, bridge: vmbr9, create: true, vlan_aware: true, cidr: 10.9.0.0/24}
  tagged: {type: vlan, bridge: vmbr9, tag: 7, create: true, address: 10.7.0.2/24}
"""
    env = f"{networks}vms:\n  - {{name: a, template: test, network: inner, ip: 10.9.0.5/24}}\n"
    desired = ConfigResolver(write_site(tmp_path, envs__dev=env)).resolve_desired("dev", "pve")
    (bridge,) = desired.bridges
    assert (bridge.node, bridge.name, bridge.vlan_aware) == ("pve", "vmbr9", True)
    (vlan,) = desired.vlans
    assert (vlan.name, vlan.interface, vlan.tag, vlan.address4) == ("vmbr9.7", "vmbr9", 7, "10.7.0.2/24")


def test_a_guest_without_cards_has_none(tmp_path: Path) -> None:
    env = SEED["envs/dev.yaml"] + "    nics: []\n"
    assert ConfigResolver(write_site(tmp_path, envs__dev=env)).resolve_desired("dev", "pve").vms[0].nics == ()


def test_a_clone_needs_no_size_of_its_own(tmp_path: Path) -> None:
    env = "vms: [{name: a, clone: {vm_id: 9000}}]\n"
    vm = ConfigResolver(write_site(tmp_path, envs__dev=env)).resolve_desired("dev", "pve").vms[0]
    assert vm.clone is not None
    assert vm.disks == ()
    assert vm.cloud_init is not None


def test_the_env_of_one_node_goes_to_another_with_its_datastore(tmp_path: Path) -> None:
    resolver = ConfigResolver(write_site(tmp_path, FULL))
    vm = resolver.resolve_desired("shop", "pve2").vms[0]
    assert (vm.node, vm.disks[0].datastore) == ("pve2", "ceph")


NETWORK_DEFECTS = {
    "an address outside its network": (
        SHOP.replace("10.10.20.11/24", "10.10.30.11/24"),
        "E-SITE-ADDRESS",
        "22:9",
    ),
    "another prefix than that of the network": (
        SHOP.replace("10.10.20.11/24", "10.10.20.11/16"),
        "E-SITE-ADDRESS",
        "22:9",
    ),
    "an address outside the network of its bridge": (
        SHOP.replace("{network: lan, ipv4: 192.0.2.20/24}", "{bridge: vmbr0, ipv4: 192.0.9.20/24}"),
        "E-SITE-ADDRESS",
        "16:31",
    ),
    "the address of the router": (
        SHOP.replace("10.10.20.11/24", "10.10.20.1/24"),
        "E-SITE-ADDRESS-TWICE",
        "22:9",
    ),
    "a router that is no guest": (SHOP.replace("router: router", "router: ruter"), "E-SITE-ROUTER", "9:13"),
    "a router without an address there": (
        SHOP.replace("{network: shop, ipv4: 10.10.20.1/24}", "{network: shop}"),
        "E-SITE-ROUTER",
        "9:13",
    ),
    "a gateway that is not the router's": (
        SHOP.replace("    router: router", "    gateway: 10.10.20.9\n    router: router"),
        "E-SITE-ROUTER",
        "9:14",
    ),
    "a gateway outside its network": (
        SHOP.replace("    router: router", "    gateway: 10.10.21.1"),
        "E-SITE-VALUE",
        "5:5",
    ),
    "a network with the name of one of the site's": (
        SHOP.replace("networks:\n", "networks:\n  lan: {type: bridge, bridge: vmbr5}\n"),
        "E-SITE-TWICE",
        "4:3",
    ),
    "a network of a type nobody knows": (SHOP.replace("type: vxlan", "type: vxlam"), "E-SITE-VALUE", "5:11"),
    "a VXLAN without its tag": (SHOP.replace("    tag: 20010\n", ""), "E-SITE-VALUE", "5:5"),
    "a name that no vnet can have": (
        SHOP.replace("  shop:\n    type", "  the-shop:\n    type").replace(
            "network: shop", "network: the-shop"
        ),
        "E-SITE-NETWORK",
        "4:3",
    ),
    "a second card in a network that is not there": (
        SHOP.replace("{network: shop, ipv4", "{network: shpo, ipv4"),
        "E-SITE-REFERENCE",
        "17:19",
    ),
    "a file that is not declared": (
        SHOP.replace("{file: hook}", "{file: hok}"),
        "E-SITE-CONTRADICTION",
        "29:18",
    ),
    "a MAC address used twice": (
        SHOP.replace("ipv4: 192.0.2.20/24}", "ipv4: 192.0.2.20/24, mac: 'BC:24:11:00:00:01'}").replace(
            "ipv4: 10.10.20.1/24}", "ipv4: 10.10.20.1/24, mac: 'bc:24:11:00:00:01'}"
        ),
        "E-SITE-CONTRADICTION",
        "17:51",
    ),
    "packages that nothing carries into a container": (
        SHOP.replace("    features:", "    packages: [vim]\n    features:"),
        "E-SITE-KEY",
        "42:15",
    ),
}


@pytest.mark.parametrize("name", NETWORK_DEFECTS)
def test_what_does_not_fit_together_is_found_at_its_place(name: str, tmp_path: Path) -> None:
    text, code, place = NETWORK_DEFECTS[name]
    assert text != SHOP
    found = Site.open(write_site(tmp_path, {**FULL, "envs/shop.yaml": text})).found.errors
    assert (code, f"{tmp_path}/envs/shop.yaml:{place}") in [(one.kind.code, str(one.where)) for one in found]


def test_networks_of_one_zone_must_agree_on_the_zone(tmp_path: Path) -> None:
    more = "  other: {type: vxlan, zone: shop, tag: 3, peers: [192.0.2.99]}\npools:"
    found = codes(write_site(tmp_path, {**FULL, "envs/shop.yaml": SHOP.replace("pools:", more)}))
    assert found == ["E-SITE-ZONE"]


def test_the_site_that_uses_everything_has_nothing_wrong(tmp_path: Path) -> None:
    assert findings(write_site(tmp_path, FULL)) == []


SHARED = """\
networks:
  wide: {type: vxlan, zone: wide, tag: 5, cidr: 10.5.0.0/16, gateway: 10.5.0.1, peers: [192.0.2.1]}
  inner: {type: bridge, bridge: vmbr8, create: true}
  there: {type: bridge, bridge: vmbr0}
pools: {all: null}
"""


def test_what_the_site_declares_for_all_is_made_by_the_site_and_by_no_env(tmp_path: Path) -> None:
    env = "vms: [{name: a, template: test, network: wide, ip: 10.5.0.9/16}]\n"
    resolver = ConfigResolver(write_site(tmp_path, site=SHARED, envs__dev=env))
    of_env = resolver.resolve_desired("dev", "pve")
    assert (of_env.zones, of_env.bridges, of_env.pools) == ((), (), ())
    assert (of_env.vms[0].nics[0].bridge, of_env.vms[0].nics[0].gateway4) == ("wide", "10.5.0.1")
    shared = resolver.resolve_shared("pve")
    assert [zone.name for zone in shared.zones] == ["wide"]
    assert [(subnet.vnet, subnet.gateway) for subnet in shared.subnets] == [("wide", "10.5.0.1")]
    assert [bridge.name for bridge in shared.bridges] == ["vmbr8"]
    assert [pool.name for pool in shared.pools] == ["all"]
    assert shared.vms == ()


def test_a_router_of_a_network_for_all_needs_the_gateway_written(tmp_path: Path) -> None:
    site = SHARED.replace("gateway: 10.5.0.1", "router: a")
    assert codes(write_site(tmp_path, site=site)) == ["E-SITE-ROUTER"]
