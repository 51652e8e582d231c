from __future__ import annotations

import stat
from pathlib import Path

import pytest

from stackyard.base.errors import FileError
from stackyard.engine import statefile, tofu

STATE = b'{"lineage": "l", "serial": 1, "resources": ["s3cret"]}'


def test_a_state_shows_no_value_in_its_representation() -> None:
    snapshot = statefile.read_snapshot(STATE)
    assert repr(snapshot) == "StateSnapshot(lineage='l', serial=1)"
    assert snapshot.resources == 1
    shown = repr(tofu.TofuOutput(value="s3cret", sensitive=True, type="string"))
    assert "s3cret" not in shown


def test_an_encrypted_state_tells_its_lineage_alone() -> None:
    snapshot = statefile.read_snapshot(b'{"lineage": "l", "serial": 3, "encrypted_data": "x"}')
    assert (snapshot.encrypted, snapshot.serial, snapshot.resources) == (True, 3, 0)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'{"lineage": 1, "serial": 1}', b"\xff"])
def test_a_file_that_is_no_state_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the parser words its own
        statefile.read_snapshot(data)


def test_a_state_is_saved_for_its_owner_alone_and_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "states" / "now.tfstate"
    statefile.save_snapshot(statefile.read_snapshot(STATE), path)
    assert path.read_bytes() == STATE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    with pytest.raises(FileError):
        statefile.save_snapshot(statefile.read_snapshot(STATE), path / "below")
