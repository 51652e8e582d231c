"""The how-to pages about clusters that run are true: their commands run, in order."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.pages import Reader
from tests.support.running_cluster import running_cluster

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

CHANGE = (
    ("cluster nodes", "leader", "The cluster home is healthy"),
    ("cluster drift", "vm.max_map_count: 262144"),
    ("apply-config", "Configured k8s-0, k8s-1"),
    ("cluster upgrade", "Talos 1.12.1 to 1.12.2", "Upgraded k8s-0, k8s-1", "Configured k8s-0, k8s-1"),
    ("upgrade-kubernetes", "Kubernetes 1.35.1 runs on all nodes", "k8s-1: as its files say"),
)
RECOVER = (
    ("cluster snapshot", "Wrote home.snapshot.age", "encrypted for age1"),
    ("cluster restore", "home has what home.snapshot.age has", "is healthy"),
    ("--dry-run", "k8s-0 (101 on pve1) would be destroyed"),
    ("cluster destroy", "destroyed"),
)


def _follow(page: str, expected: tuple[tuple[str, ...], ...], reader: Reader) -> None:
    rest = iter(expected)
    for block, printed in reader.follow(page):
        command, *words = next(rest)
        assert command in block.script
        assert [word for word in words if word not in printed] == [], f"{block.script}\n{printed}"
    assert next(rest, None) is None


@pytest.mark.parametrize(
    ("page", "expected"),
    [("talos-change.md", CHANGE), ("talos-recover.md", RECOVER)],
    ids=["change", "recover"],
)
def test_the_page_can_be_followed_on_a_cluster_that_runs(
    page: str, expected: tuple[tuple[str, ...], ...], tmp_path: Path
) -> None:
    with running_cluster(tmp_path, kubernetes_version="1.35.0") as repo:
        (tmp_path / "programs").mkdir()
        reader = Reader(folder=repo.root, programs=tmp_path / "programs", env=repo.env)
        _follow(f"docs/howto/{page}", expected, reader)
