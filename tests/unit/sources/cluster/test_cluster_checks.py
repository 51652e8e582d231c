"""Everything that is wrong with a cluster has a code and a place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.clusters import AGENT_ID, node, write_cluster

from stackyard.base.errors import InvalidInputError
from stackyard.sources.cluster.load import load_cluster, open_cluster
from stackyard.talosapi.schematic import VANILLA_ID

ONE = [node(1)]
SEABIOS = {"bios": "seabios"}

# What is written, and the code and the file that say what is wrong with it.
PROBLEMS: dict[str, tuple[dict[str, Any], str, str]] = {
    "host bits": ({"node_cidr": "192.0.2.7/24"}, "E-CLUSTER-HOST-BITS", "cluster.yaml:1"),
    "no network": ({"node_cidr": "192.0.2.0"}, "E-CLUSTER-CIDR", "cluster.yaml:1"),
    "no address": ({"cluster_api_addr": "192.0.2.300"}, "E-CLUSTER-ADDRESS", "cluster.yaml:2"),
    "missing network": ({"node_cidr": None}, "E-CLUSTER-MISSING", "cluster.yaml:1"),
    "pods in the network of nodes": (
        {"cluster_pod_cidr": "192.0.0.0/16"},
        "E-CLUSTER-OVERLAP",
        "cluster.yaml:5",
    ),
    "nodes in the built-in network of pods": (
        {
            "node_cidr": "10.42.3.0/24",
            "cluster_api_addr": "10.42.3.10",
            "nodes": [node(1, address="10.42.3.20")],
        },
        "E-CLUSTER-OVERLAP",
        "cluster.yaml:1",
    ),
    "API address outside": ({"cluster_api_addr": "198.51.100.1"}, "E-CLUSTER-OUTSIDE", "cluster.yaml:2"),
    "gateway outside": ({"node_default_gateway": "198.51.100.1"}, "E-CLUSTER-OUTSIDE", "cluster.yaml:5"),
    "node outside": ({"nodes": [node(1, address="198.51.100.1")]}, "E-CLUSTER-OUTSIDE", "nodes.yaml:3"),
    "broadcast address": (
        {"nodes": [node(1, address="192.0.2.255")]},
        "E-CLUSTER-NOT-A-HOST",
        "nodes.yaml:3",
    ),
    "node has the API address": (
        {"nodes": [node(1, address="192.0.2.10")]},
        "E-CLUSTER-SAME-ADDRESS",
        "nodes.yaml:3",
    ),
    "node has the built-in gateway": (
        {"nodes": [node(1, address="192.0.2.1")]},
        "E-CLUSTER-SAME-ADDRESS",
        "nodes.yaml:3",
    ),
    "gateway of Cilium has the API address": (
        {"cluster_gateway_addr": "192.0.2.10"},
        "E-CLUSTER-SAME-ADDRESS",
        "cluster.yaml:5",
    ),
    "VLAN 99999": ({"node_vlan_tag": "99999"}, "E-CLUSTER-VLAN", "cluster.yaml:5"),
    "VLAN 0": ({"node_vlan_tag": 0}, "E-CLUSTER-VLAN", "cluster.yaml:5"),
    "VLAN in words": ({"node_vlan_tag": "ten"}, "E-CLUSTER-VLAN", "cluster.yaml:5"),
    "VMs of another architecture": ({"talos_arch": "arm64"}, "E-CLUSTER-ARCH", "cluster.yaml:5"),
    "same name": ({"nodes": [node(1), node(4, name="k8s-1")]}, "E-CLUSTER-SAME-NODE", "nodes.yaml:8"),
    "same address": (
        {"nodes": [node(1), node(4, address="192.0.2.21")]},
        "E-CLUSTER-SAME-ADDRESS",
        "nodes.yaml:9",
    ),
    "same card": (
        {"nodes": [node(1), node(4, mac_addr="BC:24:11:00:00:01")]},
        "E-CLUSTER-SAME-MAC",
        "nodes.yaml:12",
    ),
    "same VM ID": (
        {"nodes": [node(1, vm_id=101), node(4, vm_id=101)]},
        "E-CLUSTER-SAME-VM-ID",
        "nodes.yaml:15",
    ),
    "VM ID too low": ({"nodes": [node(1, vm_id=99)]}, "E-CLUSTER-VALUE", "nodes.yaml:8"),
    "no nodes": ({"nodes": []}, "E-CLUSTER-NO-NODES", "nodes.yaml:1"),
    "no controller": ({"nodes": [node(4)]}, "E-CLUSTER-NO-CONTROLLER", "nodes.yaml:1"),
    "two controllers": ({"nodes": [node(1), node(2)]}, "E-CLUSTER-EVEN-CONTROLLERS", "nodes.yaml:1"),
    "reserved name": ({"nodes": [node(1, name="worker")]}, "E-CLUSTER-NODE-NAME", "nodes.yaml:2"),
    "name in capitals": ({"nodes": [node(1, name="K8s")]}, "E-CLUSTER-NODE-NAME", "nodes.yaml:2"),
    "multicast card": ({"nodes": [node(1, mac_addr="01:00:5e:00:00:01")]}, "E-CLUSTER-MAC", "nodes.yaml:6"),
    "card with dashes": ({"nodes": [node(1, mac_addr="bc-24-11-00-00-01")]}, "E-CLUSTER-MAC", "nodes.yaml:6"),
    "schematic with a z": (
        {"nodes": [node(1, schematic_id="z" * 64)]},
        "E-CLUSTER-SCHEMATIC-ID",
        "nodes.yaml:7",
    ),
    "short schematic": ({"nodes": [node(1, schematic_id="ab")]}, "E-CLUSTER-SCHEMATIC-ID", "nodes.yaml:7"),
    "no schematic": ({"nodes": [node(1, schematic_id=None)]}, "E-CLUSTER-NO-SCHEMATIC", "nodes.yaml:2"),
    "schematic of another content": (
        {"nodes": [node(1, schematic={"extensions": ["siderolabs/iscsi-tools"]})]},
        "E-CLUSTER-OTHER-SCHEMATIC",
        "nodes.yaml:7",
    ),
    "agent on a vanilla image": (
        {"proxmox_vm_advanced": {"qemu_agent": True}, "nodes": [node(1, schematic_id=VANILLA_ID)]},
        "E-CLUSTER-NO-AGENT",
        "cluster.yaml:6",
    ),
    "agent on an image without it": (
        {
            "proxmox_vm_advanced": {"qemu_agent": True},
            "talos_schematic": {"extensions": ["siderolabs/iscsi-tools"]},
            "nodes": [node(1, schematic_id=None)],
        },
        "E-CLUSTER-NO-AGENT",
        "cluster.yaml:6",
    ),
    "encryption with seabios": (
        {"proxmox_vm_advanced": SEABIOS, "nodes": [node(1, encrypt_disk=True)]},
        "E-CLUSTER-ENCRYPTION",
        "nodes.yaml:8",
    ),
    "secure boot with seabios": (
        {"proxmox_vm_advanced": SEABIOS, "nodes": [node(1, secureboot=True)]},
        "E-CLUSTER-SECUREBOOT",
        "nodes.yaml:8",
    ),
    "secure boot with i440fx": (
        {"proxmox_vm_advanced": {"machine": "i440fx"}, "nodes": [node(1, secureboot=True)]},
        "E-CLUSTER-SECUREBOOT",
        "nodes.yaml:8",
    ),
    "kvm64": ({"proxmox_vm_advanced": {"cpu_type": "kvm64"}}, "E-CLUSTER-CPU", "cluster.yaml:6"),
    "balloon": ({"proxmox_vm_advanced": {"balloon": 9000}}, "E-CLUSTER-BALLOON", "cluster.yaml:6"),
    "MTU": ({"nodes": [node(1, mtu=9001)]}, "E-CLUSTER-VALUE", "nodes.yaml:8"),
    "disk too small": ({"nodes": [node(1, vm_disk_size=8)]}, "E-CLUSTER-VALUE", "nodes.yaml:8"),
    "cores of a role": ({"proxmox_vm_worker_defaults": {"cores": 65}}, "E-CLUSTER-VALUE", "cluster.yaml:6"),
    "version with v": ({"talos_version": "v1.12.1"}, "E-CLUSTER-VERSION", "cluster.yaml:5"),
    "version of two numbers": ({"kubernetes_version": "1.35"}, "E-CLUSTER-VERSION", "cluster.yaml:5"),
    "API of another path": ({"proxmox_api_url": "https://pve/login"}, "E-CLUSTER-URL", "cluster.yaml:3"),
    "API without a scheme": ({"proxmox_api_url": "pve:8006"}, "E-CLUSTER-URL", "cluster.yaml:3"),
    "VM without a host": ({"proxmox_node": None}, "E-CLUSTER-NO-HOST", "nodes.yaml:2"),
    "host without an API": ({"proxmox_api_url": None}, "E-CLUSTER-NO-API", "cluster.yaml:3"),
    "two names of one field": ({"target_node": "pve"}, "E-CLUSTER-TWO-NAMES", "cluster.yaml:5"),
    "half of a token": ({"proxmox_api_token_id": "a@pve!t"}, "E-CLUSTER-HALF-TOKEN", "cluster.yaml:5"),
    "short passphrase": ({"state_encryption_passphrase": "short"}, "E-CLUSTER-VALUE", "cluster.yaml:5"),
    "unknown field": ({"node_cdir": "192.0.2.0/24"}, "E-CLUSTER-KEY", "cluster.yaml:5"),
    "unknown field of a node": ({"nodes": [node(1, adress="x")]}, "E-CLUSTER-KEY", "nodes.yaml:8"),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_problem_has_its_code_and_its_place(name: str, tmp_path: Path) -> None:
    fields, code, place = PROBLEMS[name]
    fields = {"nodes": ONE, **fields}

    found = open_cluster(write_cluster(tmp_path, **fields)).found

    errors = [(one.kind.code, str(one.where).rpartition("/")[2].rpartition(":")[0]) for one in found.errors]
    assert errors == [(code, place)]


WARNINGS: dict[str, tuple[dict[str, Any], str]] = {
    "agent by default on a vanilla image": (
        {"nodes": [node(1, schematic_id=VANILLA_ID)]},
        "W-CLUSTER-AGENT-OFF",
    ),
    "release that is not known": ({"talos_version": "1.9.0"}, "W-CLUSTER-TALOS-VERSION"),
    "releases that do not go together": ({"talos_version": "1.10.3"}, "W-CLUSTER-KUBERNETES-VERSION"),
    "encryption without secure boot": ({"nodes": [node(1, encrypt_disk=True)]}, "W-CLUSTER-ENCRYPTION"),
    "little memory": ({"nodes": [node(1, vm_memory=1024)]}, "W-CLUSTER-MEMORY"),
    "a disk that VMs do not have": ({"nodes": [node(1, disk="/dev/vda")]}, "W-CLUSTER-DISK"),
    "a VLAN that nodes join when they are configured": ({"node_vlan_tag": 42}, "W-CLUSTER-VLAN"),
    "API in clear": ({"proxmox_api_url": "http://pve:8006"}, "W-CLUSTER-CLEAR-API"),
    "VM settings of machines": (
        {"proxmox_api_url": None, "proxmox_node": None, "nodes": [node(1, vm_cores=4)]},
        "W-CLUSTER-UNUSED-VM",
    ),
    "some nodes with a VM ID": ({"nodes": [node(1, vm_id=101), node(4)]}, "W-CLUSTER-SOME-VM-IDS"),
    "all controllers on one of three hosts": (
        {"proxmox_nodes": ["a", "b", "c"], "nodes": [node(n, proxmox_node="a") for n in (1, 2, 3)]},
        "W-CLUSTER-QUORUM",
    ),
}


@pytest.mark.parametrize("name", WARNINGS)
def test_a_warning_stops_nothing(name: str, tmp_path: Path) -> None:
    fields, code = WARNINGS[name]
    opened = open_cluster(write_cluster(tmp_path, **{"nodes": ONE, **fields}))

    assert [one.kind.code for one in opened.found] == [code]
    assert opened.require().nodes


@pytest.mark.parametrize(
    "fields",
    [
        {"node_vlan_tag": 42, "proxmox_vlan_mode": True},
        {"node_vlan_tag": 42, "talos_arch": "arm64", "proxmox_api_url": None, "proxmox_node": None},
    ],
    ids=["tagged by Proxmox", "machines of their own"],
)
def test_nothing_is_said_where_vlan_and_architecture_do_no_harm(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    assert not list(open_cluster(write_cluster(tmp_path, **{"nodes": ONE, **fields})).found)


def test_everything_is_found_at_once(tmp_path: Path) -> None:
    folder = write_cluster(
        tmp_path,
        node_cidr="192.0.2.1/24",
        node_vlan_tag="5000",
        talos_version="latest",
        nodes=[node(4, address="x", mac_addr="y", schematic_id="q")],
    )

    with pytest.raises(InvalidInputError) as caught:
        load_cluster(folder)

    codes = {one.kind.code for one in caught.value.diagnostics}
    assert codes == {
        "E-CLUSTER-HOST-BITS",
        "E-CLUSTER-VLAN",
        "E-CLUSTER-VERSION",
        "E-CLUSTER-ADDRESS",
        "E-CLUSTER-MAC",
        "E-CLUSTER-SCHEMATIC-ID",
        "E-CLUSTER-NO-CONTROLLER",
    }


def test_a_mistake_names_what_was_meant(tmp_path: Path) -> None:
    found = open_cluster(
        write_cluster(
            tmp_path, node_cidr="192.0.2.7/24", proxmox_api_token_secert="x", nodes=[node(1, adress="x")]
        )
    ).found

    details = " ".join(one.detail for one in found)
    assert "Did you mean 192.0.2.0/24?" in details
    assert "Did you mean `proxmox_api_token_secret`" in details
    assert "Did you mean `address`?" in details


def test_a_node_whose_name_is_wrong_is_named_as_the_file_has_it(tmp_path: Path) -> None:
    nodes = [node(1, vm_id=101), node(2, name="global"), node(3, name=None)]
    more = {"proxmox_vm_advanced": {"qemu_agent": True}, "schematic_id": VANILLA_ID, "nodes_count": 2}
    plain = [{**one, "schematic_id": VANILLA_ID} for one in nodes]
    details = " ".join(one.detail for one in open_cluster(write_cluster(tmp_path, plain, **more)).found)
    assert "global, nodes[2] have none." in details
    assert "the image of k8s-1, global, nodes[2] has no agent" in details
    assert "names 3: k8s-1, global, nodes[2]." in details
    assert "None" not in details


def test_no_secret_is_in_an_error(tmp_path: Path) -> None:
    folder = write_cluster(
        tmp_path, proxmox_api_token_id="hunter2", tfstate_password=["hunter2"], cluster_api_addr="x"
    )

    found = open_cluster(folder).found

    assert len(found.errors) >= 3
    assert "hunter2" not in repr(list(found))


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "nodes", "nodes: [", "[]\n", "node_cidr: 'x\n"])
@pytest.mark.parametrize("file", ["cluster.yaml", "nodes.yaml"])
def test_a_file_that_says_nothing_is_never_a_cluster(file: str, text: str, tmp_path: Path) -> None:
    folder = write_cluster(tmp_path)
    (folder / file).write_text(text)

    opened = open_cluster(folder)

    assert opened.found.errors
    assert opened.cluster is None


def test_both_forms_in_one_folder_are_refused(tmp_path: Path) -> None:
    folder = write_cluster(tmp_path)
    (folder / "cluster.toml").write_text("[network]\n")

    assert [one.kind.code for one in open_cluster(folder).found] == ["E-CLUSTER-TWO-FORMS"]


def test_a_folder_without_files_says_which_are_missing(tmp_path: Path) -> None:
    found = open_cluster(tmp_path).found

    assert [one.kind.code for one in found] == ["E-CLUSTER-NO-FILE", "E-CLUSTER-NO-FILE"]


def test_an_id_that_fits_its_content_is_accepted(tmp_path: Path) -> None:
    content = {"extensions": ["siderolabs/qemu-guest-agent"]}
    cluster = load_cluster(write_cluster(tmp_path, nodes=[node(1, schematic=content)]))

    assert cluster.nodes[0].image.schematic_id == AGENT_ID


@pytest.mark.parametrize("broken", ["cluster.yaml", "nodes.yaml"])
def test_a_file_that_cannot_be_read_hides_no_problem_of_the_other(tmp_path: Path, broken: str) -> None:
    write_cluster(tmp_path, [node(1, name="A_B")], node_cidr="192.0.2.7/24")
    (tmp_path / broken).write_text("nodes: [\n")

    found = {(one.kind.code, one.where.path) for one in open_cluster(tmp_path).found if one.where}

    files = {Path(path).name: code for code, path in found}
    other = {"cluster.yaml": "E-CLUSTER-NODE-NAME", "nodes.yaml": "E-CLUSTER-HOST-BITS"}
    assert files[broken] == "E-YAML-SYNTAX"
    assert other[broken] in {code for code, _ in found}
