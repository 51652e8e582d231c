"""The example of a cluster, from its files to software that Flux has applied, as its page says."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.support.cli import stackyard
from tests.support.engine import real_engine
from tests.support.git_ssh import serve_git_in_thread
from tests.support.pages import ROOT, Block, Reader, blocks
from tests.support.talos import free_network

from stackyard.clients.kubernetes import KubernetesClient, Selection, parse_kubeconfig
from stackyard.engine.version import Flavour

EXAMPLE = ROOT / "examples/cluster"

pytestmark = [
    pytest.mark.tofu,
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not on PATH"),
    pytest.mark.skipif(shutil.which("ssh") is None, reason="there is no ssh on PATH"),
]


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    folder = tmp_path / "cluster"
    shutil.copytree(EXAMPLE, folder)
    (tmp_path / "bin").mkdir()
    with serve_git_in_thread() as host:
        (folder / "deploy.key").write_text(host.private_key)
        (folder / "known_hosts").write_text(host.known_hosts)
        env = {
            "STACKYARD_TOFU": str(real_engine(Flavour.TOFU).path),
            "XDG_CONFIG_HOME": str(tmp_path / "config"),
            "GIT": host.url(folder),
        }
        yield Reader(folder=folder, programs=tmp_path / "bin", env=env)
    stackyard("lab", "down", "--all")


def follow(reader: Reader, heading: str) -> str:
    """Type the blocks of a section; return what they printed.

    The addresses are others: `test_examples` has a lab with those of the page.
    """
    text = (EXAMPLE / "README.md").read_text().replace("127.29.", f"{free_network()}.")
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return "".join(reader.type(block) for block in blocks(section))


async def test_five_nodes_become_a_cluster_with_the_software_of_its_repository(reader: Reader) -> None:
    assert "5 of 5 nodes are ready" in follow(reader, "Apply it to a lab")
    printed = follow(reader, "Bring it up")
    assert "The cluster home is up." in printed
    assert "The cluster home is healthy." in printed
    again = reader.type(Block(script="stackyard cluster up --yes\n"))
    assert "The cluster home is up already; nothing was changed." in again
    tasks = yaml.safe_load((reader.folder / ".taskfiles/bootstrap/Taskfile.yaml").read_text())["tasks"]
    assert {name: "stackyard cluster up" in str(task) for name, task in tasks.items()} == {
        "talos": True,
        "apps": True,
    }
    kubeconfig = (reader.folder / "kubeconfig").read_text()
    async with KubernetesClient(parse_kubeconfig(kubeconfig)) as client:
        nodes = await client.list_objects(Selection(api_version="v1", kind="Node"))
        found = await client.list_objects(Selection(api_version="apps/v1", kind="Deployment"))
    assert [one["metadata"]["name"] for one in nodes] == ["cp-1", "cp-2", "cp-3", "worker-1", "worker-2"]
    assert {"ingress", "hello"} <= {one["metadata"]["name"] for one in found}
