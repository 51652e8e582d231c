"""Loading the module of a command: nobody looks for garbage meanwhile, and everybody does afterwards."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stackyard.cli.lazy_module import load_module

NAME = "a_module_of_a_command"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path / f"{NAME}.py"
    sys.modules.pop(NAME, None)


def test_garbage_is_looked_for_after_it_is_loaded_and_not_before(module: Path) -> None:
    assert gc.isenabled()
    module.write_text("import gc\nlooks = gc.isenabled()\n")
    assert not load_module(NAME).looks
    assert gc.isenabled()


def test_a_module_that_is_loaded_is_not_loaded_again(module: Path) -> None:
    module.write_text("")
    assert load_module(NAME) is load_module(NAME)


def test_garbage_is_looked_for_where_a_module_cannot_be_loaded(module: Path) -> None:
    module.write_text("raise ValueError('broken')\n")
    with pytest.raises(ValueError, match="broken"):
        load_module(NAME)
    assert gc.isenabled()


def test_who_does_not_look_for_garbage_is_not_made_to(module: Path) -> None:
    module.write_text("")
    gc.disable()
    try:
        load_module(NAME)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_plan_of_a_cluster_loads_nothing_of_sites_and_deployments() -> None:
    """Each of their models takes as long as many a check; a stack and a cluster need none of them."""
    code = """
import sys
import stackyard.cli.runs.stacks.one
import stackyard.path.clusters.source
heavy = ("stackyard.sources.site.load", "stackyard.sources.site.entities.guests", "stackyard.path.run",
    "stackyard.path.environment", "stackyard.path.hypervisor", "stackyard.sources.deployment.fetch",
    "stackyard.sources.manifest.model", "stackyard.cli.runs.stacks.many")
print([name for name in heavy if name in sys.modules])
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"
