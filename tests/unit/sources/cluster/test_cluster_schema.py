"""The published schemas take what the loader takes, and refuse unknown fields as it does."""

from __future__ import annotations

import tomllib
from typing import Any

import jsonschema_rs
import pytest
from tests.support.clusters import CLUSTER, NODES, PROXMOX, SAMPLE

from stackyard.sources.cluster import bootstrap_page
from stackyard.sources.cluster.field_facts import find_field, list_fields
from stackyard.sources.cluster.field_words import CLUSTER_WORDS, NODE_WORDS
from stackyard.sources.cluster.fields import ClusterFields, NodeFields
from stackyard.sources.cluster.schema import FILES, cluster_schema

TOML = {key: value for key, value in tomllib.loads(SAMPLE + PROXMOX).items() if key != "cilium"}
TOML["network"] = {"node_cidr": "192.0.2.0/24"}
VALID: dict[str, Any] = {
    "cluster": {
        **CLUSTER,
        "node_vlan_tag": "42",
        "proxmox_vm_defaults": {"cores": 2},
        "monitoring_enabled": True,
    },
    "nodes": {"nodes": NODES},
    "cluster-secrets": {"proxmox_api_token_id": "a@pve!b"},
    "cluster-toml": TOML,
    "bootstrap": {
        "network": {"cilium_version": "1.18.4"},
        "charts": [{"name": "a", "chart": "./a"}],
        "flux": {"url": "https://git.example.com/a.git", "token": "git_token"},
    },
}


@pytest.mark.parametrize("kind", FILES)
def test_a_schema_takes_a_valid_file_and_refuses_an_unknown_field(kind: str) -> None:
    validator = jsonschema_rs.validator_for(cluster_schema(kind))

    assert validator.is_valid(VALID[kind]), list(validator.iter_errors(VALID[kind]))
    assert not validator.is_valid({**VALID[kind], "nonsense": 1})


def test_every_field_of_ours_has_words() -> None:
    assert set(CLUSTER_WORDS) == set(ClusterFields.model_fields)
    assert set(NODE_WORDS) == set(NodeFields.model_fields)
    assert all(one.words and one.kind for one in list_fields())


def test_every_field_of_the_bootstrap_file_has_words() -> None:
    page = bootstrap_page.render()
    assert "| **`chart`** | text |" in page
    assert "| `network` | fields or `none` |" in page
    rows = [row for row in page.splitlines() if row.startswith(("| `", "| **`"))]
    assert len(rows) > 30
    assert [row for row in rows if row.endswith("|  |")] == []


def test_a_field_is_found_by_each_of_its_names() -> None:
    for name in ("node_cidr", "network.node_cidr"):
        found = find_field(name)
        assert found is not None
        assert (found.name, found.is_required) == ("node_cidr", True)
    assert find_field("proxmox_api_token_secret") is not None
    assert find_field("nonsense") is None
