"""What goes wrong with clusters, row by row of the page: what the error says, and that its remedy works.

Wrong credentials (401) and a token without privileges (403) are in `test_cluster_state_service.py` and
`test_cluster_flow.py`.
"""

from __future__ import annotations

import base64
import contextlib
import json
import shlex
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.support.cli import stackyard
from tests.support.cluster_repo import ClusterRepo, cluster_on_lab
from tests.support.lab import proxmoxer_client
from tests.support.state_process import StateProcess, start_service

from stackyard.path.clusters.source import ClusterSource
from stackyard.state import Actor, StateService

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

LOCK_ID = "3f0e1c52-7a1e-4f0c-9a54-1b0f5f5f7d11"
USER = "terraform"


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[ClusterRepo]:
    with cluster_on_lab(tmp_path) as made:
        yield made


@contextlib.asynccontextmanager
async def _serving(tmp_path: Path) -> AsyncIterator[tuple[StateProcess, str]]:
    """Run a state service; give it and the password of a user."""
    data = tmp_path / "states"
    service = await start_service("--plain-http", data=data)
    words = ("state", "token", "create", USER, "--allow", "read,write,lock,break", "--data", str(data))
    try:
        yield service, str(stackyard(*words, "--json").document["token"])
    finally:
        await service.stop()


def _keep_state(repo: ClusterRepo, service: StateProcess, password: str, name: str = "proxmox") -> None:
    repo.describe(
        tfstate_address=f"{service.url}/states/{name}", tfstate_username=USER, tfstate_password=password
    )
    repo.run("cluster", "configure", "--no-init")


def _lock(service: StateProcess, password: str) -> None:
    """Lock a state as a plain OpenTofu on another machine does, which is then switched off."""
    login = base64.b64encode(f"{USER}:{password}".encode()).decode()
    content = {"ID": LOCK_ID, "Operation": "OperationTypeApply", "Who": "me@laptop"}
    request = urllib.request.Request(
        f"{service.url}/states/proxmox/lock",
        method="LOCK",
        data=json.dumps(content).encode(),
        headers={"Authorization": f"Basic {login}"},
    )
    urllib.request.urlopen(request, timeout=30).close()


async def test_a_lock_of_a_dead_run_is_named_and_removed(repo: ClusterRepo, tmp_path: Path) -> None:
    async with _serving(tmp_path) as (service, password):
        _keep_state(repo, service, password)
        _lock(service, password)
        refused = repo.json("infra", "plan", "--lock-wait", "0", status=75)["error"]
        assert refused["code"] == "E-STATE-LOCKED"
        assert "me@laptop" in refused["detail"]
        assert f"stackyard infra force-unlock {LOCK_ID}" in refused["remedy"]
        repo.run("infra", "force-unlock", LOCK_ID, "--yes")
        repo.run("infra", "plan", "--lock-wait", "0")


async def test_a_lock_that_is_not_held_is_not_removed_and_the_one_that_is_is_named(
    repo: ClusterRepo, tmp_path: Path
) -> None:
    repo.run("cluster", "configure")
    refused = repo.json("infra", "force-unlock", "WRONG", "--yes", status=1)["error"]
    assert refused["code"] == "E-INFRA-LOCK"
    assert refused["detail"] == "The lock WRONG is not held on the state of cluster:home: no lock is."
    actor = Actor(principal="me", address="laptop")
    content = json.dumps({"ID": LOCK_ID, "Operation": "push", "Who": "me@laptop"}).encode()
    with contextlib.closing(ClusterSource.find(repo.root).store.open()) as objects:
        StateService(objects).locks.lock("cluster/home/default", content, actor)
    refused = repo.json("infra", "force-unlock", "WRONG", "--yes", status=1)["error"]
    assert refused["detail"].endswith(f": me@laptop holds the lock {LOCK_ID}.")
    repo.run("infra", "force-unlock", LOCK_ID, "--yes")
    async with _serving(tmp_path) as (service, password):
        _keep_state(repo, service, password)
        _lock(service, password)
        refused = repo.json("infra", "force-unlock", "WRONG", "--yes", status=1)["error"]
        assert "the state service refuses" in refused["detail"]
        repo.run("infra", "force-unlock", LOCK_ID, "--yes")


