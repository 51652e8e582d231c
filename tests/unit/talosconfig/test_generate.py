"""The machine configuration of a node: what is in it, for which release, and what a worker never gets."""

from __future__ import annotations

import dataclasses
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
from tests.support.resolved_clusters import make_cluster, make_node
from tests.support.talos_bundles import shared_bundle

from stackyard.sources.cluster.model import Cluster
from stackyard.talosconfig.contract import UnsupportedTalosError
from stackyard.talosconfig.documents import MAIN, MachineConfig, parse_config
from stackyard.talosconfig.generate import UnknownNodeError, generate_config
from stackyard.talosconfig.patch_files import parse_patches
from stackyard.talosconfig.settings import MachineSettings

VERSIONS = ("1.10.9", "1.11.6", "1.12.1", "1.13.5", "1.14.0")


def cluster_of(version: str = "1.12.1", *, network: dict[str, Any] | None = None, **node: Any) -> Cluster:
    """Return a cluster with a control plane that has something of everything, and a worker."""
    cluster = make_cluster(Path("/cluster"), network=network, talos_version=version)
    changes = {"is_encrypted": True, "kernel_modules": ("nbd",), "mtu": 9000, **node}
    return dataclasses.replace(cluster, nodes=(make_node(1, **changes), make_node(2, is_controller=False)))


def generate(cluster: Cluster, name: str = "k8s-1", **settings: Any) -> MachineConfig:
    return generate_config(cluster, name, shared_bundle(), settings=MachineSettings(**settings))


def section(config: MachineConfig, *keys: str) -> Any:
    value: Any = config.find(MAIN)
    for key in keys:
        value = value.get(key) if value is not None else None
    return value


def kinds(config: MachineConfig) -> list[str]:
    return [str(one.get("kind", MAIN)) for one in config.documents]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_same_input_gives_the_same_bytes(version: str) -> None:
    first, second = generate(cluster_of(version)).text, generate(cluster_of(version)).text
    assert first == second
    assert parse_config(first).text == first


@pytest.mark.parametrize("version", VERSIONS)
def test_a_worker_gets_no_secret_of_control_planes(version: str) -> None:
    bundle = shared_bundle()
    text = generate(cluster_of(version), "k8s-2").text
    for pair in (bundle.os, bundle.kubernetes, bundle.etcd, bundle.aggregator):
        assert pair.key_base64 not in text
        assert pair.key.splitlines()[1] not in text
    assert bundle.service_account_base64 not in text
    assert bundle.service_account_key.splitlines()[1] not in text
    assert bundle.secretbox_secret not in text
    assert "PRIVATE KEY" not in text
    assert bundle.etcd.crt_base64 not in text
    # What it needs to join is there.
    assert bundle.trustd_token in text
    assert bundle.bootstrap_token in text


def test_mirrors_and_labels_of_the_files_are_in_the_configuration() -> None:
    plain = cluster_of(labels={"zone": "a"})
    cluster = dataclasses.replace(plain, registry_mirrors={"docker.io": ("https://mirror.example.com",)})
    config = generate_config(cluster, "k8s-1", shared_bundle())
    assert section(config, "machine", "nodeLabels")["zone"] == "a"
    assert "https://mirror.example.com" in config.text
    assert "zone" not in generate_config(cluster, "k8s-2", shared_bundle()).text


def test_a_representation_shows_no_secret() -> None:
    assert repr(generate(cluster_of())) == "MachineConfig()"


@pytest.mark.parametrize("version", ["1.9.5", "1.15.0", "2.0.0", "", "latest"])
def test_a_release_without_a_form_is_refused(version: str) -> None:
    with pytest.raises(UnsupportedTalosError, match="Talos"):
        generate(cluster_of(version))


def test_a_node_that_is_not_there_is_refused() -> None:
    with pytest.raises(UnknownNodeError, match="k8s-9"):
        generate(cluster_of(), "k8s-9")


