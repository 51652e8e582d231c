"""Delegating: make an inner host ready, run a verb there, and continue when the connection is lost."""

from __future__ import annotations

import asyncio
import dataclasses
import shlex
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.clients import ssh
from stackyard.clients.ssh.channel import open_channel
from stackyard.operator.delegation.bootstrap import InnerHostRequest, bootstrap
from stackyard.operator.delegation.inner_host import InnerHost, Steps
from stackyard.operator.delegation.protocol import InnerRequest, LostRecordsError
from stackyard.operator.delegation.remote import DelegationLimits, run_order
from stackyard.sources.manifest.model import NodeType

if TYPE_CHECKING:
    from stackyard.base import events
    from stackyard.operator.delegation.archive import Archive
    from stackyard.operator.delegation.store_channel import OfferedStore
    from stackyard.operator.outcome import Phase, RunOutcome, Verb
    from stackyard.operator.request import VerbRequest
    from stackyard.sources.manifest.model import Manifest, Node
    from stackyard.sources.site.load import Site

__all__ = ["Delegated", "DelegationContext", "delegate", "time_for"]

# What a node may take at most: until it answers, until it is configured, and until it can delegate in turn.
_NODE_S = 900.0
_HOST_S = 3000.0
_FACTOR = 1.5
# How often a run may be cut off before that is no accident.
_MOST_LOSSES = 5
# How often to look again whether a host that went away is back.
_AGAIN_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationContext:
    """What delegating needs beside the node itself.

    Attributes:
        site: The site.
        host: The outer host, by its name in the site.
        inner: How to log in to the inner host.
        outer: How to log in to the outer host, where the images are.
        request: What is asked of the inner operator: the subtree as text, and the host by its own name.
        jumps: Keeps the connections to machines on the way.
        archive: The archive to send.
        offered: The store that the run there uses; its own where none is offered.
        patience_s: How long an inner host may be away, for instance because it boots again.
        whole_s: How long the run there may take; counted from its nodes when absent.
        beat_s: How often both sides say that they are there.
        silence_s: How long silence is borne.
    """

    site: Site
    host: str
    inner: ssh.Host
    outer: ssh.Host
    request: VerbRequest
    archive: Archive
    offered: OfferedStore | None = None
    jumps: ssh.Jumps | None = None
    patience_s: float = 600.0
    whole_s: float | None = None
    beat_s: float = 5.0
    silence_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegated:
    """What became of a delegation.

    Attributes:
        outcome: The run on the inner host; depths are counted from there.
        phases: What was done to make the host ready.
    """

    outcome: RunOutcome
    phases: tuple[Phase, ...]


def time_for(subtree: Manifest) -> float:
    """Return how long a run of a subtree may take: its longest way from a child to the last of the leaves."""
    ends: dict[str, float] = {}
    for node in subtree.create_order:
        needed = [*node.depends_on, *([node.parent] if node.parent is not None else [])]
        own = _HOST_S if node.type is NodeType.PVE else _NODE_S
        ends[node.name] = own + max((ends[name] for name in needed), default=0.0)
    return _FACTOR * max(ends.values(), default=0.0) + float(subtree.settings.timeout_buffer)


async def delegate(
    verb: Verb, node: Node, address: str, *, subtree: Manifest, ctx: DelegationContext, emit: events.Emit
) -> Delegated:
    """Make an inner host ready and run a verb there on everything inside of it.

    When the connection is lost the inner run ends by itself; then the verb is run again, and continues from
    what is there. Cancelling stops the inner run as well, as Ctrl-C would.

    Args:
        verb: What to do.
        node: The host, as the manifest has it.
        address: Where it is for its guests.
        subtree: What runs inside of it.
        ctx: What else is needed.
        emit: Takes the events of both sides.

    Raises:
        InnerHostError: It cannot be made ready.
        RemoteRunError: The run there could not begin, or ended with an error.
        SshUnreachableError: It cannot be reached, or did not come back.
        LostRecordsError: The connection was lost again and again.
        DelegationTimeoutError: The run took too long.
    """
    wanted = InnerHostRequest(
        site=ctx.site,
        outer=ctx.host,
        subtree=subtree,
        address=address,
        archive=ctx.archive,
        open_outer=lambda: ssh.connect(ctx.outer, jumps=ctx.jumps),
    )
    steps, redact = Steps(host=node.name, emit=emit), ctx.site.redactor()
    patience = _RetryBudget(ctx.patience_s)
    while True:
        try:
            async with ssh.connect(ctx.inner, jumps=ctx.jumps) as shell:
                inner = InnerHost(name=node.name, shell=shell, redact=redact)
                ready = await bootstrap(inner, wanted, steps)
                patience.renew()
                command = inner.as_root(
                    shlex.join(["exec", ready.program, "inner-run", "--site", ready.site])
                )
                whole_s = ctx.whole_s or time_for(subtree)
                outcome = await _run(inner, command, _order(verb, ctx), whole_s, emit)
                return Delegated(outcome=outcome, phases=tuple(steps.done))
        except (ssh.HostKeyChangedError, ssh.RemoteCommandError):
            raise
        except LostRecordsError as err:
            patience.count_loss(err)
            await patience.wait(err, steps)
        except (ssh.SshUnreachableError, ssh.SshError) as err:
            await patience.wait(err, steps)


async def _run(
    inner: InnerHost, command: str, order: InnerRequest, whole_s: float, emit: events.Emit
) -> RunOutcome:
    limits = DelegationLimits(whole_s=whole_s, silence_s=order.silence_s)
    async with open_channel(inner.shell, command) as channel:
        return await run_order(channel, order, host=inner.name, limits=limits, emit=emit, redact=inner.redact)


def _order(verb: Verb, ctx: DelegationContext) -> InnerRequest:
    # The built-in provider comes with the archive; another one would have to be downloaded there.
    request = dataclasses.replace(ctx.request, site=None, provider="builtin")
    return InnerRequest(
        verb=verb.value,
        request=request.as_json(),
        beat_s=ctx.beat_s,
        silence_s=ctx.silence_s,
        store_key=None if ctx.offered is None else ctx.offered.site_key,
        offered=ctx.offered,
    )


class _RetryBudget:
    """How long to bear with a host that is away, and how often with a run that is cut off."""

    def __init__(self, most_s: float) -> None:
        self._most_s = most_s
        self._since: float | None = None
        self._losses = 0

    def renew(self) -> None:
        """Take note that the host is there."""
        self._since = None

    def count_loss(self, err: LostRecordsError) -> None:
        """Take note that a run was cut off; one that is again and again is not helped by another try."""
        self._losses += 1
        if self._losses >= _MOST_LOSSES:
            raise err

    async def wait(
        self, err: ssh.SshError | ssh.SshUnreachableError | LostRecordsError, steps: Steps
    ) -> None:
        """Wait a moment before the next try, or give up."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
            with steps.step("wait_host", "Waiting for the host to be back") as step:
                step.log(f"{err.summary}: {err.detail}")
        if now - self._since > self._most_s:
            raise err
        # Nothing tells when a machine is back but asking it.
        await asyncio.sleep(_AGAIN_S)
