"""OPA for tests: the real one, where it is installed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.support.judges import find_judge

__all__ = ["opa", "put_on_path"]


def put_on_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the real OPA on PATH and return it, or skip the test and say why."""
    program = find_judge("opa")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "opa").symlink_to(program)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder / "opa"


@pytest.fixture
def opa(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the real OPA, which is on PATH."""
    return put_on_path(tmp_path / "opa-bin", monkeypatch)
