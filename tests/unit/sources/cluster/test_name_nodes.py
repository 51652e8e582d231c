"""A number of nodes becomes names, once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.clusters import CLUSTER, NODES, write_cluster

from stackyard.base.errors import InvalidInputError
from stackyard.sources.cluster.load import load_cluster
from stackyard.sources.cluster.name_nodes import NodesCountError, name_nodes


def start(folder: Path, **more: Any) -> None:
    (folder / "cluster.yaml").write_text(yaml.safe_dump({**CLUSTER, "talos_schematic": {}, **more}))


def nodes(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load((folder / "nodes.yaml").read_text())["nodes"]
    return found


def test_a_count_becomes_names_addresses_and_roles_of_a_valid_cluster(tmp_path: Path) -> None:
    start(tmp_path, nodes_count=4, cluster_name="prod", cluster_gateway_addr="192.0.2.12")
    assert name_nodes(tmp_path) == ("prod-1", "prod-2", "prod-3", "prod-4")
    found = nodes(tmp_path)
    assert [one["address"] for one in found] == ["192.0.2.11", "192.0.2.13", "192.0.2.14", "192.0.2.15"]
    assert [one["controller"] for one in found] == [True, True, True, False]
    assert len({one["mac_addr"] for one in found}) == 4
    assert len(load_cluster(tmp_path).nodes) == 4


def test_a_second_time_writes_nothing(tmp_path: Path) -> None:
    start(tmp_path, nodes_count=3)
    name_nodes(tmp_path)
    before = (tmp_path / "nodes.yaml").read_bytes()
    assert name_nodes(tmp_path) == ()
    assert (tmp_path / "nodes.yaml").read_bytes() == before


def test_a_larger_count_adds_names_and_keeps_what_is_written(tmp_path: Path) -> None:
    write_cluster(tmp_path, nodes_count=5)
    text = "# mine\n" + (tmp_path / "nodes.yaml").read_text()
    (tmp_path / "nodes.yaml").write_text(text)
    assert name_nodes(tmp_path) == ("k8s-5",)
    assert (tmp_path / "nodes.yaml").read_text().startswith(text)
    added = nodes(tmp_path)[4]
    assert (added["address"], added["controller"]) == ("192.0.2.25", False)
    assert added["schematic_id"] == NODES[3]["schematic_id"]


def test_a_name_that_was_given_to_a_removed_node_between_others_is_not_given_again(tmp_path: Path) -> None:
    write_cluster(tmp_path, nodes=[NODES[0], NODES[3]], nodes_count=3)
    assert name_nodes(tmp_path) == ("k8s-5",)


def test_a_smaller_count_is_refused_and_names_the_nodes(tmp_path: Path) -> None:
    write_cluster(tmp_path, nodes_count=3)
    before = (tmp_path / "nodes.yaml").read_bytes()
    with pytest.raises(NodesCountError, match=r"`nodes_count` is 3, and nodes.yaml names 4: k8s-1, k8s-2"):
        name_nodes(tmp_path)
    assert (tmp_path / "nodes.yaml").read_bytes() == before


@pytest.mark.parametrize("count", [3, 5])
def test_a_cluster_whose_count_differs_from_its_names_is_not_valid(tmp_path: Path, count: int) -> None:
    write_cluster(tmp_path, nodes_count=count)
    with pytest.raises(InvalidInputError) as caught:
        load_cluster(tmp_path)
    assert f"`nodes_count` is {count}, and nodes.yaml names 4" in str(caught.value.__dict__) + str(
        caught.value
    )


def test_a_network_without_room_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    start(tmp_path, nodes_count=9, node_cidr="192.0.2.8/29")
    with pytest.raises(NodesCountError, match="has no address for node"):
        name_nodes(tmp_path)
    assert not (tmp_path / "nodes.yaml").exists()


def test_without_a_count_there_is_nothing_to_name(tmp_path: Path) -> None:
    start(tmp_path)
    with pytest.raises(NodesCountError, match="no `nodes_count`"):
        name_nodes(tmp_path)
