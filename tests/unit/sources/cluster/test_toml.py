"""`cluster.toml` gives the same cluster as the two YAML files, and the same errors with its own names."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from tests.support.clusters import AGENT_ID, PROXMOX, SAMPLE, node, write_cluster

from stackyard.sources.cluster.load import load_cluster, open_cluster


def write(folder: Path, text: str) -> Path:
    (folder / "cluster.toml").write_text(text)
    return folder


def test_a_sample_without_proxmox_is_a_cluster_of_machines(tmp_path: Path) -> None:
    cluster = load_cluster(write(tmp_path, SAMPLE))

    assert cluster.name == "kubernetes"
    assert cluster.proxmox is None
    assert [(one.name, one.vm, one.image.platform) for one in cluster.nodes] == [("k8s-1", None, "metal")]
    assert cluster.nodes[0].image.schematic_id == AGENT_ID
    assert dict(cluster.secrets) == {"cloudflare_token": "not-a-real-token"}
    assert "not-a-real-token" not in repr(dict(cluster.values)) + repr(cluster)
    assert cluster.values["network"]["node_cidr"] == cluster.values["node_cidr"] == "192.0.2.0/24"


def test_both_forms_give_the_same_cluster(tmp_path: Path) -> None:
    of_yaml = load_cluster(write_cluster(tmp_path, nodes=[node(1)], proxmox_vm_defaults={"cores": 2}))
    folder = tmp_path / "toml"
    folder.mkdir()
    head, tail = SAMPLE.partition("[gateways]")[0], SAMPLE.partition("[talos]")[2]
    of_toml = load_cluster(write(folder, f"{head}[talos]{tail}{PROXMOX}"))

    same: dict[str, Any] = {"folder": folder, "files": (), "values": {}}
    assert dataclasses.replace(of_yaml, **same) == dataclasses.replace(of_toml, **same)


def test_a_problem_has_the_name_and_the_line_of_the_toml_file(tmp_path: Path) -> None:
    text = SAMPLE.replace("192.0.2.0/24", "192.0.2.5/24").replace("[domain]", "[domian]")
    text = text.replace('mac_addr = "bc', 'mac_addr = "zz').replace("192.0.2.11", "192.0.2.10")

    found = open_cluster(write(tmp_path, text)).found

    assert [(one.kind.code, one.where and one.where.line) for one in found] == [
        ("E-CLUSTER-HOST-BITS", 2),
        ("E-CLUSTER-SAME-ADDRESS", 10),
        ("E-CLUSTER-KEY", 18),
        ("E-CLUSTER-MAC", 36),
    ]
    details = " ".join(one.detail for one in found)
    assert "`kubernetes.api.addr` and `gateways.internal`" in details
    assert "Did you mean `domain`?" in details


def test_a_missing_field_is_named_as_the_file_names_it(tmp_path: Path) -> None:
    found = open_cluster(write(tmp_path, "[network]\nvlan_tag = '7'\n")).found

    assert sorted(one.detail for one in found) == [
        "`kubernetes.api.addr` is missing.",
        "`network.node_cidr` is missing.",
        "`nodes` is missing.",
    ]


def test_nothing_in_the_file_is_never_a_cluster(tmp_path: Path) -> None:
    for text in ("", "# nothing\n", "[network\n", 'a = "', "[nodes]\n", "nodes = 3\n"):
        opened = open_cluster(write(tmp_path, text))
        assert opened.cluster is None
        assert opened.found.errors


SERVICES = {
    "BGP in part": ('router_addr = ""', 'router_addr = "192.0.2.1"', "E-CLUSTER-HALF-BGP"),
    "ASN in words": (
        'router_addr = ""',
        'router_addr = "192.0.2.2"\nrouter_asn = "x"\nnode_asn = "64514"',
        "E-CLUSTER-ASN",
    ),
    "no token": ('token = "not-a-real-token"', 'token = ""', "E-CLUSTER-DNS-TOKEN"),
    "a token of no provider": (
        'token = "not',
        'provider = "none"\ntoken = "not',
        "E-CLUSTER-DNS-TOKEN",
    ),
    "no external gateway": ('external = "192.0.2.13"', "", "E-CLUSTER-INGRESS"),
    "a tunnel without DNS": (
        'token = "not-a-real-token"',
        'provider = "none"\n[ingress]\nmode = "cloudflare-tunnel"',
        "E-CLUSTER-INGRESS",
    ),
    "an unknown git host": ("https://git.example.com", "ssh://git@git.example.com", "E-CLUSTER-KNOWN-HOSTS"),
    "few services": (
        "[kubernetes.api]",
        '[kubernetes]\nsvc_cidr = "10.43.0.0/29"\n[kubernetes.api]',
        "E-CLUSTER-DNS-SERVICE",
    ),
}


@pytest.mark.parametrize("name", SERVICES)
def test_what_is_configured_in_part_is_refused(tmp_path: Path, name: str) -> None:
    old, new, code = SERVICES[name]

    found = open_cluster(write(tmp_path, SAMPLE.replace(old, new))).found

    assert [one.kind.code for one in found] == [code]
