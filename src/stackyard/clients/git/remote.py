"""Asking a repository elsewhere at which commit a branch or tag is, with exactly the given credentials."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stackyard.base import process
from stackyard.base.errors import StackyardError, UnreachableError
from stackyard.base.visible import on_one_line
from stackyard.clients.git.run import OWN_SETTINGS, GitError, add_settings, git_command, run_git

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["GitRefusedError", "GitUnreachableError", "RemoteAccess", "describe_refusal", "read_remote_refs"]

_ASKED_S = 30.0
_CONNECT_S = 10
# What git, curl and OpenSSH say when nobody answers, in the language that git is run in.
_AWAY = re.compile(
    r"Could not resolve host|Connection (?:refused|timed out|reset|closed)|No route to host|Failed to connect"
    r"|Couldn't connect|Network is unreachable|Operation timed out|Temporary failure in name resolution"
    r"|returned error: (?:429|50[0234])|Empty reply from server|Connection was reset|kex_exchange"
)
# git says that it could not ask, where a host has refused the token.
_WANTS_LOGIN = re.compile(r"could not read (?:Username|Password)|Authentication failed")
_LINE = re.compile(r"(?P<commit>[0-9a-f]{40,64})\t(?P<name>\S+)")


class GitUnreachableError(UnreachableError):
    """The host of a Git repository does not answer."""

    code = "E-GIT-UNREACHABLE"
    summary = "The Git host cannot be reached"
    default_remedy = "Check the address and the network, then run the command again."


class GitRefusedError(GitError):
    """A Git host answers, and the repository does not open with the given access."""

    code = "E-GIT-REFUSED"
    summary = "The Git repository does not open"
    default_remedy = "Check the address, the deploy key or token, and the host keys or the authority."


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteAccess:
    """What opens a repository, and nothing of this machine's user.

    Attributes:
        key_file: The private key for `ssh://` addresses, which only its owner may read.
        known_hosts_file: The host keys.
        authority_file: The authority of the certificate for `https://` addresses; None for the system's.
        authorization: The header `Authorization` for `https://` addresses; empty sends none.
    """

    key_file: Path | None = None
    known_hosts_file: Path | None = None
    authority_file: Path | None = None
    authorization: str = field(default="", repr=False)


async def read_remote_refs(
    url: str, folder: Path, access: RemoteAccess, names: tuple[str, ...] = ()
) -> dict[str, str]:
    """Return the refs of a repository with their commits; a tag that is an object has that of its commit.

    Args:
        url: Its address.
        folder: A folder that is in no repository.
        access: What opens it.
        names: The refs, such as `refs/heads/main`; all when absent.

    Raises:
        GitUnreachableError: Its host does not answer.
        GitRefusedError: The host refuses, or there is no such repository; with the words of git.
    """
    command = git_command(
        ("ls-remote", "--", url, *names, *(f"{name}^{{}}" for name in names)),
        folder,
        extra={**OWN_SETTINGS, "GIT_ALLOW_PROTOCOL": "ssh:https:http", **_ssh(access)},
        timeout_s=_ASKED_S,
    )
    command = replace(command, env=add_settings(command.env, _http(access)))
    try:
        said = await run_git(command)
    except (process.ProcessTimeoutError, GitError) as err:
        raise describe_refusal(url, err, _ASKED_S) from err
    found = {match["name"]: match["commit"] for line in said.splitlines() if (match := _LINE.fullmatch(line))}
    plain = {name: commit for name, commit in found.items() if not name.endswith("^{}")}
    return {name: found.get(f"{name}^{{}}", commit) for name, commit in plain.items()}


def describe_refusal(
    url: str, err: StackyardError, timeout_s: float
) -> GitUnreachableError | GitRefusedError:
    """Return what to say of a host that did not give what git asked it for."""
    if isinstance(err, process.ProcessTimeoutError):
        return GitUnreachableError(f"{on_one_line(url)} did not answer in {timeout_s:.0f} s.")
    if _AWAY.search(err.detail):
        return GitUnreachableError(f"{on_one_line(url)} cannot be reached: {err.detail}")
    hint = " The host wants other credentials." if _WANTS_LOGIN.search(err.detail) else ""
    return GitRefusedError(f"{on_one_line(url)} does not open.{hint}\n{err.detail}")


def _ssh(access: RemoteAccess) -> dict[str, str]:
    options = [
        "IdentitiesOnly=yes",
        "IdentityAgent=none",
        "BatchMode=yes",
        f"ConnectTimeout={_CONNECT_S}",
        "StrictHostKeyChecking=yes",
        f"UserKnownHostsFile={access.known_hosts_file or os.devnull}",
        f"GlobalKnownHostsFile={os.devnull}",
        f"IdentityFile={access.key_file or os.devnull}",
    ]
    words = ("ssh", "-F", os.devnull, *(part for option in options for part in ("-o", option)))
    return {"GIT_SSH_COMMAND": shlex.join(words)}


def _http(access: RemoteAccess) -> dict[str, str]:
    """Return settings, which git takes from its environment: everyone can read arguments."""
    found = {}
    if access.authorization:
        found["http.extraHeader"] = f"Authorization: {access.authorization}"
    if access.authority_file is not None:
        found["http.sslCAInfo"] = str(access.authority_file)
    return found
