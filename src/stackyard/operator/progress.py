"""How far each node is, kept while a run continues, and written down for the next run."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from typing import TYPE_CHECKING, Any

from stackyard.base import events
from stackyard.base.diagnostics import in_full
from stackyard.base.errors import StackyardError
from stackyard.operator.outcome import NodeOutcome, NodeStatus, Phase, PhaseStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["PhaseFailedError", "Tracker"]

# A thousand nodes change at once: what is written down is at most this old.
_WRITE_EVERY_S = 0.25


class PhaseFailedError(StackyardError):
    """A phase of a node ended as failed, and said why."""

    code = "E-OPERATOR-PHASE"
    summary = "A phase of a node failed"
    default_remedy = "Correct the cause and run the command again: it continues with the existing guests."


class Tracker:
    """The outcomes of a run so far.

    Args:
        nodes: What is known at the beginning.
        save: Writes down what is known; called soon after changes, and by `flush` at once.
        emit: Takes the events.
    """

    def __init__(
        self,
        nodes: Iterable[NodeOutcome],
        save: Callable[[tuple[NodeOutcome, ...]], None],
        emit: events.Emit = events.ignore,
    ) -> None:
        self._nodes = {node.name: node for node in nodes}
        self._save = save
        self._emit = emit
        self._timer: asyncio.TimerHandle | None = None
        self.phases: list[Phase] = []

    def __getitem__(self, name: str) -> NodeOutcome:
        return self._nodes[name]

    def __contains__(self, name: object) -> bool:
        return name in self._nodes

    @property
    def nodes(self) -> tuple[NodeOutcome, ...]:
        """Every node, as far as it is."""
        return tuple(self._nodes.values())

    def change(self, name: str, **values: Any) -> None:
        """Take note of something about a node."""
        self._nodes[name] = dataclasses.replace(self._nodes[name], **values)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_WRITE_EVERY_S, self.flush)

    def put(self, node: NodeOutcome) -> None:
        """Take what someone else says of a node; phases of before stay."""
        known = self._nodes.get(node.name)
        phases = node.phases if known is None else (*known.phases, *node.phases)
        self._nodes[node.name] = node
        self.change(node.name, phases=phases)

    def add(self, name: str, *phases: Phase) -> None:
        """Take note of phases of a node.

        Raises:
            PhaseFailedError: One of them failed.
        """
        self.change(name, phases=(*self._nodes[name].phases, *phases))
        for phase in phases:
            if phase.status is PhaseStatus.FAILED:
                raise PhaseFailedError(f"{phase.name}: {phase.detail or 'it failed'}")

    @contextlib.contextmanager
    def phase(self, name: str, phase: str, title: str) -> Iterator[None]:
        """Time a phase of a node, and take note of how it ends."""
        began_s = time.monotonic()
        status, detail = PhaseStatus.FAILED, ""
        try:
            with events.step(self._emit, f"{phase} {name}", title):
                yield
            status = PhaseStatus.PASSED
        except StackyardError as err:
            detail = in_full(err)
            raise
        except asyncio.CancelledError:
            detail = "It was stopped."
            raise
        finally:
            took_s = time.monotonic() - began_s
            ended = Phase(name=phase, status=status, took_s=took_s, detail=detail)
            self.change(name, phases=(*self._nodes[name].phases, ended))

    @contextlib.contextmanager
    def time_all(self, phase: str) -> Iterator[None]:
        """Time something that is done for all nodes together."""
        began_s = time.monotonic()
        status, detail = PhaseStatus.FAILED, ""
        try:
            yield
            status = PhaseStatus.PASSED
        except StackyardError as err:
            detail = in_full(err)
            raise
        finally:
            took_s = time.monotonic() - began_s
            self.phases.append(Phase(name=phase, status=status, took_s=took_s, detail=detail))

    def fail(self, name: str, error: str, *, cause: str | None = None) -> None:
        """Take note that a node failed; its id and address stay known."""
        self.change(name, status=NodeStatus.FAILED, error=error, cause=cause)

    def skip(self, name: str, error: str, *, cause: str | None) -> None:
        """Take note that a node was not begun or was skipped; one that is there stays as it is."""
        begun = (NodeStatus.CREATING, NodeStatus.STARTED, NodeStatus.REACHED, NodeStatus.CONFIGURED)
        known = self._nodes[name].status
        self.change(name, status=known if known in begun else NodeStatus.SKIPPED, error=error, cause=cause)

    def flush(self) -> None:
        """Write down what is known, now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._save(self.nodes)
