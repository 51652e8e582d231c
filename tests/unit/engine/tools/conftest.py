"""What the tests of the tools share: the cache of stackyard, a PATH of their own, a server of releases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.releases import ReleaseServer


@pytest.fixture
def cache(home: Path) -> Path:
    """Give the cache folder of stackyard, which is not there yet."""
    return home / ".cache" / "stackyard"


@pytest.fixture
def path_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give an empty folder that is the whole PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.fixture
def releases() -> Iterator[ReleaseServer]:
    """Give a running server with nothing on it yet."""
    with ReleaseServer() as server:
        yield server
