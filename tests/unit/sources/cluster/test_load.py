"""What a cluster resolves to: precedence, defaults, hosts, images, state and secrets."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.clusters import AGENT_ID, NODES, node, write_cluster

from stackyard.base.errors import InvalidInputError
from stackyard.secrets import Keyring, SecretsLockedError, create_sops_file, new_identity
from stackyard.sources.cluster.load import load_cluster, open_cluster
from stackyard.sources.cluster.model import VmSize
from stackyard.sources.cluster.vm_ids import list_vm_ids
from stackyard.talosapi.schematic import Schematic


def sizes(folder: Path) -> list[tuple[int, int, int, int]]:
    found = [one.vm.size for one in load_cluster(folder).nodes if one.vm is not None]
    return [(size.cores, size.sockets, size.memory, size.disk_size) for size in found]


def test_without_anything_each_role_has_its_built_in_size(tmp_path: Path) -> None:
    assert sizes(write_cluster(tmp_path, nodes=[node(1), node(4)])) == [(4, 1, 8192, 64), (8, 1, 16384, 256)]


def test_global_sizes_beat_the_built_in_ones_of_a_role(tmp_path: Path) -> None:
    folder = write_cluster(
        tmp_path, nodes=[node(1), node(4)], proxmox_vm_defaults={"cores": 2, "memory": 4096, "disk_size": 40}
    )

    assert sizes(folder) == [(2, 1, 4096, 40), (2, 1, 4096, 40)]
    assert load_cluster(folder).vm_defaults == VmSize(cores=2, sockets=1, memory=4096, disk_size=40)


def test_each_key_is_chosen_by_itself(tmp_path: Path) -> None:
    folder = write_cluster(
        tmp_path,
        nodes=[node(1, vm_cores=16), node(4)],
        proxmox_vm_defaults={"cores": 2, "memory": 4096},
        proxmox_vm_controller_defaults={"memory": 6144, "sockets": 2},
    )

    assert sizes(folder) == [(16, 2, 6144, 64), (2, 1, 4096, 256)]


def test_versions_have_defaults_and_one_version_is_everywhere(tmp_path: Path) -> None:
    built_in = load_cluster(write_cluster(tmp_path))
    cluster = load_cluster(write_cluster(tmp_path, talos_version="1.13.2"))

    assert built_in.nodes[0].image.url.endswith("/v1.12.0/nocloud-amd64.iso")
    assert built_in.kubernetes_version == "1.35.0"
    assert {one.image.version for one in cluster.nodes} == {cluster.talos_version} == {"1.13.2"}
    assert cluster.nodes[0].image.installer.endswith(":v1.13.2")


def test_a_certificate_that_no_one_signed_can_be_accepted(tmp_path: Path) -> None:
    cluster = load_cluster(write_cluster(tmp_path, proxmox_insecure=True))

    assert cluster.proxmox is not None
    assert cluster.proxmox.is_insecure
    assert cluster.proxmox.endpoint == "https://pve.example.com:8006"


@pytest.mark.parametrize(("mode", "on_card"), [(True, 42), (False, None), (None, None)])
def test_a_vlan_is_tagged_once(tmp_path: Path, mode: bool | None, on_card: int | None) -> None:
    network = load_cluster(write_cluster(tmp_path, node_vlan_tag="42", proxmox_vlan_mode=mode)).network

    assert (network.vlan_tag, network.nic_vlan_tag) == (42, on_card)
    assert network.is_tagged_by_proxmox is (on_card is not None)


def test_encryption_brings_a_tpm(tmp_path: Path) -> None:
    cluster = load_cluster(
        write_cluster(tmp_path, nodes=[node(1, encrypt_disk=True, secureboot=True), node(4)])
    )

    assert [one.vm is not None and one.vm.has_tpm for one in cluster.nodes] == [True, False]
    assert cluster.nodes[0].image.variant == "nocloud-amd64-secureboot"


def test_images_follow_the_settings_of_the_cluster(tmp_path: Path) -> None:
    cluster = load_cluster(
        write_cluster(
            tmp_path,
            talos_factory="https://factory.example.com/",
            talos_image="disk",
            talos_schematic={"extensions": ["siderolabs/qemu-guest-agent"]},
            nodes=[node(1, schematic_id=None)],
        )
    )

    image = cluster.nodes[0].image
    assert image.url == (
        "https://factory.example.com/image/ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"
        "/v1.12.0/nocloud-amd64.qcow2"
    )
    assert image.file_name == "talos-v1.12.0-ce4c980550dd.qcow2"
    assert cluster.schematics == {image.schematic_id: Schematic(extensions=("siderolabs/qemu-guest-agent",))}


def test_a_mirror_may_have_a_port_and_a_path(tmp_path: Path) -> None:
    mirror = "https://mirror.example.com:8443/talos/factory/"
    cluster = load_cluster(write_cluster(tmp_path, talos_factory=mirror, nodes=[node(1, secureboot=True)]))

    image = cluster.nodes[0].image
    assert image.url == f"{mirror}image/{AGENT_ID}/v1.12.0/nocloud-amd64-secureboot.iso"
    assert image.installer == (
        f"mirror.example.com:8443/talos/factory/nocloud-installer-secureboot/{AGENT_ID}:v1.12.0"
    )


def test_a_disk_image_for_a_machine_of_its_own_is_one_to_write_to_a_disk(tmp_path: Path) -> None:
    cluster = load_cluster(
        write_cluster(tmp_path, talos_image="disk", proxmox_api_url=None, proxmox_node=None, nodes=[node(1)])
    )

    image = cluster.nodes[0].image
    assert image.url.endswith("/metal-amd64.raw.xz")
    assert image.file_name == "talos-v1.12.0-ce4c980550dd-metal.raw.xz"


def test_nodes_are_spread_and_a_new_one_moves_no_other(tmp_path: Path) -> None:
    def hosts(nodes: list[dict[str, Any]]) -> list[str]:
        cluster = load_cluster(write_cluster(tmp_path, nodes=nodes, proxmox_nodes=["a", "b", "c"]))
        return [one.vm.proxmox_node for one in cluster.nodes if one.vm is not None]

    first = [node(1), node(2, proxmox_node="a"), node(3), node(4)]
    assert hosts(first) == ["a", "a", "b", "c"]
    assert hosts([*first, node(5), node(6)]) == ["a", "a", "b", "c", "b", "a"]


def test_labels_of_a_node_are_added_to_those_of_the_cluster(tmp_path: Path) -> None:
    cluster = load_cluster(
        write_cluster(
            tmp_path,
            registry_mirrors={"docker.io": ["https://mirror.example.com"]},
            node_labels={"example.com/rack": "1", "zone": "a"},
            nodes=[node(1, node_labels={"zone": "b"}), node(4)],
        )
    )

    assert [dict(one.labels) for one in cluster.nodes] == [
        {"example.com/rack": "1", "zone": "b"},
        {"example.com/rack": "1", "zone": "a"},
    ]
    assert cluster.registry_mirrors == {"docker.io": ("https://mirror.example.com",)}


def test_target_node_is_another_name(tmp_path: Path) -> None:
    cluster = load_cluster(write_cluster(tmp_path, proxmox_node=None, target_node="pve2", nodes=[node(1)]))

    assert cluster.nodes[0].vm is not None
    assert cluster.nodes[0].vm.proxmox_node == "pve2"


def test_without_proxmox_nodes_are_machines(tmp_path: Path) -> None:
    cluster = load_cluster(write_cluster(tmp_path, proxmox_api_url=None, proxmox_node=None))

    assert cluster.proxmox is None
    assert {(one.vm, one.image.platform) for one in cluster.nodes} == {(None, "metal")}


def test_the_state_is_that_of_the_domain_where_credentials_are_there(tmp_path: Path) -> None:
    domain = "example.com"
    own = load_cluster(write_cluster(tmp_path, cloudflare_domain=domain))
    theirs = load_cluster(write_cluster(tmp_path, cloudflare_domain=domain, tfstate_password="x" * 20))
    said = load_cluster(write_cluster(tmp_path, tfstate_address="https://state.example.com/s/prod/"))

    assert own.state is None
    assert theirs.state is not None
    assert theirs.state.url == "https://tfstate.example.com/states/proxmox"
    assert theirs.state.lock_url == "https://tfstate.example.com/states/proxmox/lock"
    assert said.state is not None
    assert said.state.url == "https://state.example.com/s/prod"


def test_secrets_are_apart_from_everything_that_is_shown(tmp_path: Path) -> None:
    cluster = load_cluster(
        write_cluster(tmp_path, tfstate_password="hunter2hunter2", grafana_admin_password="hunter2x")
    )

    assert cluster.secrets["tfstate_password"] == "hunter2hunter2"
    assert not cluster.are_secrets_in_git
    assert "hunter2" not in repr(cluster) + repr(dict(cluster.values))


def test_a_state_that_is_not_encrypted_yet_has_none_as_its_previous_passphrase(tmp_path: Path) -> None:
    previous = "state_encryption_passphrase_previous"
    said: dict[str, Any] = {"state_encryption_passphrase": "sixteen-or-more-characters"}
    none: dict[str, Any] = {**said, previous: "none"}
    assert load_cluster(write_cluster(tmp_path, **none)).secrets[previous] == "none"
    with pytest.raises(InvalidInputError) as raised:
        load_cluster(write_cluster(tmp_path, **(none | {previous: "short"})))
    assert [(one.kind.code, "short" in one.detail) for one in raised.value.diagnostics] == [
        ("E-CLUSTER-VALUE", False)
    ]


def write_secrets(folder: Path, text: str) -> Keyring:
    public, secret = new_identity()
    create_sops_file(folder / "cluster.sops.yaml", text.encode(), (public,))
    return Keyring(env={"SOPS_AGE_KEY": secret})


def test_secrets_come_from_the_encrypted_file(tmp_path: Path) -> None:
    folder = write_cluster(tmp_path, cloudflare_domain="example.com")
    keyring = write_secrets(folder, "tfstate_password: hunter2hunter2\n")

    cluster = load_cluster(folder, keyring=keyring)

    assert dict(cluster.secrets) == {"tfstate_username": "terraform", "tfstate_password": "hunter2hunter2"}
    assert cluster.are_secrets_in_git
    assert cluster.state is not None


def test_without_a_key_secrets_are_refused_or_left_out(tmp_path: Path) -> None:
    folder = write_cluster(tmp_path, cloudflare_domain="example.com")
    write_secrets(folder, "tfstate_password: hunter2hunter2\n")
    stranger = Keyring(env={})

    with pytest.raises(SecretsLockedError):
        load_cluster(folder, keyring=stranger)
    opened = open_cluster(folder, keyring=stranger, are_secrets_needed=False)

    assert [one.kind.code for one in opened.found] == ["W-CLUSTER-SECRETS-LOCKED"]
    assert opened.require().state is not None
    assert not opened.require().secrets


def test_the_encrypted_file_has_secrets_alone(tmp_path: Path) -> None:
    folder = write_cluster(tmp_path, tfstate_password="hunter2hunter2")
    keyring = write_secrets(
        folder, "tfstate_password: hunter2hunter2\nnode_cidr: 192.0.2.0/24\ntfstate_pasword: hunter2\n"
    )

    found = open_cluster(folder, keyring=keyring).found

    assert sorted(one.kind.code for one in found) == [
        "E-CLUSTER-KEY",
        "E-CLUSTER-NOT-SECRET",
        "E-CLUSTER-SECRET-TWICE",
    ]
    assert "hunter2" not in repr(list(found))


def test_an_encrypted_file_in_clear_is_refused(tmp_path: Path) -> None:
    folder = write_cluster(tmp_path)
    (folder / "cluster.sops.yaml").write_text("tfstate_password: hunter2hunter2\n")

    found = open_cluster(folder).found

    assert [one.kind.code for one in found] == ["E-CLUSTER-SECRETS-CLEAR"]
    assert "hunter2" not in repr(list(found))


def test_a_cut_encrypted_file_is_refused(tmp_path: Path) -> None:
    folder = write_cluster(tmp_path)
    keyring = write_secrets(folder, "tfstate_password: hunter2hunter2\n")
    path = folder / "cluster.sops.yaml"
    path.write_bytes(path.read_bytes()[:60])

    with pytest.raises(InvalidInputError):
        load_cluster(folder, keyring=keyring)


def test_vm_ids_have_their_places(tmp_path: Path) -> None:
    cluster = load_cluster(write_cluster(tmp_path, nodes=[node(1, vm_id=101), node(4)]))

    assert [(one.vm_id, one.node, one.where and one.where.line) for one in list_vm_ids(cluster)] == [
        (101, "k8s-1", 8)
    ]


def test_fields_for_templates_are_passed_on(tmp_path: Path) -> None:
    cluster = load_cluster(
        write_cluster(tmp_path, grafana_subdomain="graphs", oidc_scopes=["openid"], nodes=[node(1)])
    )

    assert cluster.values["grafana_subdomain"] == "graphs"
    assert cluster.values["oidc_scopes"] == ["openid"]
    assert cluster.values["nodes"][0]["vm_cores"] == 4


def test_a_hundred_nodes_are_read_quickly(tmp_path: Path) -> None:
    nodes = [node(number, controller=number < 4, vm_id=1000 + number) for number in range(1, 101)]
    folder = write_cluster(tmp_path, nodes=nodes)
    load_cluster(folder)

    start = time.process_time()
    assert len(load_cluster(folder).nodes) == 100
    assert time.process_time() - start < 0.25


def test_the_same_input_gives_the_same_cluster(tmp_path: Path) -> None:
    folder = write_cluster(tmp_path, nodes=NODES)

    assert load_cluster(folder) == load_cluster(folder)
