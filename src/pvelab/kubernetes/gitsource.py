"""Fetching a Git repository with exactly the credentials that a secret of the cluster has."""

from __future__ import annotations

import base64
import contextlib
import os
import shlex
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base import files, process
from stackyard.base.errors import StackyardError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["FetchedSource", "GitReference", "SourceFailure", "fetch_source"]

_FETCH_S = 60.0


class SourceFailure(Exception):  # noqa: N818 - it is no error of the lab, but what an object of Flux says
    """Why a source is not ready: the reason in one word, and the message."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class GitReference:
    """What to fetch: an address, and a branch, a tag or a commit."""

    url: str
    branch: str = "master"
    tag: str = ""
    commit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedSource:
    """A revision that was fetched.

    Attributes:
        repository: The repository with it.
        commit: The commit.
        revision: The revision as Flux writes it: `main@sha1:...`.
    """

    repository: Path
    commit: str
    revision: str = field(default="")

    async def list_files(self, folder: str) -> dict[str, bytes]:
        """Return the files below a folder of the revision, by their paths."""
        prefix = folder.strip("./")
        listed = await _git(("ls-tree", "-r", "--name-only", "-z", self.commit), self.repository, {})
        names = [
            name for name in listed.split("\0") if name and (not prefix or name.startswith(f"{prefix}/"))
        ]
        return {
            name: (await _git(("cat-file", "blob", f"{self.commit}:{name}"), self.repository, {})).encode()
            for name in names
        }


async def fetch_source(
    reference: GitReference, secret: Mapping[str, str] | None, folder: Path
) -> FetchedSource:
    """Fetch a revision.

    Args:
        reference: What to fetch.
        secret: The data of the secret that opens the repository, in base64; None for a public one.
        folder: Where the repository is kept.

    Raises:
        SourceFailure: It cannot be fetched, with the words of git.
    """
    await _git(("init", "--quiet", "--bare", str(folder)), None, {})
    wanted = reference.commit or (f"refs/tags/{reference.tag}" if reference.tag else "")
    wanted = wanted or f"refs/heads/{reference.branch}"
    values = {key: base64.b64decode(value).decode() for key, value in (secret or {}).items()}
    with _credentials(reference.url, values) as env:
        try:
            await _git(("fetch", "--quiet", "--depth=1", "--no-tags", reference.url, wanted), folder, env)
        except StackyardError as err:
            said = _shorten(err.stderr if isinstance(err, process.ProcessFailedError) else err.detail)
            message = f"failed to checkout and determine revision: unable to clone '{reference.url}': {said}"
            raise SourceFailure("GitOperationFailed", message) from err
    commit = (await _git(("rev-parse", "FETCH_HEAD^{commit}"), folder, {})).strip()
    name = reference.tag or reference.branch
    revision = f"sha1:{commit}" if reference.commit else f"{name}@sha1:{commit}"
    return FetchedSource(repository=folder, commit=commit, revision=revision)


@contextlib.contextmanager
def _credentials(url: str, values: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Give git what the secret has, and nothing of this machine's user."""
    with tempfile.TemporaryDirectory(prefix="pvelab-git-") as name:
        folder = Path(name)
        env = {"GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
        if url.startswith("ssh://"):
            env["GIT_SSH_COMMAND"] = _ssh_command(folder, values)
        else:
            env |= _http_header(values)
        if authority := values.get("ca.crt"):
            files.replace_file(folder / "ca.crt", authority.encode())
            env["GIT_SSL_CAINFO"] = str(folder / "ca.crt")
        yield env


def _ssh_command(folder: Path, values: Mapping[str, str]) -> str:
    for key in ("identity", "known_hosts"):
        if not values.get(key):
            raise SourceFailure("AuthenticationFailed", f"invalid 'ssh' auth option: '{key}' is required")
        files.replace_file(folder / key, values[key].encode())
    options = (
        f"IdentityFile={folder / 'identity'}",
        "IdentitiesOnly=yes",
        "IdentityAgent=none",
        "BatchMode=yes",
        "StrictHostKeyChecking=yes",
        f"UserKnownHostsFile={folder / 'known_hosts'}",
        "GlobalKnownHostsFile=/dev/null",
    )
    return shlex.join(("ssh", "-F", os.devnull, *(part for option in options for part in ("-o", option))))


def _http_header(values: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of git that send a token: every user of the machine can read arguments."""
    pair = f"{values.get('username', 'git')}:{values.get('password', '')}"
    basic = f"Basic {base64.b64encode(pair.encode()).decode()}" if values.get("password") else ""
    header = f"Bearer {values['bearerToken']}" if values.get("bearerToken") else basic
    if not header:
        return {}
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "http.extraHeader",
        "GIT_CONFIG_VALUE_0": f"Authorization: {header}",
    }


async def _git(arguments: tuple[str, ...], folder: Path | None, env: Mapping[str, str]) -> str:
    command = process.Command(
        argv=("git", *arguments), env=process.environment(env), cwd=folder, timeout_s=_FETCH_S
    )
    return (await process.run(command)).stdout


def _shorten(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join(lines)[-500:]
