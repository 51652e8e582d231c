"""After `cluster configure`, the engine is prepared with the credentials of the state, if there are any."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.support.engine import StateServer, real_engine, state_server
from tests.support.provider import bpg_binary, require_bpg
from tests.support.resolved_clusters import make_cluster

from stackyard.engine.version import Flavour
from stackyard.path.clusters.configure import configure
from stackyard.path.clusters.initialise import initialise, needs_init
from stackyard.secrets import new_identity
from stackyard.sources.cluster.model import Cluster, StateAddress

__all__ = ["state_server"]

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(60)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    top = tmp_path / "repository"
    (top / ".git").mkdir(parents=True)
    (top / "age.key").write_text(f"{new_identity()[1]}\n")
    monkeypatch.setenv("STACKYARD_TOFU", str(real_engine(Flavour.TOFU).path))
    monkeypatch.setenv("TF_HTTP_RETRY_MAX", "0")
    return top


def cluster_with(server: StateServer, folder: Path) -> Cluster:
    state = StateAddress(url=server.address, lock_url=f"{server.address}/lock")
    return make_cluster(folder, state=state, nodes=1)


def test_a_state_that_refuses_the_credentials_is_a_warning_without_them(
    state_server: StateServer, folder: Path
) -> None:
    state_server.faults["GET"] = 401
    cluster = cluster_with(state_server, folder)
    report = configure(cluster)
    assert needs_init(cluster, report)
    said = asyncio.run(initialise(cluster))
    assert said is not None
    assert "401" in said or "auth" in said.lower()
    assert "hunter-2" not in said
    # It is tried again by the next run, although that writes nothing.
    assert needs_init(cluster, configure(cluster))


@pytest.mark.bpg
def test_the_engine_is_prepared_once_and_writes_a_lock_file_that_git_may_hold(
    state_server: StateServer, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_bpg()
    place = tmp_path / "mirror/registry.opentofu.org/bpg/proxmox/0.111.1/linux_amd64"
    place.mkdir(parents=True)
    (place / "terraform-provider-proxmox_v0.111.1").symlink_to(str(bpg_binary()))
    settings = tmp_path / "tofurc"
    settings.write_text(
        f'provider_installation {{\n  filesystem_mirror {{\n    path = "{tmp_path}/mirror"\n  }}\n}}\n'
    )
    monkeypatch.setenv("STACKYARD_TOFU_CONFIG", str(settings))
    cluster = cluster_with(state_server, folder)
    configure(cluster)
    assert asyncio.run(initialise(cluster)) is None
    assert 'version     = "0.111.1"' in (folder / "infrastructure/tofu/.terraform.lock.hcl").read_text()
    kept = [path.read_bytes() for path in folder.rglob("*.tfstate")]
    assert len(kept) == 1
    assert b"hunter-2" not in kept[0]
    assert not needs_init(cluster, configure(cluster))


def test_nothing_is_prepared_without_credentials(state_server: StateServer, folder: Path) -> None:
    cluster = make_cluster(folder, secrets={})
    assert not needs_init(cluster, configure(cluster))
