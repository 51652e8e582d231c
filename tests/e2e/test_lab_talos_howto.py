"""Boot Talos machines in a lab: the commands of the page, as a reader types them."""

from __future__ import annotations

from pathlib import Path

from tests.support.pages import Block, Reader

PAGE = "docs/howto/lab-talos.md"


def test_the_page_boots_a_machine_in_maintenance_mode(tmp_path: Path) -> None:
    programs, folder = tmp_path / "programs", tmp_path / "work"
    programs.mkdir()
    folder.mkdir()
    env = {"XDG_STATE_HOME": str(tmp_path / "state"), "XDG_RUNTIME_DIR": str(tmp_path / "run")}
    (tmp_path / "run").mkdir(mode=0o700)
    reader = Reader(folder, programs, env)
    try:
        printed = [text for _, text in reader.follow(PAGE)]
    finally:
        reader.type(Block(script="stackyard lab down --name talos\n"))
    assert "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515" in printed[1]
    assert '"stage":"maintenance"' in printed[2]
    assert "127.86." in printed[2]
