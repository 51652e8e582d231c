"""Talos' own code accepts what stackyard makes, and merges patches to the same result."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.support.resolved_clusters import make_cluster, make_node
from tests.support.talos_bundles import shared_bundle
from tests.support.talos_judges import (
    TALOSCTL_RELEASE,
    Talosctl,
    find_talosctl,
    find_validator,
    run_validator,
)

from stackyard.base.diagnostics import Diagnostics
from stackyard.base.errors import Location
from stackyard.sources.cluster.model import Cluster
from stackyard.talosconfig.bundle import issue_admin, write_bundle
from stackyard.talosconfig.bundle_checks import build_bundle
from stackyard.talosconfig.client_config import make_client_config, parse_client_config, write_client_config
from stackyard.talosconfig.contract import NEWEST, OLDEST, TalosContract
from stackyard.talosconfig.difference import difference
from stackyard.talosconfig.documents import parse_config
from stackyard.talosconfig.generate import generate_config
from stackyard.talosconfig.merge import apply_patches
from stackyard.talosconfig.patch_checks import MOVED
from stackyard.talosconfig.patch_files import parse_patches
from stackyard.talosconfig.settings import MachineSettings

pytestmark = pytest.mark.judges("talosctl")

MODES = ("metal", "cloud")
OTHERS = [minor for minor in range(OLDEST, NEWEST + 1) if minor != TALOSCTL_RELEASE]


@pytest.fixture
def talosctl(tmp_path: Path) -> Talosctl:
    return find_talosctl(tmp_path)


def clusters(minor: int) -> Iterator[tuple[Cluster, MachineSettings]]:
    """Yield clusters that have, among them, everything that a configuration can have."""
    base = make_cluster(Path("/c"), talos_version=f"1.{minor}.1")
    secure = dataclasses.replace(make_node(1).image, is_secureboot=True, platform="metal")
    nodes = (
        make_node(1, is_encrypted=True, kernel_modules=("nbd", "zfs"), image=secure),
        make_node(2, disk="S4EWNX0R", mtu=9000, vm=None),
        make_node(4, is_controller=False, is_encrypted=True, disk='a"b', kernel_modules=("nbd",)),
    )
    full = MachineSettings(
        registry_mirrors={
            "docker.io": ("https://mirror.lan", "http://10.0.0.9:5000"),
            "*": ("https://all.lan",),
        },
        node_labels={"k8s-1": {"rack": "a"}, "k8s-4": {"disk": ""}},
    )
    for tag, is_tagged in ((None, False), (20, False), (20, True)):
        changed = dataclasses.replace(
            base.network, vlan_tag=tag, is_tagged_by_proxmox=is_tagged, api_tls_sans=("k8s.example.com",)
        )
        yield dataclasses.replace(base, nodes=nodes, network=changed), full
    alone = dataclasses.replace(base, nodes=nodes[:1])
    yield alone, MachineSettings(cni="flannel", has_kube_proxy=True)


def texts(minor: int) -> Iterator[tuple[str, str]]:
    for cluster, settings in clusters(minor):
        for node in cluster.nodes:
            config = generate_config(cluster, node.name, shared_bundle(), settings=settings)
            yield node.name, config.text


def test_talosctl_accepts_every_configuration(talosctl: Talosctl) -> None:
    found = [
        (name, mode, said)
        for name, text in texts(TALOSCTL_RELEASE)
        for mode in MODES
        if (said := talosctl.validate(text, mode))
    ]
    assert found == []


@pytest.mark.parametrize("minor", OTHERS)
def test_the_code_of_each_release_accepts_every_configuration(minor: int) -> None:
    validator = find_validator(minor)
    found = []
    for name, text in texts(minor):
        for mode in MODES:
            done = run_validator(validator, text, mode)
            found += [(name, mode, done.stderr)] if done.returncode or done.stdout else []
    assert found == []


@pytest.mark.parametrize("minor", OTHERS)
def test_the_judges_refuse_a_configuration_of_another_release(minor: int) -> None:
    validator = find_validator(minor)
    other = OLDEST if minor == NEWEST else NEWEST
    _, text = next(texts(other))
    broken = text.replace("kind: HostnameConfig", "kind: HostnamesConfig").replace(
        "type: controlplane", "type: x"
    )
    assert run_validator(validator, broken, "metal").returncode == 1


def test_secrets_of_talosctl_are_read(talosctl: Talosctl) -> None:
    assert talosctl.run("gen", "secrets", "--output-file", "secrets.yaml").returncode == 0
    found = Diagnostics()
    text = (talosctl.folder / "secrets.yaml").read_text()
    bundle = build_bundle(yaml.safe_load(text), lambda *keys: Location("secrets.yaml"), found)
    assert list(found) == []
    assert yaml.safe_load(write_bundle(bundle)) == yaml.safe_load(text)


# What `talosctl gen config` does not know of a cluster, and what stackyard decides otherwise.
OWN = {
    "machine.certSANs",
    "machine.kubelet.nodeIP",
    "machine.network",
    "machine.network.hostname",
    "machine.network.interfaces",
    "machine.network.nameservers",
    "machine.time",
    "machine.install.image",
    "cluster.network.cni",
    "cluster.apiServer.certSANs",
    "cluster.proxy.disabled",
    "cluster.allowSchedulingOnControlPlanes",
    "cluster.etcd.advertisedSubnets",
    "auto",
    "hostname",
}
OWN_DOCUMENTS = {"LinkAliasConfig net0", "LinkConfig net0", "Layer2VIPConfig 10.0.255.1"}


@pytest.mark.parametrize("minor", [10, 11, 12])
def test_documents_are_those_of_talosctl_but_for_what_it_does_not_know(
    talosctl: Talosctl, minor: int
) -> None:
    cluster = make_cluster(talosctl.folder, nodes=4, talos_version=f"1.{minor}.1")
    (talosctl.folder / "secrets.yaml").write_text(write_bundle(shared_bundle()))
    (talosctl.folder / "net.yaml").write_text(
        "cluster: {network: {podSubnets: [10.42.0.0/16], serviceSubnets: [10.43.0.0/16]}}\n"
    )
    done = talosctl.run(
        *("gen", "config", "home", "https://10.0.255.1:6443", "--with-secrets", "secrets.yaml"),
        *("--talos-version", f"v1.{minor}", "--kubernetes-version", "1.35.0", "--install-disk", "/dev/sda"),
        *("--config-patch", "@net.yaml", "--with-docs=false", "--with-examples=false", "--output", "made"),
    )
    assert done.returncode == 0, done.stderr
    for name, file in (("k8s-1", "controlplane.yaml"), ("k8s-4", "worker.yaml")):
        theirs = parse_config((talosctl.folder / "made" / file).read_text())
        ours = generate_config(cluster, name, shared_bundle())
        found = difference(theirs, ours)
        assert {one.path for one in found if one.path} <= OWN
        assert {one.document for one in found if not one.path} <= OWN_DOCUMENTS
        # Nothing of theirs is missing in ours.
        assert [one for one in found if one.after is None] == []


def test_talosctl_reads_our_talosconfig_and_we_read_its(talosctl: Talosctl) -> None:
    bundle = shared_bundle()
    config = make_client_config("home", ("10.0.1.1",), bundle, issue_admin(bundle))
    (talosctl.folder / "mine").write_text(write_client_config(config))
    shown = talosctl.run("--talosconfig", "mine", "config", "info")
    assert shown.returncode == 0, shown.stderr
    assert "os:admin" in shown.stdout
    assert "10.0.1.1" in shown.stdout
    talosctl.run("gen", "config", "other", "https://10.0.0.1:6443", "--output", "made")
    theirs = parse_client_config((talosctl.folder / "made/talosconfig").read_text(), "talosconfig")
    assert theirs.context == "other"


HEAD = "apiVersion: v1alpha1\nkind: "
PATCHES = {
    "maps": 'machine: {sysctls: {a.b: "1", c.d: "2"}, nodeLabels: {rack: a}}',
    "lists": "machine: {certSANs: [x.lan, 127.0.0.1], kubelet: {extraMounts: []}}",
    "subnets": "cluster: {network: {podSubnets: [10.9.0.0/16]}}",
    "audit": "cluster: {apiServer: {auditPolicy: {kind: Policy, rules: [{level: None}]}}}",
    "plugin": "cluster: {apiServer: {admissionControl: [{name: PodSecurity, configuration: {x: [1]}}]}}",
    "other-plugin": "cluster: {apiServer: {admissionControl: [{name: Other, configuration: {a: 1}}]}}",
    "no-plugins": "cluster: {apiServer: {admissionControl: {$patch: delete}, extraArgs: {v: '4'}}}",
    "delete-plugin": "cluster: {apiServer: {admissionControl: [{name: PodSecurity, $patch: delete}]}}",
    "arguments": "cluster: {controllerManager: {extraArgs: {bind-address: 0.0.0.0, flag: on, number: 0644}}}",
    "interface": "machine: {network: {interfaces: [{interface: lo, addresses: [169.254.1.1/32]}]}}",
    "interface-again": (
        "machine: {network: {interfaces: [{interface: lo, mtu: 1400, addresses: [169.254.1.2/32],"
        " vlans: [{vlanId: 5, addresses: [10.7.0.1/24]}]}]}}"
    ),
    "vlan": "machine: {network: {interfaces: [{interface: lo, vlans: [{vlanId: 5, mtu: 99}, {vlanId: 6}]}]}}",
    "empty": "machine: {type: '', install: {disk: '', wipe: true}, certSANs: []}",
    "files": "machine: {files: [{path: /etc/a, op: create, permissions: 0o644, content: 'a: b'}]}",
    "files-again": (
        "machine:\n  files:\n    - path: /var/b\n      op: create\n      permissions: 0600\n"
        "      content: |\n        x\n        y: off\n"
    ),
    "kubelet": "machine: {kubelet: {extraConfig: {serializeImagePulls: false, maxPods: 200, list: [a]}}}",
    "kubelet-again": "machine: {kubelet: {extraConfig: {maxPods: 0, list: [b], more: {x: y}}}}",
    "hostname": HEAD + "HostnameConfig\nhostname: other\n",
    "hostname-off": HEAD + "HostnameConfig\nauto: off\n",
    "link": HEAD + "LinkConfig\nname: net0\nmtu: 1400\naddresses: [{address: 10.5.0.1/24}]\n",
    "delete-vip": HEAD + "Layer2VIPConfig\nname: 10.0.255.1\n$patch: delete\n",
    "volume": (
        HEAD + "VolumeConfig\nname: STATE\nencryption: {provider: luks2, keys: [{slot: 1,"
        " nodeID: {}}]}\n---\nmachine: {env: {A: b}}\n"
    ),
    "rule": (
        HEAD + "NetworkRuleConfig\nname: r\nportSelector: {ports: [50000], protocol: tcp}\n"
        "ingress: [{subnet: 10.0.0.0/8}]\n"
    ),
    "rule-again": (
        HEAD + "NetworkRuleConfig\nname: r\nportSelector: {ports: [1-9], protocol: tcp}\n"
        "ingress: [{subnet: 11.0.0.0/8}]\n"
    ),
    "service": (
        HEAD + "ExtensionServiceConfig\nname: s\nenvironment: [A=b]\n"
        "configFiles: [{mountPath: /a, content: x}]\n"
    ),
    "service-again": (
        HEAD + "ExtensionServiceConfig\nname: s\nenvironment: [C=d]\n"
        "configFiles: [{mountPath: /a, content: y}, {mountPath: /b, content: z}]\n"
    ),
    "proxy": "cluster: {proxy: {disabled: false, extraArgs: {a: b}}, coreDNS: {disabled: true}}",
    "delete-labels": "machine: {nodeLabels: {$patch: delete}}",
}
# Forms that a release before the documents of networks does not know, or one after them refuses.
NETWORK_DOCUMENTS = ("hostname", "hostname-off", "link", "delete-vip")
PAIRS = [
    *(
        "interface interface-again vlan",
        "plugin other-plugin delete-plugin",
        "files files-again",
        "kubelet kubelet-again",
    ),
    *(
        "rule rule-again",
        "service service-again",
        "no-plugins arguments",
        "hostname hostname-off link delete-vip",
    ),
    *("maps lists subnets audit empty proxy", "volume", "maps delete-labels"),
]


def merged(minor: int, names: list[str]) -> str:
    """Return what our merge makes of patches on a control plane, without the checks of the generator."""
    config = generate_config(make_cluster(Path("/c"), talos_version=f"1.{minor}.1"), "k8s-1", shared_bundle())
    patches = [one for name in names for one in parse_patches(PATCHES[name], f"{name}.yaml")]
    return apply_patches(config, patches, TalosContract(minor)).text


def assert_same(theirs: str, ours: str) -> None:
    assert difference(parse_config(theirs), parse_config(ours)) == ()


def base_text(minor: int) -> str:
    return generate_config(
        make_cluster(Path("/c"), talos_version=f"1.{minor}.1"), "k8s-1", shared_bundle()
    ).text


@pytest.mark.parametrize("names", PAIRS)
def test_talosctl_merges_patches_to_the_same_result(talosctl: Talosctl, names: str) -> None:
    text = base_text(TALOSCTL_RELEASE)
    for name in names.split():
        text = talosctl.patch(text, PATCHES[name])
    assert_same(text, merged(TALOSCTL_RELEASE, names.split()))


@pytest.mark.parametrize("seed", range(6))
def test_talosctl_merges_patches_in_any_order_to_the_same_result(talosctl: Talosctl, seed: int) -> None:
    chance = random.Random(seed)
    names = chance.sample([name for name in PATCHES if "delete" not in name and name != "no-plugins"], 8)
    text = base_text(TALOSCTL_RELEASE)
    for name in names:
        text = talosctl.patch(text, PATCHES[name])
    assert_same(text, merged(TALOSCTL_RELEASE, names))


@pytest.mark.parametrize("minor", [10, 11, 13])
@pytest.mark.parametrize("names", PAIRS)
def test_the_code_of_each_release_merges_patches_to_the_same_result(
    tmp_path: Path, minor: int, names: str
) -> None:
    validator = find_validator(minor)
    used = [name for name in names.split() if minor >= 12 or name not in NETWORK_DOCUMENTS]
    if minor == 10:
        used = [name for name in used if name != "volume"]
    text = base_text(minor)
    for name in used:
        (tmp_path / "patch.yaml").write_text(PATCHES[name])
        done = run_validator(validator, text, "patch", str(tmp_path / "patch.yaml"))
        assert done.returncode == 0, done.stderr
        text = done.stdout
    assert_same(text, merged(minor, used))


DOCUMENT_PATCHES = """\
apiVersion: v1alpha1
kind: KubeNetworkConfig
podSubnets: [10.9.0.0/16]
---
apiVersion: v1alpha1
kind: KubeAuditPolicyConfig
configuration: {kind: Policy, rules: [{level: None}]}
---
apiVersion: v1alpha1
kind: KubeAPIServerConfig
extraArgs: {v: "4"}
certExtraSANs: [x.lan]
---
apiVersion: v1alpha1
kind: KubeProxyConfig
enabled: true
---
apiVersion: v1alpha1
kind: KernelModuleConfig
name: nbd
parameters: [a=1]
---
apiVersion: v1alpha1
kind: KubeCoreDNSConfig
$patch: delete
"""


def test_documents_of_1_14_are_merged_to_the_same_result(tmp_path: Path) -> None:
    validator = find_validator(14)
    (tmp_path / "patch.yaml").write_text(DOCUMENT_PATCHES)
    done = run_validator(validator, base_text(14), "patch", str(tmp_path / "patch.yaml"))
    assert done.returncode == 0, done.stderr
    cluster = make_cluster(Path("/c"), talos_version="1.14.0")
    patches = parse_patches(DOCUMENT_PATCHES, "patch.yaml")
    ours = generate_config(cluster, "k8s-1", shared_bundle(), patches).text
    assert_same(done.stdout, ours)
    assert run_validator(validator, ours, "metal").stderr == ""


MOVED_VALUES = {
    "machine.network.hostname": "x",
    "machine.network.nameservers": ["1.1.1.1"],
    "machine.time": {"servers": ["a.lan"]},
    "machine.install": {"disk": "/dev/sda"},
    "machine.kubelet": {"image": "a:v1.35.0"},
    "machine.nodeLabels": {"a": "b"},
    "cluster.network": {"podSubnets": ["10.9.0.0/16"]},
    "cluster.apiServer": {"image": "a:v1.35.0"},
    "cluster.controllerManager": {"image": "a:v1.35.0"},
    "cluster.scheduler": {"image": "a:v1.35.0"},
    "cluster.proxy": {"disabled": True},
    "cluster.coreDNS": {"disabled": True},
    "cluster.allowSchedulingOnControlPlanes": True,
}


def test_a_section_that_became_a_document_is_refused_beside_it(tmp_path: Path) -> None:
    validator = find_validator(14)
    accepted = []
    for path in MOVED:
        patch = MOVED_VALUES[".".join(path)]
        for key in reversed(path):
            patch = {key: patch}
        (tmp_path / "patch.yaml").write_text(yaml.safe_dump(patch))
        patched = run_validator(validator, base_text(14), "patch", str(tmp_path / "patch.yaml"))
        if patched.returncode == 0 and run_validator(validator, patched.stdout, "metal").returncode == 0:
            accepted.append(".".join(path))
    assert accepted == []


def test_a_section_of_time_beside_its_document_is_refused_in_1_12(talosctl: Talosctl) -> None:
    cluster = make_cluster(Path("/c"))
    patches = parse_patches(
        "apiVersion: v1alpha1\nkind: ResolverConfig\nsearchDomains: {domains: [lan]}\n"
        "---\napiVersion: v1alpha1\nkind: TimeSyncConfig\nbootTimeout: 1m0s\n",
        "documents.yaml",
    )
    text = generate_config(cluster, "k8s-1", shared_bundle(), patches).text
    assert talosctl.validate(text, "metal") == ""
    both = talosctl.patch(text, "machine: {network: {nameservers: [1.1.1.1]}, time: {servers: [a.lan]}}")
    assert "already set" in talosctl.validate(both, "metal")
