"""Datasets on a TrueNAS: the commands of the page, as a reader types them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.support.engine import real_engine
from tests.support.pages import Block, Reader

from stackyard.engine.version import Flavour

PAGE = "docs/howto/truenas-datasets.md"

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not on PATH")
def test_the_page_makes_datasets_before_the_cluster(tmp_path: Path) -> None:
    programs, folder = tmp_path / "programs", tmp_path / "work"
    programs.mkdir()
    folder.mkdir()
    (tmp_path / "run").mkdir(mode=0o700)
    env = {
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_RUNTIME_DIR": str(tmp_path / "run"),
        "STACKYARD_TOFU": str(real_engine(Flavour.TOFU).path),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }
    reader = Reader(folder, programs, env)
    try:
        printed = [text for _, text in reader.follow(PAGE)]
    finally:
        reader.type(Block(script="stackyard lab down --name nas\n"))
    up, again, differs, changed = printed[3:7]
    assert up.index("datasets") < up.index("vms") < up.index("etcd")
    assert "is up already; nothing was changed" in again
    assert "E-STORAGE-DIFFERS" in differs
    assert "quota is 536870912000 and is to be 805306368000" in differs
    assert "The cluster home is up." in changed
    key = next(iter(programs.glob("exported")), None)
    assert key is None or "truenas_api_key" not in key.read_text()
