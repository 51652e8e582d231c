"""A state file is replaced in one step, and whoever waited for its lock does not go on with the old one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.support.state_documents import resource, state_document

from stackyard.state.document import read_document
from stackyard.state.moving.base import describe_lock
from stackyard.state.moving.file_location import FileLocation
from stackyard.state.refusals import BodyRefusedError


def test_an_engine_that_opened_the_old_file_reads_no_state_from_it(tmp_path: Path) -> None:
    path = tmp_path / "terraform.tfstate"
    path.write_bytes(state_document(1, resource("terraform_data", "a")))
    path.chmod(0o640)
    place = FileLocation(path)
    # As OpenTofu does with -lock-timeout: it opens the file, waits for its lock, and then reads.
    with path.open("rb") as waiting:
        info = describe_lock(place, "test", "")
        place.lock(info)
        place.replace(state_document(2))
        place.unlock(info)
        with pytest.raises(BodyRefusedError, match="no serial"):
            read_document(waiting.read())
    assert read_document(path.read_bytes()).serial == 2
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["terraform.tfstate"]
