"""Bringing commits of a repository elsewhere into a bare one of our own.

The token goes to git in its environment, which only its owner can read, and never in an argument, a file or
the settings of the repository. A redirect is not followed: git would send the token along.
"""

from __future__ import annotations

import hashlib
import ipaddress
import os
import re
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from stackyard.base import process
from stackyard.base.errors import InvalidInputError
from stackyard.base.visible import on_one_line
from stackyard.clients.git.remote import describe_refusal
from stackyard.clients.git.run import OWN_SETTINGS, GitError, add_settings, git_command, run_git

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

__all__ = ["FETCHED", "FetchAddressError", "GitRefError", "RemoteHead", "fetch", "find_object_format"]

# Where the refs of the other repository are in ours.
FETCHED = "refs/fetched/"
_FETCHED_S = 900.0
_ASKED_S = 60.0
_MOST_REFS = 500
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REF = re.compile(r"refs/[A-Za-z0-9_][^\x00-\x20\x7f~^:?*\[\\]*")
_WRONG_PARTS = re.compile(r"\.\.|@\{|//|/\.|\.lock(?:/|$)|[./]$")
_HEADER = re.compile(r"[A-Za-z0-9-]+")
_SHA256_DIGITS = 64
_LEFT_LOCKS = ("*.lock", "refs/**/*.lock", "objects/pack/tmp_*")
# More packs than this make every look at an object slow.
_MOST_PACKS = 50


class FetchAddressError(InvalidInputError):
    """A repository is not fetched from where it is said to be."""

    code = "E-GIT-ADDRESS"
    summary = "A Git repository is not fetched from this address"
    default_remedy = "Use an address that begins with https://."


class GitRefError(InvalidInputError):
    """A ref or commit of a repository has a name that git does not allow."""

    code = "E-GIT-REF"
    summary = "A name of a Git branch or commit is not valid"
    default_remedy = (
        "Name a branch by its whole ref, such as refs/heads/main, or a commit by its whole number."
    )


