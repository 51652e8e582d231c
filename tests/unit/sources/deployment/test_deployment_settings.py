"""Where the object is, by deployment.yaml."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackyard.base.errors import InvalidInputError
from stackyard.sources.deployment.settings import SettingsFile, find_place


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n", "null\n"])
def test_an_empty_file_says_that_the_defaults_hold(tmp_path: Path, text: str) -> None:
    (tmp_path / "deployment.yaml").write_text(text)
    found = find_place(start=tmp_path)
    assert (found.root, found.settings) == (tmp_path, SettingsFile())
    assert found.base == tmp_path / ".stackyard"


@pytest.mark.parametrize("text", ["[]\n", "environment: [\n", "stroe: x\n", "text\n"])
def test_what_is_wrong_in_it_is_still_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "deployment.yaml").write_text(text)
    with pytest.raises(InvalidInputError):
        find_place(start=tmp_path)
