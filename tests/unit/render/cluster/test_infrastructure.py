"""The files of an infrastructure: the names of the original, and none of its defects."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
from tests.support.resolved_clusters import SCHEMATIC, make_cluster, make_node

from stackyard.base.documents.constraints import is_pinned, satisfies
from stackyard.desired import Download
from stackyard.policy.hcl_facts import read_hcl
from stackyard.render.cluster import render_infrastructure, render_secrets
from stackyard.sources.cluster.model import Cluster, VmHardware
from stackyard.sources.cluster.vms import build_desired, list_addresses

FOLDER = Path("/srv/cluster")
FILES = {
    "README.md",
    "tofu/backend.tf",
    "tofu/main.tf",
    "tofu/outputs.tf",
    "tofu/providers.tf",
    "tofu/terraform.tfvars",
    "tofu/variables.tf",
    "tofu/versions.tf",
}
BASE_VARIABLES = {
    "proxmox_api_url",
    "proxmox_api_token_id",
    "proxmox_api_token_secret",
    "proxmox_insecure",
    "state_encryption_passphrase",
}
VARIABLES = BASE_VARIABLES | {
    "proxmox_node",
    "proxmox_iso_storage",
    "proxmox_disk_storage",
    "talos_version",
    "vm_defaults",
    "vm_controller_defaults",
    "vm_worker_defaults",
    "vm_advanced",
    "node_cidr",
    "node_default_gateway",
    "node_vlan_tag",
    "nodes",
    "cluster_api_addr",
    "cluster_pod_cidr",
    "cluster_svc_cidr",
}
OUTPUTS = {
    "node_vm_ids",
    "node_addresses",
    "controller_nodes",
    "worker_nodes",
    "talos_iso_files",
    "talos_version",
    "cluster_summary",
    "next_steps",
}


def texts(cluster: Cluster) -> dict[str, str]:
    return {name: data.decode() for name, data in render_infrastructure(cluster).items()}


def values(cluster: Cluster) -> str:
    return texts(cluster)["tofu/terraform.tfvars"]


def image(**changes: Any) -> Any:
    return dataclasses.replace(make_node(1).image, **changes)


def test_the_variables_resources_and_outputs_of_the_original_keep_their_names() -> None:
    found = texts(make_cluster(FOLDER))
    assert set(found) == FILES
    facts = {name: read_hcl(text.encode()) for name, text in found.items() if name.endswith(".tf")}
    assert all(one.problem is None for one in facts.values())
    assert set(facts["tofu/variables.tf"].variables) >= VARIABLES
    assert set(facts["tofu/outputs.tf"].outputs) == OUTPUTS
    for address in (
        'resource "proxmox_virtual_environment_download_file" "talos_iso" {',
        'resource "proxmox_virtual_environment_vm" "talos_node" {',
    ):
        assert address in found["tofu/main.tf"]
    assert 'lock_address   = "https://tfstate.example.com/states/proxmox/lock"' in found["tofu/backend.tf"]


def test_without_proxmox_only_comments_and_the_basic_variables_are_left() -> None:
    found = texts(make_cluster(FOLDER, proxmox=None, nodes=[make_node(1, vm=None)]))
    assert set(found) == FILES
    for name in ("main.tf", "outputs.tf", "providers.tf", "terraform.tfvars"):
        lines = [line for line in found[f"tofu/{name}"].splitlines() if line and not line.startswith("#")]
        assert lines == [], name
    facts = read_hcl(found["tofu/variables.tf"].encode())
    assert set(facts.variables) == BASE_VARIABLES
    secrets = render_secrets(make_cluster(FOLDER, proxmox=None))["secrets.sops.yaml"].decode()
    assert "proxmox_api_token" not in secrets


@pytest.mark.parametrize("count", [1, 3, 100])
def test_the_same_cluster_gives_the_same_bytes_and_every_node_its_entry(count: int) -> None:
    cluster = make_cluster(FOLDER, nodes=count)
    assert render_infrastructure(cluster) == render_infrastructure(cluster)
    assert len(re.findall(r"^    name +=", values(cluster), re.MULTILINE)) == count


def test_a_vlan_is_tagged_by_proxmox_or_by_talos_and_never_by_both() -> None:
    by_proxmox = make_cluster(FOLDER, network={"vlan_tag": 20, "is_tagged_by_proxmox": True})
    by_talos = make_cluster(FOLDER, network={"vlan_tag": 20, "is_tagged_by_proxmox": False})
    assert re.search(r"node_vlan_tag +\= 20\n", values(by_proxmox))
    assert re.search(r"node_vlan_tag +\= null\n", values(by_talos))


def test_the_static_address_is_given_where_the_card_is_in_the_network_of_the_nodes() -> None:
    assert "initialization {" in texts(make_cluster(FOLDER))["tofu/main.tf"]
    tagged = make_cluster(FOLDER, network={"vlan_tag": 20, "is_tagged_by_proxmox": True})
    assert "initialization {" in texts(tagged)["tofu/main.tf"]
    by_talos = make_cluster(FOLDER, network={"vlan_tag": 20, "is_tagged_by_proxmox": False})
    assert "initialization {" not in texts(by_talos)["tofu/main.tf"]


def test_a_tpm_and_the_agent_are_only_where_they_work() -> None:
    nodes = [make_node(1, vm={"has_tpm": True}), make_node(2, vm={"has_agent": False})]
    found = values(make_cluster(FOLDER, nodes=nodes))
    assert re.findall(r"tpm +\= (\w+)", found) == ["true", "false"]
    assert re.findall(r"agent +\= (\w+)", found) == ["true", "true", "false"]  # the first is vm_advanced


def test_an_image_is_downloaded_once_for_each_host_and_variant() -> None:
    nodes = [
        make_node(1),
        make_node(2),
        make_node(3, image=image(is_secureboot=True)),
        make_node(4, host="pve2"),
        make_node(5, host="pve2"),
    ]
    found = values(make_cluster(FOLDER, nodes=nodes))
    keys = re.findall(r'^  "([^"]+)" = \{', found, re.MULTILINE)
    assert keys == [f"{SCHEMATIC}-false", f"{SCHEMATIC}-false-pve2", f"{SCHEMATIC}-true"]
    assert f"{SCHEMATIC}/v1.12.1/nocloud-amd64-secureboot.iso" in found
    # The storage of two hosts may be one: no file belongs to two of them.
    files = re.findall(r'file_name +\= "([^"]+)"', found)
    assert files == [f"talos-v1.12.1-ce4c980550dd-home{end}.iso" for end in ("", "_pve2")] + [
        "talos-v1.12.1-ce4c980550dd-secureboot-home.iso"
    ]


@pytest.mark.parametrize("arch", ["amd64", "arm64"])
def test_the_guard_knows_images_by_the_names_that_the_code_has(arch: str) -> None:
    nodes = [make_node(1, image=image(arch=arch)), make_node(2, host="pve2", image=image(arch=arch))]
    cluster = make_cluster(FOLDER, nodes=nodes)
    found = values(cluster)
    keys = re.findall(r'^  "([^"]+)" = \{', found, re.MULTILINE)
    model = build_desired(cluster)
    assert [one.key for one in model.files] == keys
    assert [one.file_name for one in model.files if isinstance(one, Download)] == re.findall(
        r'file_name +\= "([^"]+)"', found
    )
    assert {f'proxmox_virtual_environment_download_file.talos_iso["{key}"]' for key in keys} < set(
        list_addresses(cluster).values()
    )


def test_a_disk_image_is_imported_and_needs_no_drive() -> None:
    found = values(make_cluster(FOLDER, nodes=[make_node(1, image=image(is_disk=True))]))
    assert "/v1.12.1/nocloud-amd64.qcow2" in found
    assert re.search(r"is_disk +\= true", found)


def test_nodes_that_are_no_vms_are_in_no_resource() -> None:
    found = values(make_cluster(FOLDER, nodes=[make_node(1), make_node(2, vm=None)]))
    assert '"k8s-1"' in found
    assert '"k8s-2"' not in found


def test_constraints_admit_the_engines_and_the_provider_and_satisfy_the_policy() -> None:
    found = texts(make_cluster(FOLDER))["tofu/versions.tf"]
    engine, provider = re.findall(r'version += "([^"]+)"', found)
    assert is_pinned(engine)
    assert is_pinned(provider)
    assert all(satisfies(version, engine) for version in ("1.11.4", "1.12.6"))
    assert satisfies("0.111.1", provider)


def test_text_of_the_input_is_data_in_hcl() -> None:
    hardware = VmHardware(cpu_type='a"${file("/etc/passwd")}%{if}\n')
    assert r'cpu_type       = "a\"$${file(\"/etc/passwd\")}%%{if}\n"' in values(
        make_cluster(FOLDER, hardware=hardware)
    )


def test_no_secret_is_in_a_file_that_git_shows() -> None:
    secrets = {
        **make_cluster(FOLDER).secrets,
        "state_encryption_passphrase": "a-long-passphrase",
        "state_encryption_passphrase_previous": "the-one-before-it",
    }
    cluster = make_cluster(FOLDER, secrets=secrets)
    everything = "".join(texts(cluster).values())
    assert not [name for name, value in secrets.items() if name != "tfstate_username" and value in everything]
    plain = render_secrets(cluster)["secrets.sops.yaml"].decode()
    assert "the-one-before-it" in plain
    assert "cf-token-1" not in plain


@pytest.mark.parametrize(
    ("secrets", "expected"),
    [
        ({}, set()),
        ({"state_encryption_passphrase": "a" * 16}, {"aes_gcm.passphrase"}),
        (
            {"state_encryption_passphrase": "a" * 16, "state_encryption_passphrase_previous": "b" * 16},
            {"aes_gcm.passphrase", "aes_gcm.previous"},
        ),
        (
            {"state_encryption_passphrase": "a" * 16, "state_encryption_passphrase_previous": "none"},
            {"aes_gcm.passphrase", "unencrypted.none"},
        ),
        ({"state_encryption_passphrase_previous": "b" * 16}, {"aes_gcm.previous", "unencrypted.none"}),
        ({"state_encryption_passphrase_previous": "none"}, set()),
    ],
)
def test_a_state_is_encrypted_and_moves_from_one_passphrase_to_another(
    secrets: dict[str, str], expected: set[str]
) -> None:
    found = texts(make_cluster(FOLDER, secrets=secrets))["tofu/backend.tf"]
    used = set(re.findall(r"method += method\.(\S+)", found))
    assert used == expected
    # Only a state that is to be encrypted for good forbids everything else.
    assert ("enforced = true\n    }\n\n    plan" in found) is (expected == {"aes_gcm.passphrase"})


def test_a_passphrase_has_the_same_name_after_it_became_the_previous_one() -> None:
    def aliases(**secrets: str) -> list[str]:
        cluster = make_cluster(FOLDER, secrets=secrets)
        return re.findall(r'alias = "([^"]+)"', texts(cluster)["tofu/backend.tf"])

    (first,) = aliases(state_encryption_passphrase="first-passphrase-1234")
    second, previous = aliases(
        state_encryption_passphrase="second-passphrase-1234",
        state_encryption_passphrase_previous="first-passphrase-1234",
    )
    assert first == previous == "passphrase-e3535d"
    assert second != previous


def test_clusters_that_share_a_storage_share_no_file_and_an_unnamed_one_has_the_name_of_the_original() -> (
    None
):
    assert '"talos-v1.12.1-ce4c980550dd.iso"' in values(make_cluster(FOLDER, name="kubernetes"))
    assert '"talos-v1.12.1-ce4c980550dd-staging.iso"' in values(make_cluster(FOLDER, name="staging"))
