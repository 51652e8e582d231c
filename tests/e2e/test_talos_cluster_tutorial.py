"""The tutorial of a Talos cluster does what it says: its commands run, in the order of the page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cli import stackyard
from tests.support.engine import real_engine
from tests.support.pages import ROOT, Reader

from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

PAGE = "docs/tutorial/talos-cluster.md"
# What a reader looks for in what a block prints; the page says so.
EXPECTED = (
    ("lab up", "factory"),
    ("cluster init", "cluster.sops.yaml"),
    ("vm_id:", "home is valid: 3 controllers, 2 workers."),
    ("cluster show", "Talos 1.12.0", "in cluster.sops.yaml, encrypted"),
    ("--graph", "proxmox_node", "spread over the Proxmox nodes"),
    ("0.55/127", "127.230.0.54", "k8s-4", "k8s-5", "nodes.yaml"),
    ("k8s-5", "home is valid"),
    ("cluster configure", "wrote infrastructure/tofu/main.tf", "Plan: 8 to create."),
    ("apply", "Applied: 8 created", "Nothing to change"),
    ("verify-nodes", "5 of 5 nodes are ready for their configuration."),
    ("drift", "k8s-1", "surprise"),
    ("apply", "1 changed", "Nothing to change"),
    ("1.12.1", "3 created, 5 changed, 3 destroyed"),
    ("bootstrap.yaml", "configure k8s-5", "The cluster home is up."),
    ("status", "k8s-5"),
    ("cluster up", "nothing was changed"),
    ("kubeconfig", "Wrote kubeconfig.", "The cluster home is healthy."),
    ("destroy", "E-GUARD-REFUSED", "--allow-destroy k8s-1,k8s-2,k8s-3,k8s-4,k8s-5"),
    ("--allow-destroy", "8 destroyed"),
)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    yield Reader(
        folder=tmp_path,
        programs=tmp_path / "bin",
        env={"STACKYARD_TOFU": str(real_engine(Flavour.TOFU).path)},
    )
    stackyard("lab", "down", "--all")


def test_the_page_can_be_followed_from_its_start_to_its_end(reader: Reader) -> None:
    shown = re.findall(r"```text\n(.*?)```", (ROOT / PAGE).read_text(), re.DOTALL)
    everything = ""
    for (block, printed), (command, *words) in zip(reader.follow(PAGE), EXPECTED, strict=True):
        assert command in block.script
        assert [word for word in words if word not in printed] == [], f"{block.script}\n{printed}"
        everything += printed
    assert [text for text in shown if text not in everything] == []
