"""The layers of the example, with all states on a machine of theirs: built first, lost, and recovered."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cli import stackyard
from tests.support.engine import real_engine
from tests.support.git_ssh import GitHost, serve_git_in_thread
from tests.support.pages import ROOT, Block, Reader, blocks
from tests.support.seaweed import ACCESS_KEY, SECRET_KEY, Seaweed, require_seaweed, start_seaweed

from stackyard.clients.kubernetes import KubernetesClient, Selection, parse_kubeconfig
from stackyard.engine.version import Flavour

EXAMPLE = ROOT / "examples/layers"

pytestmark = [
    pytest.mark.tofu,
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not on PATH"),
]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Seaweed]:
    """The service for S3 on the storage machine; its data are the disk of the machine."""
    require_seaweed()
    found = start_seaweed(tmp_path / "s3")
    yield found
    found.kill()


@pytest.fixture
def git_host() -> Iterator[GitHost]:
    """The Git host that Flux fetches the repository from."""
    with serve_git_in_thread() as host:
        yield host


@pytest.fixture
def reader(tmp_path: Path, server: Seaweed, git_host: GitHost) -> Iterator[Reader]:
    folder = tmp_path / "work" / "layers"
    shutil.copytree(EXAMPLE, folder)
    (tmp_path / "bin").mkdir()
    yield Reader(
        folder=folder,
        programs=tmp_path / "bin",
        env={
            "STACKYARD_TOFU": str(real_engine(Flavour.TOFU).path),
            "XDG_CONFIG_HOME": str(tmp_path / "config"),
            "STORE": server.address("layers"),
            "GIT": git_host.url(folder),
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        },
    )
    stackyard("lab", "down", "--all")


def follow(reader: Reader, heading: str) -> str:
    """Type the blocks of a section; return what they printed."""
    text = (EXAMPLE / "README.md").read_text()
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return "".join(reader.type(block) for block in blocks(section))


async def _list_names(reader: Reader) -> list[str]:
    """Return the names of the Secrets of the cluster, and of what Flux has applied."""
    text = reader.type(Block(script="stackyard cluster kubeconfig k8s\n"))
    kinds = (("v1", "Secret"), ("apps/v1", "Deployment"))
    async with KubernetesClient(parse_kubeconfig(text)) as client:
        lists = [await client.list_objects(Selection(api_version=at, kind=kind)) for at, kind in kinds]
    return [str(one["metadata"]["name"]) for found in lists for one in found]


def test_the_machine_with_all_states_is_lost_and_everything_is_found_again(
    reader: Reader, server: Seaweed, git_host: GitHost, tmp_path: Path
) -> None:
    follow(reader, "Apply it to a lab")
    assert "of them states" in follow(reader, "Keep the states on the storage machine")
    cluster = reader.folder / "clusters/k8s"
    cluster.mkdir(parents=True)
    (cluster / "deploy.key").write_text(git_host.private_key)
    (cluster / "known_hosts").write_text(git_host.known_hosts)
    printed = follow(reader, "A cluster")
    assert "The cluster k8s is up." in printed
    stages = ("datasets ", "vms ", "configure k8s-1 ", "etcd ", "flux ", "sync ", "reconciled ")
    places = [printed.rindex(f"\n{stage}") for stage in stages]
    assert places == sorted(places), "the stages of a cold boot, in their order"
    assert set(asyncio.run(_list_names(reader))) >= {"sops-age", "truenas-api", "hello"}
    named = reader.type(Block(script="stackyard cluster kubeconfig k8s --context k8s\n"))
    assert "current-context: k8s" in named
    text = (EXAMPLE / "README.md").read_text()
    lost, rebuild, after = blocks(
        text.partition("\n## Rehearse the loss of the storage machine\n")[2].partition("\n## ")[0]
    )
    server.kill()
    copy = tmp_path / "copy"
    shutil.move(server.folder / "data", copy)
    assert "ended with status 69" in reader.type(lost)
    built = reader.type(rebuild)
    assert "1 created" in built
    assert not (reader.folder.parent / "rebuild").exists()
    shutil.move(copy, server.folder / "data")
    server.start()
    printed = reader.type(after)
    assert "The cluster k8s is up already; nothing was changed." in printed
    assert "changed, " not in printed
