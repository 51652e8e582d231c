"""Asking another repository for its refs, with given credentials and nobody else's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.support.git_https import serve_git_https
from tests.support.git_ssh import serve_git
from tests.support.ports import free_port
from tests.support.repositories import commit, git, new_repository

from stackyard.bootstrap.kubernetes import FluxSettingsError, GitAccess, GitSource, read_revision
from stackyard.bootstrap.kubernetes.git_source import check_remote
from stackyard.clients.git.remote import GitRefusedError, GitUnreachableError, RemoteAccess, read_remote_refs

pytestmark = pytest.mark.skipif(shutil.which("ssh") is None, reason="there is no ssh on PATH")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    made = new_repository(tmp_path / "made")
    commit(made, a="one")
    git(made, "tag", "--annotate", "--message", "first", "v1")
    return made


def head(repository: Path) -> str:
    return git(repository, "rev-parse", "HEAD").stdout.strip()


async def test_the_revision_is_the_commit_that_the_branch_is_at_now(repository: Path) -> None:
    async with serve_git() as host:
        access = GitAccess(private_key=host.private_key, known_hosts=host.known_hosts)
        source = GitSource(url=host.url(repository), access=access)
        assert await read_revision(source) == head(repository)
        commit(repository, a="two")
        assert await read_revision(source) == head(repository)


async def test_a_tag_that_is_an_object_has_the_commit_it_names(repository: Path, tmp_path: Path) -> None:
    async with serve_git() as host:
        key, known = tmp_path / "key", tmp_path / "known"
        key.write_text(host.private_key)
        key.chmod(0o600)
        known.write_text(host.known_hosts)
        access = RemoteAccess(key_file=key, known_hosts_file=known)
        found = await read_remote_refs(host.url(repository), tmp_path, access, ("refs/tags/v1",))
        assert found == {"refs/tags/v1": head(repository)}


async def test_a_branch_that_does_not_exist_and_a_key_that_does_not_open_are_refused(
    repository: Path,
) -> None:
    async with serve_git() as host, serve_git() as other:
        access = GitAccess(private_key=host.private_key, known_hosts=host.known_hosts)
        with pytest.raises(FluxSettingsError, match="no branch nowhere"):
            await check_remote(GitSource(url=host.url(repository), branch="nowhere", access=access))
        with pytest.raises(FluxSettingsError, match="no tag v9"):
            await check_remote(GitSource(url=host.url(repository), tag="v9", access=access))
        wrong = GitAccess(private_key=other.private_key, known_hosts=host.known_hosts)
        with pytest.raises(GitRefusedError, match="Permission denied"):
            await check_remote(GitSource(url=host.url(repository), access=wrong))
        unknown = GitAccess(private_key=host.private_key, known_hosts=other.known_hosts)
        with pytest.raises(GitRefusedError, match="Host key verification failed"):
            await check_remote(GitSource(url=host.url(repository), access=unknown))


@pytest.mark.parametrize("form", ["ssh://git@127.0.0.1:{}/a.git", "https://127.0.0.1:{}/a.git"])
async def test_a_host_that_does_not_answer_is_no_wrong_setting(form: str) -> None:
    source = GitSource(url=form.format(free_port()), access=GitAccess(private_key="none", token="hunter22"))
    with pytest.raises(GitUnreachableError, match="cannot be reached") as caught:
        await read_revision(source)
    assert "hunter22" not in str(caught.value)
    await check_remote(source)


async def test_a_commit_or_tag_is_known_without_asking(repository: Path) -> None:
    url = f"ssh://git@127.0.0.1:{free_port()}{repository}"
    assert await read_revision(GitSource(url=url, commit="a" * 40)) == "a" * 40
    assert await read_revision(GitSource(url=url, tag="v1")) == "v1@"


async def test_a_token_and_an_authority_open_a_repository_over_https(repository: Path) -> None:
    git(repository, "update-server-info")
    async with serve_git_https(repository, "me", "glpat-value") as host:
        access = GitAccess(username="me", token="glpat-value", authority_pem=host.authority_pem)
        assert await read_revision(GitSource(url=host.url, access=access)) == head(repository)
        assert host.asked
        for wrong, said in (
            (
                GitAccess(username="me", token="other", authority_pem=host.authority_pem),
                "wants other credentials",
            ),
            (GitAccess(username="me", token="glpat-value"), "certificate"),
        ):
            with pytest.raises(GitRefusedError, match=said) as caught:
                await check_remote(GitSource(url=host.url, access=wrong))
            assert "glpat-value" not in str(caught.value)
