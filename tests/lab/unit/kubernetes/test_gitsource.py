"""The lab fetches over HTTPS with the token and the authority that a secret has, and with nothing else."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from tests.support.controller import REPO_TOKEN, make_site, repository, running

from pvelab.kubernetes.gitsource import GitReference, SourceFailure, fetch_source


def encode(**values: str) -> dict[str, str]:
    return {
        key.replace("__", "."): base64.b64encode(value.encode()).decode() for key, value in values.items()
    }


async def test_a_token_and_an_authority_of_a_secret_open_a_forge(tmp_path: Path) -> None:
    checkout = repository(tmp_path / "bootstrap")
    async with running(make_site(tmp_path), repos=True) as forge:
        reference = GitReference(url=f"{forge.url}/{checkout.name}.git", branch="main")
        secret = encode(username="git", password=REPO_TOKEN, ca__crt=forge.certificate_pem.decode())
        fetched = await fetch_source(reference, secret, tmp_path / "fetched")
        assert fetched.revision == f"main@sha1:{fetched.commit}"
        assert "deep/er/a file.txt" in await fetched.list_files("./deep")
        wrong = secret | encode(password="another-token")
        with pytest.raises(SourceFailure, match="unable to clone") as caught:
            await fetch_source(reference, wrong, tmp_path / "other")
        assert caught.value.reason == "GitOperationFailed"
        untrusted = {key: value for key, value in secret.items() if key != "ca.crt"}
        with pytest.raises(SourceFailure, match="certificate"):
            await fetch_source(reference, untrusted, tmp_path / "third")
