"""Logging in to a guest that comes up: tried at once, then with growing pauses, until it lets us in."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING

from stackyard.base.backoff import Backoff
from stackyard.base.errors import UnreachableError
from stackyard.clients import ssh

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from stackyard.operator.guests.context import GuestContext

__all__ = ["GuestSilentError", "NoKeyError", "log_in", "sudo"]

_BACKOFF = Backoff(0.1, 2.0, growth=1.5)


class GuestSilentError(UnreachableError):
    """A guest runs and has an address, and did not let us in over SSH in its time."""

    code = "E-GUEST-SILENT"
    summary = "A guest cannot be logged in to"
    default_remedy = (
        "Look at its console. Where its network is not one that this machine is on, say `ssh_jump: true` in "
        "the file of its node."
    )


class NoKeyError(UnreachableError):
    """There is no private key and no SSH agent to log in to guests with."""

    code = "E-GUEST-NO-KEY"
    summary = "There is no key to log in to guests with"
    default_remedy = (
        "Start an SSH agent, or name a key without a passphrase as `ssh_key_file` in site.yaml; its public "
        "half belongs to `ssh_keys` in secrets.yaml."
    )


@contextlib.asynccontextmanager
async def log_in(hosts: Sequence[ssh.Host], ctx: GuestContext) -> AsyncIterator[ssh.Shell]:
    """Log in to a guest in the first way that works, for the length of the block.

    Args:
        hosts: The ways to log in, the likeliest first.
        ctx: Whose patience counts.

    Raises:
        SshConfigError: The settings of OpenSSH cannot be read.
        HostKeyChangedError: What answers is not the guest: its key is another one.
        NoKeyError: There is nothing to log in with.
        GuestSilentError: It did not let us in in time; the error says what was tried last.
    """
    hosts = [ssh.resolve_login(host) for host in hosts]
    if not (hosts[0].key_files or hosts[0].agent_socket):
        raise NoKeyError(f"There is neither a key file nor an agent to log in to {hosts[0].address} with.")
    async with contextlib.AsyncExitStack() as stack:
        yield await _first_that_works(hosts, ctx, stack)


async def _first_that_works(
    hosts: Sequence[ssh.Host], ctx: GuestContext, stack: contextlib.AsyncExitStack
) -> ssh.Shell:
    began_s, refused_s = time.monotonic(), 0.0
    for pause_s in _BACKOFF:
        failures: list[ssh.SshUnreachableError] = []
        for host in hosts:
            try:
                return await stack.enter_async_context(ssh.connect(host, jumps=ctx.jumps))
            except ssh.HostKeyChangedError:
                raise
            except ssh.SshUnreachableError as err:
                failures.append(err)
        now_s = time.monotonic()
        if any(isinstance(err, ssh.LoginRefusedError) for err in failures):
            refused_s = refused_s or now_s
        is_refused = bool(refused_s) and now_s - refused_s >= ctx.patience.refused_s
        if is_refused or now_s - began_s >= ctx.patience.ssh_s:
            said = " ".join(dict.fromkeys(err.detail for err in failures))
            raise GuestSilentError(f"After {now_s - began_s:.0f} s: {said}") from failures[-1]
        # Nothing tells us when the SSH server of a guest is there.
        await asyncio.sleep(pause_s)
    raise AssertionError("pauses do not end")


def sudo(shell: ssh.Shell) -> bool:
    """Return whether work as root needs sudo."""
    return shell.host.username != "root"
