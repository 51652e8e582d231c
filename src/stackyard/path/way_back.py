"""The way back of a network change: a timer on the node that restores the old network unless we stop it.

It is set over SSH before anything changes, and renewed for as long as the node can be reached. Once the
change is made and the node answers, it is stopped. If this process is killed, or the node is cut off, it
fires. A node that restarts meanwhile loses its timers: a service restores the old network before it comes up.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shlex
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.base.errors import StackyardError, UnreachableError
from stackyard.clients import proxmox, ssh
from stackyard.clients.proxmox import quote
from stackyard.guard.hypervisor.management import CUTS_MANAGEMENT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from stackyard.clients.ssh.host import Host
    from stackyard.guard import Verdict
    from stackyard.path.run import Run

__all__ = [
    "NetworkRestoredError",
    "NoWayBackError",
    "NodeLostError",
    "ReachedNode",
    "keep_way_back",
    "keep_ways_back",
    "list_cut_nodes",
]

_FILE = "/etc/network/interfaces"
_SAVED = "/etc/network/interfaces.before-stackyard"
_UNIT = "stackyard-way-back"
# How long a node may be out of reach before it puts its old network back.
_PATIENCE_S = 120
_RENEW_S = 20.0
_RETRY_S = 1.0
_COMMAND_S = 20.0
# After its time, a timer needs a moment, and a network comes up.
_GRACE_S = 90.0
_RESTORE = f"mv -f {_SAVED} {_FILE} && rm -f {_FILE}.new"
_SERVICE = f"{_UNIT}.service"
_SERVICE_FILE = f"/etc/systemd/system/{_SERVICE}"
# After what puts pending interfaces in force at boot, and before they come up.
_SERVICE_TEXT = f"""\
[Unit]
Description=Restore the network from before a change that stackyard has not confirmed
ConditionPathExists={_SAVED}
DefaultDependencies=no
After=local-fs.target pvenetcommit.service
Before=network-pre.target networking.service
Wants=network-pre.target

[Service]
Type=oneshot
ExecStart=/bin/sh -c "{_RESTORE}"