class RemoteHead:
    """Where a repository is fetched from, and what is sent along.

    Args:
        url: Its address.
        headers: What each request has; holds the token.
        authority: The authority of the certificate; None for those of the system.
        may_be_local: Whether the address may be a folder of this machine.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str] | None = None,
        authority: Path | None = None,
        *,
        may_be_local: bool = False,
    ) -> None:
        self.url = url
        self.headers = dict(headers or {})
        self.authority = authority
        self.protocol = _find_protocol(url, may_be_local=may_be_local)
        for name, value in self.headers.items():
            if not _HEADER.fullmatch(name) or any(one in value for one in "\r\n\0"):
                raise FetchAddressError(f"The header {name!r} for {on_one_line(url)} cannot be sent.")

    def __repr__(self) -> str:
        return f"RemoteHead({self.url!r})"

    def command(self, arguments: tuple[str, ...], folder: Path, timeout_s: float) -> process.Command:
        """Return a git command that may reach it."""
        extra = {**OWN_SETTINGS, "GIT_ALLOW_PROTOCOL": self.protocol}
        command = git_command(arguments, folder, extra=extra, timeout_s=timeout_s)
        settings = {"http.followRedirects": "false", "http.lowSpeedLimit": "1000", "http.lowSpeedTime": "60"}
        if self.authority is not None:
            settings["http.sslCAInfo"] = str(self.authority)
        env = add_settings(command.env, settings)
        for name, value in self.headers.items():
            env = add_settings(env, {"http.extraHeader": f"{name}: {value}"})
        return replace(command, env=env)


def _find_protocol(url: str, *, may_be_local: bool) -> str:
    """Return the one protocol that is allowed for an address."""
    if url.startswith("/") and may_be_local:
        return "file"
    parts = urlsplit(url)
    if parts.username is not None or parts.password is not None:
        raise FetchAddressError("The address of the repository has a user name or password in it.")
    if parts.scheme == "file" and may_be_local:
        return "file"
    if parts.scheme == "https" and parts.hostname:
        return "https"
    if parts.scheme == "http" and _is_loopback(parts.hostname or ""):
        return "http"
    raise FetchAddressError(f"{on_one_line(url)} is not an address that begins with https://.")


def _is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def require_refs(names: Iterable[str]) -> tuple[str, ...]:
    """Return refs and commits, each once.

    Raises:
        GitRefError: One of them has no name that git allows.
    """
    found = tuple(dict.fromkeys(names))
    wrong = [one for one in found if not (_COMMIT.fullmatch(one) or is_ref(one))]
    if wrong:
        shown = ", ".join(repr(one[:100]) for one in wrong[:5])
        raise GitRefError(f"These are neither whole refs nor whole numbers of commits: {shown}.")
    if len(found) > _MOST_REFS:
        raise GitRefError(f"{len(found)} refs are asked for at once; at most {_MOST_REFS} are.")
    return found


def is_ref(name: str) -> bool:
    """Return whether a text is the whole name of a ref, as `git check-ref-format` has it."""
    return len(name) <= 1024 and _REF.fullmatch(name) is not None and not _WRONG_PARTS.search(name)


async def find_object_format(remote: RemoteHead, folder: Path) -> str:
    """Return the hash of a repository's objects: `sha1` or `sha256`.

    Raises:
        GitUnreachableError: Its host does not answer.
        GitRefusedError: The host refuses, or there is no such repository.
    """
    command = remote.command(("ls-remote", "--", remote.url, "HEAD", "refs/heads/*"), folder, _ASKED_S)
    said = await _ask(remote, command, _ASKED_S)
    number = said.partition("\t")[0].strip()
    return "sha256" if len(number) == _SHA256_DIGITS else "sha1"


async def fetch(remote: RemoteHead, bare: Path, names: Iterable[str], lock: int = -1) -> dict[str, str]:
    """Bring refs and commits with their whole history into a bare repository, one call at a time.

    Args:
        remote: Where they are.
        bare: The repository.
        names: Whole refs, or whole numbers of commits.
        lock: A descriptor that git keeps while it runs, so that nobody else begins meanwhile.

    Returns:
        By each name the commit.

    Raises:
        GitRefError: One of them has no name that git allows.
        GitUnreachableError: Its host does not answer.
        GitRefusedError: The host refuses, or has none of that name.
    """
    wanted = require_refs(names)
    _remove_left_locks(bare)
    arguments = (
        *("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--atomic"),
        *("--force", "--no-auto-maintenance", "--end-of-options", remote.url),
        *(f"+{one}:{_place(one)}" for one in wanted),
    )
    command = remote.command(arguments, bare, _FETCHED_S)
    command = replace(
        command, env={**command.env, "GIT_DIR": str(bare)}, pass_fds=(lock,) if lock >= 0 else ()
    )
    await _ask(remote, command, _FETCHED_S)
    if _count_packs(bare) > _MOST_PACKS:
        await _run_own(bare, "gc", "--quiet", "--prune=2.weeks.ago")
    form = "--format=%(refname)%00%(objectname)%00%(*objectname)"
    rows = (line.split("\0") for line in (await _run_own(bare, "for-each-ref", form, FETCHED)).splitlines())
    known = {name: peeled or number for name, number, peeled in rows}
    return {one: known[_place(one)] for one in wanted}


async def _run_own(bare: Path, *arguments: str) -> str:
    return await run_git(git_command(arguments, bare, extra={**OWN_SETTINGS, "GIT_DIR": str(bare)}))


def _place(name: str) -> str:
    # A branch `a/b` may come where `a` was before.
    return FETCHED + hashlib.sha256(name.encode()).hexdigest()


async def _ask(remote: RemoteHead, command: process.Command, timeout_s: float) -> str:
    try:
        return await run_git(command)
    except (process.ProcessTimeoutError, GitError) as err:
        raise describe_refusal(remote.url, err, timeout_s) from err


def _count_packs(bare: Path) -> int:
    return sum(1 for _ in bare.glob("objects/pack/*.pack"))


def _remove_left_locks(bare: Path) -> None:
    """Remove what a fetch that was killed left; whoever calls this is the only one that fetches."""
    for pattern in _LEFT_LOCKS:
        for path in bare.glob(pattern):
            with suppress(OSError):
                os.unlink(path)
