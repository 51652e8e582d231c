"""A cold boot that is killed at any point is continued, and nothing happens twice."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cluster_network import NETWORK_FILES
from tests.support.cluster_repo import ClusterRepo, cluster_on_lab
from tests.support.cold_boot_kills import MOMENTS, STEPS, KillPoint, check_cold_boot, kill_up

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

# One after the other on one cluster: each run continues what the one before left.
IN_A_ROW = (
    KillPoint("step.started", "configure k8s-0"),
    KillPoint("step.waiting", "configure k8s-0"),
    KillPoint("step.finished", "configure k8s-0"),
    KillPoint("step.started", "etcd"),
    KillPoint("step.waiting", "etcd"),
    KillPoint("step.started", "network"),
)
EVERY = [KillPoint(moment, step) for step in STEPS for moment in MOMENTS]


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[ClusterRepo]:
    with cluster_on_lab(tmp_path) as made:
        made.write(NETWORK_FILES)
        yield made


def test_a_boot_that_is_killed_again_and_again_comes_up(repo: ClusterRepo) -> None:
    ended = [kill_up(repo, point) for point in IN_A_ROW]
    assert sum(is_killed for is_killed, _ in ended) >= 4, "most points are reached before it is up"
    repo.run("cluster", "up", "--yes")
    check_cold_boot(repo, b"".join(written for _, written in ended))


@pytest.mark.soak
@pytest.mark.parametrize("point", EVERY, ids=str)
def test_a_boot_that_is_killed_at_any_point_is_continued(repo: ClusterRepo, point: KillPoint) -> None:
    began = time.monotonic()
    is_killed, written = kill_up(repo, point)
    repo.run("cluster", "up", "--yes")
    check_cold_boot(repo, written)
    said = "killed, and up" if is_killed else "up; it never came to that point"
    print(f"{point}: {said} after {time.monotonic() - began:.1f} s")  # noqa: T201 - the count of a soak
