from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from pvelab.kubernetes import Authority
from stackyard.clients.kubernetes import ClusterAccess, KubeconfigError, parse_kubeconfig, read_kubeconfig

TEXT = Authority.make().make_kubeconfig("https://10.0.0.1:6443", name="home")


def change(part: str, key: str, **values: Any) -> str:
    document = yaml.safe_load(TEXT)
    document[part][0][key] |= values
    return str(yaml.safe_dump(document))


def test_a_kubeconfig_of_talos_gives_server_authority_and_certificate() -> None:
    access = parse_kubeconfig(TEXT)
    assert (access.server, access.name, access.namespace) == (
        "https://10.0.0.1:6443",
        "admin@home",
        "default",
    )
    access.make_context()


def test_no_secret_is_in_the_repr() -> None:
    access = parse_kubeconfig(change("users", "user", token="t0ken-value"))
    assert access.token == "t0ken-value"
    assert "t0ken-value" not in repr(access)
    assert "PRIVATE KEY" not in repr(access)


def test_files_are_read_beside_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t0ken-value\n")
    path = tmp_path / "config"
    path.write_text(change("users", "user", tokenFile="token"))
    assert read_kubeconfig(path).token == "t0ken-value"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("a: [", "not YAML"),
        ("apiVersion: v1", "no current-context"),
        (TEXT.replace("admin@home", "other", 1), "no context 'other'"),
        (change("users", "user", exec={"command": "aws"}), "logs in with `exec`"),
        (change("clusters", "cluster", **{"insecure-skip-tls-verify": True}), "insecure-skip-tls-verify"),
        (change("clusters", "cluster", server="10.0.0.1"), "no usable `server`"),
        (change("users", "user", **{"client-key-data": "###"}), "not base64"),
        (change("users", "user", tokenFile="token"), "names a file"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used_says_why_and_shows_no_value(text: str, said: str) -> None:
    with pytest.raises(KubeconfigError, match=said) as caught:
        parse_kubeconfig(text)
    assert "LS0t" not in caught.value.detail
    assert caught.value.remedy


def test_an_expired_certificate_is_said_with_both_dates() -> None:
    authority = Authority.make()
    pair = authority.issue_client("admin", lifetime=datetime.timedelta(seconds=-1))
    access = ClusterAccess(
        server="https://10.0.0.1:6443",
        certificate_pem=pair.certificate_pem,
        key_pem=pair.key_pem,
        name="home",
    )
    with pytest.raises(KubeconfigError, match=r"expired at .* the clock of this machine says"):
        access.make_context()


def test_a_key_that_does_not_belong_to_its_certificate_is_refused() -> None:
    other = yaml.safe_load(Authority.make().make_kubeconfig("https://10.0.0.1:6443"))
    key = other["users"][0]["user"]["client-key-data"]
    with pytest.raises(KubeconfigError, match="cannot be used"):
        parse_kubeconfig(change("users", "user", **{"client-key-data": key})).make_context()