def test_a_disk_is_named_by_its_path_or_by_its_serial_number() -> None:
    assert section(generate(cluster_of()), "machine", "install", "disk") == "/dev/sda"
    by_serial = generate(cluster_of(disk="S4EWNX0R"))
    assert section(by_serial, "machine", "install", "diskSelector") == {"serial": "S4EWNX0R"}
    assert section(by_serial, "machine", "install", "disk") is None
    for disk, match in (("/dev/sda", 'disk.dev_path == "/dev/sda"'), ('a"b', 'disk.serial == "a\\"b"')):
        found = generate(cluster_of("1.14.0", disk=disk)).find("UnattendedInstallConfig")
        assert found is not None
        assert found["provisioning"]["diskSelector"]["match"] == match


def test_the_installer_is_that_of_the_image_of_the_node() -> None:
    cluster = cluster_of()
    image = dataclasses.replace(cluster.nodes[0].image, is_secureboot=True)
    config = generate(cluster_of(image=image))
    assert section(config, "machine", "install", "image") == image.installer
    assert "nocloud-installer-secureboot/" in image.installer


def test_encryption_is_a_section_in_1_10_and_documents_afterwards() -> None:
    luks = {"provider": "luks2", "keys": [{"slot": 0, "tpm": {}}]}
    classic = generate(cluster_of("1.10.9"))
    assert section(classic, "machine", "systemDiskEncryption") == {"state": luks, "ephemeral": luks}
    for version in VERSIONS[1:]:
        config = generate(cluster_of(version))
        assert section(config, "machine", "systemDiskEncryption") is None
        for name in ("STATE", "EPHEMERAL"):
            found = config.find("VolumeConfig", name)
            assert found is not None
            assert found["encryption"] == luks
    assert "VolumeConfig" not in kinds(generate(cluster_of(is_encrypted=False)))


@pytest.mark.parametrize("version", VERSIONS[:2])
def test_the_classic_network_has_address_route_mtu_and_vip(version: str) -> None:
    network = section(generate(cluster_of(version)), "machine", "network")
    assert network["hostname"] == "k8s-1"
    assert network["interfaces"] == [
        {
            "deviceSelector": {"hardwareAddr": "bc:24:11:00:00:01"},
            "dhcp": False,
            "addresses": ["10.0.1.1/16"],
            "routes": [{"network": "0.0.0.0/0", "gateway": "10.0.0.1"}],
            "mtu": 9000,
            "vip": {"ip": "10.0.255.1"},
        }
    ]
    worker = section(generate(cluster_of(version), "k8s-2"), "machine", "network", "interfaces")
    assert "vip" not in worker[0]


@pytest.mark.parametrize("version", VERSIONS[2:])
def test_the_network_of_documents_has_address_route_mtu_and_vip(version: str) -> None:
    config = generate(cluster_of(version))
    host, link = config.find("HostnameConfig"), config.find("LinkConfig", "net0")
    assert host is not None
    assert (host["auto"], host["hostname"]) == ("off", "k8s-1")
    assert link is not None
    assert (link["addresses"], link["routes"]) == ([{"address": "10.0.1.1/16"}], [{"gateway": "10.0.0.1"}])
    assert link["mtu"] == 9000
    vip = config.find("Layer2VIPConfig", "10.0.255.1")
    assert vip is not None
    assert vip["link"] == "net0"
    assert section(config, "machine", "network", "hostname") is None
    assert "Layer2VIPConfig" not in kinds(generate(cluster_of(version), "k8s-2"))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_vlan_is_tagged_once(version: str) -> None:
    network = {"vlan_tag": 20, "is_tagged_by_proxmox": False}
    text = generate(cluster_of(version, network=network)).text
    assert "vlanId: 20" in text or "vlanID: 20" in text
    by_proxmox = generate(cluster_of(version, network=network | {"is_tagged_by_proxmox": True})).text
    assert "vlan" not in by_proxmox.lower()
    # Nobody tags for a machine of its own but Talos.
    own = generate(cluster_of(version, network=network | {"is_tagged_by_proxmox": True}, vm=None)).text
    assert "vlan" in own.lower()


