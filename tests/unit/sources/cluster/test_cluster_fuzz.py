"""Whatever the files of a cluster hold, it is a cluster or has findings with places; nothing else happens."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import hypothesis
import yaml
from hypothesis import strategies
from tests.support.clusters import CLUSTER, NODES, PROXMOX, SAMPLE, write_cluster

from stackyard.sources.cluster.explain import explain_node
from stackyard.sources.cluster.fields import ClusterFields, NodeFields, list_secret_names
from stackyard.sources.cluster.load import open_cluster

FIELDS = sorted({*ClusterFields.model_fields, *sorted(list_secret_names())[:5], "cluster_nam", "sops"})
SCALARS = (
    strategies.none()
    | strategies.booleans()
    | strategies.integers()
    | strategies.floats()
    | strategies.text(max_size=8)
    | strategies.sampled_from(
        (
            *(
                "192.0.2.0/24",
                "192.0.2.7/24",
                "10.42.0.0/16",
                "192.0.2.10",
                "192.0.2.21",
                "0.0.0.0/0",
                "1.12.1",
            ),
            *(
                "bc:24:11:00:00:01",
                "https://pve:8006",
                "pve",
                "seabios",
                "i440fx",
                "disk",
                "f" * 64,
                "\u0661",
            ),
        )
    )
)
VALUES = strategies.recursive(
    SCALARS,
    lambda inner: (
        strategies.lists(inner, max_size=3)
        | strategies.dictionaries(
            strategies.sampled_from(
                [*FIELDS, "cores", "memory", "bios", "extensions", "overlay", "meta", "key"]
            )
            | strategies.text(max_size=4),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


def check(folder: Path) -> None:
    """Check that a folder is a cluster or has findings, each with a place."""
    opened = open_cluster(folder)
    for found in opened.found.errors:
        assert found.where is not None, found
        assert found.detail, found
    assert (opened.cluster is None) == bool(opened.found.errors)
    if opened.cluster is not None and opened.read is not None:
        for index in range(len(opened.cluster.nodes)):
            assert explain_node(opened.read, index)


@hypothesis.given(
    cluster=strategies.dictionaries(strategies.sampled_from(FIELDS), VALUES, max_size=4),
    node=strategies.dictionaries(
        strategies.sampled_from(sorted(NodeFields.model_fields)), VALUES, max_size=3
    ),
    count=strategies.integers(0, 4),
)
def test_any_fields_are_a_cluster_or_have_findings(
    cluster: dict[str, Any], node: dict[str, Any], count: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        nodes: list[Any] = [*NODES[: max(0, count - 1)], {**NODES[0], **node}] if count else []
        folder = write_cluster(Path(name), nodes)
        (folder / "cluster.yaml").write_text(yaml.safe_dump({**CLUSTER, **cluster}))
        check(folder)


@hypothesis.given(
    file=strategies.sampled_from(["cluster.yaml", "nodes.yaml"]),
    value=VALUES,
    cut=strategies.integers(0, 400),
    noise=strategies.text(alphabet="ab:-[]{}&*!|>'\"%@\n #", max_size=12),
)
def test_any_text_is_a_cluster_or_has_findings(file: str, value: object, cut: int, noise: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = write_cluster(Path(name))
        path = folder / file
        text = path.read_text()
        for changed in (text[:cut] + noise + text[cut:], text[:cut], yaml.safe_dump({"nodes": value})):
            path.write_text(changed)
            check(folder)


TOML = SAMPLE + PROXMOX


@hypothesis.given(
    start=strategies.integers(0, len(TOML)),
    length=strategies.integers(0, 40),
    noise=strategies.text(alphabet="ab=.,[]{}'\"#\n 01\\-", max_size=8)
    | strategies.sampled_from(
        ["[talos]", "[[nodes]]\n", "nodes = 1\n", "x = {}\n", "[proxmox.vm_advanced]\n"]
    ),
)
def test_any_toml_is_a_cluster_or_has_findings(start: int, length: int, noise: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "cluster.toml").write_text(TOML[:start] + noise + TOML[start + length :])
        check(Path(name))