[Install]
WantedBy=multi-user.target
"""
_STOP_TIMERS = f"systemctl stop '{_UNIT}-*.timer'"
# Without the saved file, the service does nothing: that it is left behind does no harm.
_REMOVE_SERVICE = f"systemctl --quiet disable {_SERVICE} 2>/dev/null; rm -f {_SERVICE_FILE}"


class NoWayBackError(StackyardError):
    """A network change needs a timer on the node that undoes it, and none can be set; nothing was changed."""

    code = "E-APPLY-NO-WAY-BACK"
    summary = "A network change would have no way back"
    default_remedy = (
        "Let stackyard log in to the node over SSH as root (or as a user with sudo); `stackyard preflight -H "
        "NODE` tests the login. A stack has the login in the block `ssh` of its provider. Then repeat."
    )


class NetworkRestoredError(StackyardError):
    """A node did not answer after a change of its network, and has its old network again."""

    code = "E-APPLY-NETWORK-RESTORED"
    summary = "A change of the network cut a node off, and was undone"
    default_remedy = "Correct the interfaces of the node in the input, and apply again."


class NodeLostError(StackyardError):
    """A node does not answer after a change of its network, although its timer should have undone that."""

    code = "E-APPLY-NODE-LOST"
    summary = "A node does not answer after a change of its network"
    default_remedy = (
        f"Look at the node on its console: the network from before the change is in {_SAVED}, or already in "
        f"{_FILE} if the timer has put it back."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachedNode:
    """A node whose network changes, and how it is reached.

    Attributes:
        name: What Proxmox calls it.
        host: How to log in to it.
        client: Speaks to its cluster.
    """

    name: str
    host: Host
    client: proxmox.Client


def list_cut_nodes(verdict: Verdict) -> list[str]:
    """Return the nodes whose management address a plan may cut off, and the user has named."""
    found = (one.permit for one in verdict.permitted if one.kind is CUTS_MANAGEMENT)
    return sorted({permit.name for permit in found if permit})


@contextlib.asynccontextmanager
async def keep_way_back(run: Run, verdict: Verdict) -> AsyncIterator[None]:
    """Let the nodes whose management address a plan may cut off undo the changes of the block.

    Raises:
        NoWayBackError: That cannot be had on a node; the block is not entered.
        NetworkRestoredError: A node was cut off, and has its old network again.
        NodeLostError: A node does not answer any more.
    """
    nodes = [
        ReachedNode(name=node, host=_login(run, node), client=run.client) for node in list_cut_nodes(verdict)
    ]
    async with keep_ways_back(nodes, run.emit):
        yield


@contextlib.asynccontextmanager
async def keep_ways_back(nodes: Sequence[ReachedNode], emit: events.Emit) -> AsyncIterator[None]:
    """Let nodes undo the changes of the block by themselves.

    Args:
        nodes: The nodes whose network changes.
        emit: Takes the events.

    Raises:
        NoWayBackError: That cannot be had on a node; the block is not entered.
        NetworkRestoredError: A node was cut off, and has its old network again.
        NodeLostError: A node does not answer any more.
    """
    if not nodes:
        yield
        return
    ways = [_WayBack(reached=one, emit=emit) for one in nodes]
    failures = [
        one for one in await asyncio.gather(*(way.set() for way in ways), return_exceptions=True) if one
    ]
    if failures:
        # A timer that stayed would undo what others change meanwhile.
        await asyncio.gather(*(way.undo() for way in ways))
        raise failures[0]
    renewing = [asyncio.create_task(way.renew()) for way in ways]
    try:
        yield
    finally:
        for task in renewing:
            task.cancel()
        await asyncio.gather(*renewing, return_exceptions=True)
        ended = await asyncio.gather(*(way.end() for way in ways), return_exceptions=True)
        for failed in ended:
            if failed is not None:
                raise failed


def _login(run: Run, node: str) -> Host:
    access = run.resolved.ssh
    host = None if access is None else access.logins.get(node)
    if host is None:
        raise NoWayBackError(
            f"The site does not say how to log in to {node}.",
            remedy=f"Describe the node in nodes/{node}.yaml, with its address for SSH.",
        )
    return host


@dataclass(slots=True, kw_only=True)
class _WayBack:
    """The timer of one node."""

    reached: ReachedNode
    emit: events.Emit
    # The timers that may be set, the newest last.
    units: list[str] = field(default_factory=list)
    # What the saved network is called once the new one stays.
    kept: str = field(default_factory=lambda: f"{_SAVED}.{secrets.token_hex(4)}")

    async def set(self) -> None:
        """Save the network of the node, and set the timer; a timer that a killed run left is stopped.

        Raises:
            NoWayBackError: It cannot be set.
        """
        commands = (
            "command -v systemd-run",
            "command -v ifreload",
            _STOP_TIMERS,
            # Whole or not at all, whenever the node loses its power.
            f"cp {_FILE} {_SAVED}.part",
            f"mv -f {_SAVED}.part {_SAVED}",
            f"echo {shlex.quote(_SERVICE_TEXT)} >{_SERVICE_FILE}",
            f"systemctl --quiet enable {_SERVICE}",
            "sync",
            self._arm(),
        )
        try:
            await self._run_at_node(" && ".join(commands))
        except (ssh.SshError, UnreachableError) as err:
            raise NoWayBackError(f"On {self.reached.name}, no timer can be set: {err.detail}") from err
        self._say(
            f"{self.reached.name} puts its old network back if it is out of reach for {_PATIENCE_S} seconds."
        )

    async def undo(self) -> None:
        """Stop the timer of a change that is not made, where the node can be reached."""
        with contextlib.suppress(ssh.SshError, UnreachableError):
            await self._run_at_node(f"{_STOP_TIMERS}; rm -f {_SAVED}; {_REMOVE_SERVICE}")

    async def renew(self) -> None:
        """Set the timer again for as long as the node can be reached."""
        while True:
            await asyncio.sleep(_RENEW_S)
            old = " ".join(f"{unit}.timer" for unit in self.units)
            script = f"test -e {_SAVED} && {self._arm()} && {{ systemctl stop {old} || true; }}"
            # Who cannot be reached keeps the timer that it has. One that has fired stays fired.
            with contextlib.suppress(ssh.SshError, UnreachableError):
                await self._run_at_node(script)
                self.units = self.units[-1:]

    async def end(self) -> None:
        """Stop the timer once the node answers; what the node did meanwhile is reported.

        Raises:
            NetworkRestoredError: The timer has fired.
            NodeLostError: The node does not answer.
        """
        until = time.monotonic() + _PATIENCE_S + _GRACE_S
        told = False
        while True:
            try:
                is_kept = await self._stop()
                break
            except (ssh.SshError, UnreachableError, proxmox.ProxmoxError) as err:
                if time.monotonic() > until:
                    raise NodeLostError(f"{self.reached.name} does not answer: {err.detail}") from err
                if not told:
                    told = True
                    self._say(
                        f"{self.reached.name} does not answer; its timer puts the old network back.",
                        is_bad=True,
                    )
                await asyncio.sleep(_RETRY_S)
        if not is_kept:
            raise NetworkRestoredError(
                f"{self.reached.name} was out of reach for {_PATIENCE_S} seconds after its network had "
                "changed, or was restarted. It has its old network again; the state may say otherwise until "
                "the next apply."
            )

    async def _stop(self) -> bool:
        """Return whether the new network stays; the old one is back where the saved file is gone.

        The saved file gets another name first: if the answer to that is lost, the next try finds it.
        """
        asked = await self._run_at_node(
            f"test -e {_SAVED} && echo kept || test -e {self.kept} && echo kept || echo restored"
        )
        if "restored" in asked:
            with contextlib.suppress(ssh.SshError, UnreachableError):
                await self._run_at_node(_REMOVE_SERVICE)
            return False
        self.reached.client.expire_reads()
        await self.reached.client.get(f"/nodes/{quote(self.reached.name)}/network")
        said = await self._run_at_node(
            f"{_STOP_TIMERS}; test -e {_SAVED} && mv -f {_SAVED} {self.kept}; {_REMOVE_SERVICE}; "
            f"test -e {self.kept} && echo kept || echo restored"
        )
        with contextlib.suppress(ssh.SshError, UnreachableError):
            await self._run_at_node(f"rm -f {self.kept}")
        return "kept" in said

    def _arm(self) -> str:
        """Return the command that sets a further timer."""
        self.units.append(f"{_UNIT}-{secrets.token_hex(4)}")
        options = f"--quiet --collect --unit={self.units[-1]} --on-active={_PATIENCE_S}"
        script = shlex.quote(f"{_RESTORE} && ifreload -a; {_REMOVE_SERVICE}")
        return f"systemd-run {options} --timer-property=AccuracySec=1s /bin/sh -c {script}"

    async def _run_at_node(self, script: str) -> str:
        """Run commands as root, over a connection of their own: one from before may be dead.

        Raises:
            SshError: The node does not answer, or refuses.
        """
        host = replace(self.reached.host, connect_s=min(self.reached.host.connect_s, _COMMAND_S))
        async with ssh.connect(host) as shell:
            # OpenSSH's settings may name another user than the site.
            sudo = "" if shell.host.username == "root" else "sudo -n "
            return await shell.run(f"{sudo}/bin/sh -c {shlex.quote(script)}", timeout_s=_COMMAND_S)

    def _say(self, text: str, *, is_bad: bool = False) -> None:
        level = events.LogLevel.WARNING if is_bad else events.LogLevel.INFO
        self.emit(events.LogLine(level=level, source="network", text=text))
