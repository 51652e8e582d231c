"""New credentials for the state: where they are written, and what to do where they are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.clusters import SAMPLE

from stackyard.path.clusters.keys import make_keyring
from stackyard.path.clusters.rotate import RotationError, StateLogin, write_login
from stackyard.path.clusters.split import SplitError, split_secrets
from stackyard.secrets import new_identity


def test_a_login_in_a_toml_file_is_moved_by_hand_as_split_says_too(tmp_path: Path) -> None:
    (tmp_path / "age.key").write_text(f"{new_identity()[1]}\n")
    (tmp_path / "cluster.toml").write_text(f'{SAMPLE}\n[state]\npassword = "hunter2hunter2"\n')
    keyring, login = (
        make_keyring(tmp_path),
        StateLogin(name="terraform-r1", former=("terraform",), _token="t"),
    )
    with pytest.raises(RotationError) as rotated:
        write_login(tmp_path, login, keyring)
    assert "stackyard secrets encrypt" in rotated.value.remedy
    assert "cluster split" not in rotated.value.remedy
    with pytest.raises(SplitError) as split:
        split_secrets(tmp_path, frozenset(), keyring=keyring)
    assert split.value.remedy == rotated.value.remedy
