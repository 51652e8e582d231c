"""Opening a forge: its address, its certificate, its token."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from aiohttp import web

from pvelab.kubernetes.authority import Authority
from stackyard.base.errors import ExitStatus, FileError
from stackyard.base.serving import Tls, respond, serve
from stackyard.clients.forge.failures import ForgeRefusedError, ForgeUnreachableError
from stackyard.clients.forge.model import ForgeKind
from stackyard.clients.forge.open_forge import open_forge
from stackyard.clients.forge.transport import Patience

KINDS = pytest.mark.parametrize("kind", list(ForgeKind))
SECRET = "ghp_0123456789secret"
HASTY = Patience(answer_s=5.0, away_s=0.0)


@KINDS
@pytest.mark.parametrize(
    "url",
    [
        "git.example.org",
        "ftp://git.example.org",
        "http://git.example.org",
        "https://me:pw@git.example.org",
        "https://[::1",
        "",
    ],
)
def test_address_that_is_none_or_not_encrypted_is_refused(kind: ForgeKind, url: str) -> None:
    with pytest.raises(ForgeRefusedError) as caught:
        open_forge(kind, url, "yard/infra", SECRET)
    assert SECRET not in str(caught.value)


@KINDS
@pytest.mark.parametrize(
    "name", ["infra", "/infra", "yard/", "yard/../infra", "yard/in fra", "yard//infra", ""]
)
def test_name_of_a_repository_that_is_none_is_refused(kind: ForgeKind, name: str) -> None:
    with pytest.raises(ForgeRefusedError):
        open_forge(kind, "https://git.example.org", name, SECRET)


def test_only_gitlab_has_groups_in_groups() -> None:
    open_forge(ForgeKind.GITLAB, "https://git.example.org", "yard/onprem/infra", SECRET)
    for kind in (ForgeKind.GITEA, ForgeKind.GITHUB):
        with pytest.raises(ForgeRefusedError):
            open_forge(kind, "https://git.example.org", "yard/onprem/infra", SECRET)


@KINDS
@pytest.mark.parametrize("token", ["", "  ", "a\nb", "tökén"])
def test_token_that_cannot_be_one_is_refused_and_not_shown(kind: ForgeKind, token: str) -> None:
    with pytest.raises(ForgeRefusedError) as caught:
        open_forge(kind, "https://git.example.org", "yard/infra", token)
    assert token.strip() == "" or token not in str(caught.value)


@KINDS
async def test_forge_that_is_down_is_said_to_be(kind: ForgeKind) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
    async with open_forge(kind, url, "yard/infra", SECRET, patience=HASTY) as forge:
        with pytest.raises(ForgeUnreachableError) as caught:
            await forge.repository()
    assert caught.value.exit_status is ExitStatus.UNREACHABLE
    assert SECRET not in str(caught.value)


async def test_github_itself_is_asked_at_the_address_of_its_interface(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Nothing leaves this machine: the proxy is not there.
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")
    for url in ("https://github.com", "https://GitHub.com/"):
        async with open_forge(ForgeKind.GITHUB, url, "yard/infra", SECRET, patience=HASTY) as forge:
            with pytest.raises(ForgeUnreachableError, match=r"GET /repos/yard/infra of api\.github\.com"):
                await forge.repository()
    url = "https://git.example.org/sub"
    async with open_forge(ForgeKind.GITHUB, url, "yard/infra", SECRET, patience=HASTY) as forge:
        with pytest.raises(ForgeUnreachableError, match=r"GET /v3/repos/yard/infra of git\.example\.org"):
            await forge.repository()


@KINDS
async def test_certificate_of_an_unknown_authority_is_refused_and_a_known_one_taken(
    kind: ForgeKind, tmp_path: Path
) -> None:
    authority = Authority.make("forge")
    asked: list[str] = []

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        asked.append(request.headers.get("Authorization", ""))
        return respond(200, b'{"login": "bot", "username": "bot"}', content_type="application/json")

    tls = Tls(authority.issue_server(("127.0.0.1",)))
    ours, other = tmp_path / "ours.pem", tmp_path / "other.pem"
    ours.write_text(authority.certificate_pem.decode())
    other.write_text(Authority.make("another").certificate_pem.decode())
    async with serve(answer, bind="127.0.0.1", port=0, tls=tls) as server:
        for ca in (None, other):
            async with open_forge(kind, server.url, "yard/infra", SECRET, ca=ca, patience=HASTY) as forge:
                with pytest.raises(ForgeUnreachableError, match="certificate"):
                    await forge.login()
        assert not asked
        async with open_forge(kind, server.url, "yard/infra", SECRET, ca=ours, patience=HASTY) as forge:
            assert await forge.login() == "bot"
    assert all(SECRET in word for word in asked)


async def test_file_with_certificates_that_is_missing_is_named(tmp_path: Path) -> None:
    forge = open_forge(
        ForgeKind.GITEA, "https://git.example.org", "yard/infra", SECRET, ca=tmp_path / "none.pem"
    )
    with pytest.raises(FileError, match=r"none\.pem"):
        async with forge:
            pass


@KINDS
def test_how_git_fetches_shows_no_token_where_it_is_printed(kind: ForgeKind) -> None:
    access = open_forge(kind, "https://git.example.org/sub/", "yard/infra", SECRET).clone_access
    assert access.url == "https://git.example.org/sub/yard/infra.git"
    assert list(access.headers) == ["Authorization"]
    assert SECRET not in repr(access)
    assert access.headers["Authorization"] not in repr(access)
