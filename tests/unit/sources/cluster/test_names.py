"""The clusters of a repository, by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackyard.base.errors import InvalidInputError
from stackyard.sources.cluster import find_cluster, find_clusters
from stackyard.sources.cluster.names import ClusterNotFoundError


def make(folder: Path, text: str = "node_cidr: 192.0.2.0/24\n", name: str = "cluster.yaml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder


def test_a_cluster_is_found_from_below_up_to_the_top_of_git(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    make(tmp_path)
    inner = tmp_path / "kubernetes" / "apps"
    inner.mkdir(parents=True)

    assert {name: one.folder for name, one in find_clusters(inner).items()} == {"kubernetes": tmp_path}


def test_without_git_only_the_folder_counts(tmp_path: Path) -> None:
    make(tmp_path)
    inner = tmp_path / "inner"
    inner.mkdir()

    assert not find_clusters(inner)
    assert list(find_clusters(tmp_path)) == ["kubernetes"]


def test_names_come_from_the_file_or_the_folder(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    make(tmp_path, "cluster_name: home\n")
    make(tmp_path / "clusters" / "staging")
    make(tmp_path / "clusters" / "two", '[cluster]\nname = "prod"\n', "cluster.toml")
    make(tmp_path / "clusters" / "broken", "cluster_name: [\n")
    (tmp_path / "clusters" / "empty").mkdir()

    assert sorted(find_clusters(tmp_path)) == ["broken", "home", "prod", "staging"]
    assert sorted(find_clusters(tmp_path / "clusters" / "two")) == ["broken", "prod", "staging"]


def test_two_clusters_of_one_name_are_refused(tmp_path: Path) -> None:
    make(tmp_path)
    make(tmp_path / "clusters" / "a", "cluster_name: kubernetes\n")

    with pytest.raises(InvalidInputError) as caught:
        find_clusters(tmp_path)

    assert [one.kind.code for one in caught.value.diagnostics] == ["E-CLUSTER-SAME-NAME"]


def test_a_name_that_is_not_there_is_refused_with_the_near_one(tmp_path: Path) -> None:
    make(tmp_path / "clusters" / "staging")
    make(tmp_path / "clusters" / "prod")

    assert find_cluster("prod", tmp_path).folder == tmp_path / "clusters" / "prod"
    with pytest.raises(ClusterNotFoundError, match="Did you mean `staging`"):
        find_cluster("stagin", tmp_path)
    with pytest.raises(ClusterNotFoundError, match="several") as caught:
        find_cluster(None, tmp_path)
    assert "--cluster NAME" in caught.value.remedy
    assert "cluster init" not in caught.value.remedy
    assert find_cluster(None, tmp_path / "clusters" / "prod").name == "prod"