async def test_another_address_of_the_state_makes_nothing_twice_and_the_state_is_moved(
    repo: ClusterRepo, tmp_path: Path
) -> None:
    async with _serving(tmp_path) as (service, password):
        _keep_state(repo, service, password)
        repo.run("infra", "init")
        repo.run("infra", "apply-auto")
        _keep_state(repo, service, password, "other")
        # The VMs exist, and the empty state at the new address does not know them.
        refused = repo.json("infra", "plan", status=3)["guard"]["refused"]
        assert {one["code"] for one in refused} == {"E-GUARD-UNMANAGED-GUEST"}
        changed = repo.run("infra", "init", status=1)
        assert "Backend configuration changed" in changed.stderr
        assert "-migrate-state" in changed.stderr
        repo.run("infra", "init", "-migrate-state", "-force-copy")
        assert repo.actions("home") == {}


def test_a_state_that_was_damaged_is_brought_back(repo: ClusterRepo) -> None:
    repo.run("cluster", "configure")
    repo.run("infra", "apply-auto")
    name = "cluster/home/default"
    repo.run("state", "forget", name, 'proxmox_virtual_environment_vm.talos_node["k8s-0"]')
    refused = repo.json("plan", "home", status=3)["guard"]["refused"]
    assert [one["code"] for one in refused] == ["E-GUARD-UNMANAGED-GUEST"]
    # Generated code takes nothing over with --adopt, which the command refuses.
    assert "--adopt" not in refused[0]["remedy"]
    assert len(repo.json("state", "versions", name)["versions"]) == 2
    repo.run("state", "rollback", name, "1")
    assert repo.actions("home") == {}


def test_the_engine_asks_s3_for_checksums_only_where_they_are_required(
    repo: ClusterRepo, tmp_path: Path
) -> None:
    seen = tmp_path / "environment"
    program = tmp_path / "tofu"
    real = shlex.quote(repo.env["STACKYARD_TOFU"])
    program.write_text(f'#!/bin/sh\nenv | grep "^AWS_" >> {shlex.quote(str(seen))}\nexec {real} "$@"\n')
    program.chmod(0o755)
    repo.env["STACKYARD_TOFU"] = str(program)
    repo.run("cluster", "configure")
    # No `init` before it: there is no missing provider.
    repo.run("infra", "plan")
    assert set(seen.read_text().splitlines()) >= {
        "AWS_REQUEST_CHECKSUM_CALCULATION=when_required",
        "AWS_RESPONSE_CHECKSUM_VALIDATION=when_required",
    }


def test_nodes_that_are_not_ready_say_why(repo: ClusterRepo) -> None:
    repo.describe(nodes=[repo.node(0, disk="/dev/nvme0n1"), repo.node(1)])
    repo.run("cluster", "configure")
    repo.run("infra", "apply-auto")
    api = proxmoxer_client(repo.running)
    # A disk on which Talos is installed boots first, so that the image never halts the machine.
    assert api.nodes("pve1").qemu(101).config.get()["boot"] == "order=scsi0;ide2"
    api.nodes("pve2").qemu(102).status.stop.post()
    printed = repo.run("infra", "verify-nodes", status=1).stdout
    assert "k8s-0: there is no disk `/dev/nvme0n1`; correct `disk` in nodes.yaml." in printed
    assert f"k8s-1: {repo.network}.1.11:50000: Connection refused. Check that the node is on" in printed
    assert "0 of 2 nodes are ready for their configuration." in printed
    # A link is one that only the node can follow; no key is needed to look.
    repo.describe(nodes=[repo.node(0, disk="/dev/disk/by-id/ata-one")])
    repo.run("cluster", "split")
    (repo.root / "age.key").unlink()
    printed = repo.run("infra", "verify-nodes").stdout
    assert "k8s-0: `/dev/disk/by-id/ata-one` is not checked" in printed
