"""A cold boot that is killed at any point is continued, and nothing happens twice."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cold_boot_kills import (
    APPLIED,
    EVERY,
    FINISHED,
    STARTED,
    WAITING,
    KillPoint,
    check_cold_boot,
    kill_up,
)
from tests.support.whole_boot import WholeBoot, whole_boot

pytestmark = [
    pytest.mark.tofu,
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("ssh") is None, reason="there is no ssh on PATH"),
]

# One after the other on one cluster: each run continues what the one before left.
IN_A_ROW = (
    KillPoint(WAITING, "datasets"),
    KillPoint(APPLIED, 'proxmox_virtual_environment_vm.talos_node["k8s-0"]', "started"),
    KillPoint(WAITING, "configure k8s-0"),
    KillPoint(WAITING, "etcd"),
    KillPoint(STARTED, "secrets"),
    KillPoint(FINISHED, "sync"),
)


@pytest.fixture
def boot(tmp_path: Path) -> Iterator[WholeBoot]:
    with whole_boot(tmp_path) as made:
        yield made


def test_a_boot_that_is_killed_again_and_again_comes_up(boot: WholeBoot) -> None:
    ended = [kill_up(boot.repo, point) for point in IN_A_ROW]
    assert sum(is_killed for is_killed, _ in ended) >= 5, "most points are reached before it is up"
    boot.repo.run("cluster", "up", "--yes")
    check_cold_boot(boot, b"".join(written for _, written in ended))


@pytest.mark.soak
@pytest.mark.parametrize("point", EVERY, ids=str)
def test_a_boot_that_is_killed_at_any_point_is_continued(boot: WholeBoot, point: KillPoint) -> None:
    began = time.monotonic()
    is_killed, written = kill_up(boot.repo, point)
    assert is_killed or not point.is_certain, "it came up, and never to this point"
    boot.repo.run("cluster", "up", "--yes")
    check_cold_boot(boot, written)
    said = "killed, and up" if is_killed else "up; it never came to that point"
    print(f"{point}: {said} after {time.monotonic() - began:.1f} s")  # noqa: T201 - the count of a soak