def test_the_address_of_a_node_is_no_virtual_one() -> None:
    cluster = cluster_of(network={"api_addr": IPv4Address("10.0.1.1")})
    assert "Layer2VIPConfig" not in kinds(generate(cluster))


def test_control_planes_take_workloads_only_without_workers() -> None:
    cluster = cluster_of()
    assert section(generate(cluster), "cluster", "allowSchedulingOnControlPlanes") is False
    alone = dataclasses.replace(cluster, nodes=cluster.nodes[:1])
    assert section(generate(alone), "cluster", "allowSchedulingOnControlPlanes") is True
    node = generate(dataclasses.replace(alone, talos_version="1.14.0")).find("KubeNodeConfig")
    assert node is not None
    assert "taints" not in node


def test_cni_and_kube_proxy_are_off_by_default_and_can_be_on() -> None:
    config = generate(cluster_of())
    assert section(config, "cluster", "network", "cni") == {"name": "none"}
    assert section(config, "cluster", "proxy", "disabled") is True
    on = generate(cluster_of(), cni="flannel", has_kube_proxy=True)
    assert section(on, "cluster", "network", "cni") == {"name": "flannel"}
    assert section(on, "cluster", "proxy", "disabled") is None
    assert "KubeFlannelCNIConfig" not in kinds(generate(cluster_of("1.14.0")))
    assert "KubeFlannelCNIConfig" in kinds(generate(cluster_of("1.14.0"), cni="flannel"))


@pytest.mark.parametrize("version", VERSIONS)
def test_versions_names_networks_modules_labels_and_mirrors_are_there(version: str) -> None:
    settings: dict[str, Any] = {
        "registry_mirrors": {"docker.io": ("https://mirror.lan",)},
        "node_labels": {"k8s-1": {"rack": "a"}},
    }
    network = {"api_tls_sans": ("k8s.example.com",)}
    text = generate(cluster_of(version, network=network), **settings).text
    for expected in (
        "ghcr.io/siderolabs/kubelet:v1.35.0",
        "registry.k8s.io/kube-apiserver:v1.35.0",
        "k8s.example.com",
        "10.42.0.0/16",
        "10.43.0.0/16",
        "1.1.1.1",
        "162.159.200.1",
        "name: nbd",
        "rack: a",
        "https://mirror.lan",
        "7445",
        "https://10.0.255.1:6443",
    ):
        assert expected in text


def test_patches_of_the_original_repository_fit() -> None:
    patch = """
machine:
  network:
    disableSearchDomain: true
    nameservers: [1.1.1.1, 1.0.0.1, 9.9.9.9]
  kubelet:
    nodeIP:
      validSubnets: [10.0.0.0/16]
cluster:
  apiServer:
    admissionControl:
      $$patch: delete
    extraArgs:
      enable-aggregator-routing: true
  etcd:
    advertisedSubnets: [10.0.0.0/16]
"""
    patches = parse_patches(patch, "cluster.yaml")
    config = generate_config(cluster_of(), "k8s-1", shared_bundle(), patches)
    assert section(config, "machine", "network", "nameservers") == ["1.1.1.1", "1.0.0.1", "9.9.9.9"]
    assert section(config, "machine", "kubelet", "nodeIP") == {"validSubnets": ["10.0.0.0/16"]}
    assert section(config, "cluster", "etcd", "advertisedSubnets") == ["10.0.0.0/16"]
    assert "admissionControl" not in section(config, "cluster", "apiServer")
    assert section(config, "cluster", "apiServer", "extraArgs") == {"enable-aggregator-routing": True}


def test_name_servers_are_a_document_if_a_patch_has_it() -> None:
    patches = parse_patches(
        "apiVersion: v1alpha1\nkind: ResolverConfig\nsearchDomains: {domains: [lan]}\n", "dns.yaml"
    )
    config = generate_config(cluster_of(), "k8s-1", shared_bundle(), patches)
    resolver = config.find("ResolverConfig")
    assert resolver is not None
    assert resolver["nameservers"] == [{"address": "1.1.1.1"}, {"address": "1.0.0.1"}]
    assert section(config, "machine", "network") == {}
