"""The repository that Flux applies: its address, what opens it, and the revision that it is at."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from stackyard.base import files
from stackyard.base.errors import InvalidInputError
from stackyard.base.visible import on_one_line
from stackyard.clients.git.remote import GitUnreachableError, RemoteAccess, read_remote_refs
from stackyard.secrets.private import private_folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["FluxSettingsError", "GitAccess", "GitSource", "check_remote", "read_revision"]

# `git@host:path`, as git writes it and Flux does not read it.
_SCP = re.compile(r"(?P<user>[\w.-]+@)(?P<host>[\w.-]+):(?!//)(?P<path>.+)")
_INTERVAL = re.compile(r"(\d+(\.\d+)?(ms|s|m|h))+")


class FluxSettingsError(InvalidInputError):
    """The Git source or the Kustomizations of a cluster cannot work as they are given."""

    code = "E-CLUSTER-FLUX"
    summary = "The settings of Flux cannot work"
    default_remedy = "Correct every setting listed; nothing was changed."


@dataclass(frozen=True, slots=True, kw_only=True)
class GitAccess:
    """What opens a Git repository, on any forge; what is secret is not in its repr.

    Attributes:
        private_key: The private half of a deploy key, for `ssh://` addresses.
        public_key: The public half, where it is known.
        known_hosts: The host keys of the forge, as OpenSSH writes them.
        username: The name that goes with a token; forges take any.
        token: A token, for `https://` addresses.
        authority_pem: The authority of the forge's certificate, where it is not one of the system.
    """

    private_key: str = field(default="", repr=False)
    public_key: str = ""
    known_hosts: str = ""
    username: str = "git"
    token: str = field(default="", repr=False)
    authority_pem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitSource:
    """The repository that Flux applies.

    Attributes:
        url: Its address: `ssh://`, `https://`, or `git@host:path`.
        branch: The branch; `main` if no tag and no commit is named either.
        tag: The tag to stay at.
        commit: The commit to stay at, of the branch if one is named.
        access: What opens it; None for a public one.
        interval: How often Flux looks.
        name: The name of the objects in the cluster.
    """

    url: str
    branch: str = ""
    tag: str = ""
    commit: str = ""
    access: GitAccess | None = None
    interval: str = "1m0s"
    name: str = "flux-system"

    @property
    def address(self) -> str:
        """The address as Flux reads it."""
        if match := _SCP.fullmatch(self.url):
            return f"ssh://{match['user']}{match['host']}/{match['path'].lstrip('/')}"
        return self.url

    @property
    def reference(self) -> dict[str, str]:
        """What of the repository is applied, as Flux reads it."""
        named = {"branch": self.branch, "tag": self.tag, "commit": self.commit}
        return {key: value for key, value in named.items() if value} or {"branch": "main"}

    def check(self) -> None:
        """Refuse what cannot work.

        Raises:
            FluxSettingsError: Something is missing or contradicts itself; all of it is listed.
        """
        wrong = [*self._list_wrong_access(), *self._list_wrong_reference()]
        if wrong:
            raise FluxSettingsError(f"The Git source of Flux cannot work: {'; '.join(wrong)}.")

    def _list_wrong_access(self) -> list[str]:
        access, address, wrong = self.access or GitAccess(), self.address, []
        if _has_password(address):
            return ["the address has a password: put it into the field git_token of cluster.sops.yaml"]
        is_ssh = address.startswith("ssh://")
        if not is_ssh and not address.startswith(("https://", "http://")):
            wrong.append(f"the address {on_one_line(self.url)!r} is neither ssh:// nor https://")
        if is_ssh and not access.private_key.strip():
            wrong.append("an ssh:// address needs a deploy key")
        if is_ssh and not access.known_hosts.strip():
            wrong.append("an ssh:// address needs the host keys of the forge (known_hosts)")
        if is_ssh and access.token:
            wrong.append("a token opens https:// addresses only")
        if is_ssh and access.authority_pem:
            wrong.append("an authority is for https:// addresses only")
        if not is_ssh and access.private_key:
            wrong.append("a deploy key opens ssh:// addresses only")
        if address.startswith("http://") and access.token:
            wrong.append("a token must not be sent over http://")
        return wrong

    def _list_wrong_reference(self) -> list[str]:
        wrong = []
        if not _INTERVAL.fullmatch(self.interval):
            wrong.append(f"the interval {on_one_line(self.interval)!r} is not a duration such as 10m")
        if self.tag and self.commit:
            wrong.append("a tag and a commit are both named")
        if self.tag and self.branch:
            wrong.append("a tag and a branch are both named")
        return wrong


def _has_password(address: str) -> bool:
    try:
        return urlsplit(address).password is not None
    except ValueError:
        return False


async def read_revision(source: GitSource) -> str:
    """Return a part of the revision that Flux has once it has applied what is in the repository now.

    Raises:
        FluxSettingsError: The repository has no such branch.
        GitUnreachableError: Its host does not answer.
        GitRefusedError: Its host refuses.
    """
    if source.commit:
        return source.commit
    if source.tag:
        return f"{source.tag}@"
    return await _ask_remote(source)


async def check_remote(source: GitSource) -> None:
    """Make sure that the repository opens, and has the branch or tag.

    A host that does not answer here is no mistake in the settings: it may answer the cluster.

    Raises:
        FluxSettingsError: The repository has no such branch or tag.
        GitRefusedError: Its host refuses, with its words.
    """
    with contextlib.suppress(GitUnreachableError):
        await _ask_remote(source)


async def _ask_remote(source: GitSource) -> str:
    """Return the commit of the branch or tag; empty for a commit, which no host lists."""
    kind, name = "branch", source.reference.get("branch", "")
    if source.tag:
        kind, name = "tag", source.tag
    ref = f"refs/{'tags' if source.tag else 'heads'}/{name}" if name else "HEAD"
    async with _open_access(source) as (folder, access):
        found = await read_remote_refs(source.address, folder, access, (ref,))
    if ref not in found:
        raise FluxSettingsError(f"{on_one_line(source.address)} has no {kind} {on_one_line(name or 'HEAD')}.")
    return found[ref]


@contextlib.asynccontextmanager
async def _open_access(source: GitSource) -> AsyncIterator[tuple[Path, RemoteAccess]]:
    """Give git what the cluster gets; what must be a file is in a folder that does not outlive us."""
    given = source.access or GitAccess()
    texts = {"key": given.private_key, "known_hosts": given.known_hosts, "ca.pem": given.authority_pem}
    async with contextlib.AsyncExitStack() as stack:
        folder = await asyncio.to_thread(_enter_folder, stack, is_secret=bool(given.private_key))
        paths: dict[str, Path | None] = dict.fromkeys(texts)
        for name, text in texts.items():
            if text:
                paths[name] = folder / name
                files.replace_file(folder / name, f"{text.rstrip()}\n".encode())
        basic = base64.b64encode(f"{given.username}:{given.token}".encode()).decode()
        access = RemoteAccess(
            key_file=paths["key"],
            known_hosts_file=paths["known_hosts"],
            authority_file=paths["ca.pem"],
            authorization=f"Basic {basic}" if given.token else "",
        )
        yield folder, access


def _enter_folder(stack: contextlib.AsyncExitStack, *, is_secret: bool) -> Path:
    """Return a folder until the stack ends; one for a secret is wiped even if we are killed."""
    if is_secret:
        return stack.enter_context(private_folder()).path
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="stackyard-git-")))
