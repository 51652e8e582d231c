"""What one run leaves for the next."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackyard.scenario.context_file import ContextFileError, read_context, write_context


def test_what_was_written_is_read_again_without_what_is_private(tmp_path: Path) -> None:
    path = tmp_path / "context.json"
    assert read_context(path) == {}
    write_context(path, {"vm_ip": "10.0.0.5", "vm_id": 99900, "folder": tmp_path, "_own": 1})
    assert read_context(path) == {"vm_ip": "10.0.0.5", "vm_id": 99900, "folder": str(tmp_path)}
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["{", "", "[1, 2]", "null", "{'a': 1}"])
def test_a_file_that_holds_something_else_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "context.json"
    path.write_text(text)
    with pytest.raises(ContextFileError):
        read_context(path)
    assert path.read_text() == text
