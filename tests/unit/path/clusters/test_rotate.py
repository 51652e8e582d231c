"""New credentials for the state: where they are written, and what to do where they are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.clusters import SAMPLE

from stackyard.path.clusters.keys import make_keyring
from stackyard.path.clusters.rotate import RotationError, StateLogin, write_login
from stackyard.path.clusters.split import split_secrets
from stackyard.secrets import new_identity, read_secrets
from stackyard.sources.cluster.fields import list_secret_names
from stackyard.sources.cluster.load import load_cluster


def test_a_login_in_a_toml_file_is_written_after_a_split(tmp_path: Path) -> None:
    (tmp_path / "age.key").write_text(f"{new_identity()[1]}\n")
    (tmp_path / "cluster.toml").write_text(f'{SAMPLE}\n[state]\npassword = "hunter2hunter2"\n')
    keyring = make_keyring(tmp_path)
    login = StateLogin(name="terraform-r1", former=("terraform",), _token="new-token-0123456789")
    with pytest.raises(RotationError) as refused:
        write_login(tmp_path, login, keyring)
    assert "stackyard cluster split" in refused.value.remedy
    split_secrets(tmp_path, list_secret_names(), keyring=keyring)
    write_login(tmp_path, login, keyring)
    written = read_secrets(tmp_path / "cluster.sops.yaml", keyring).data
    assert (written["tfstate_username"], written["tfstate_password"]) == (login.name, login.token)
    assert load_cluster(tmp_path, keyring=keyring).secrets["tfstate_password"] == login.token
