"""One repository that is served: its copy, brought up to date whenever someone asks for it."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.base.errors import StackyardError
from stackyard.base.process import open_files
from stackyard.clients.git.mirror import Mirror
from stackyard.controller.refusals import Code, RequestRefusedError
from stackyard.controller.repositories.spool import busy
from stackyard.controller.repositories.stored_verdicts import StoredVerdicts

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.clients.git.history import Sift
    from stackyard.clients.git.mirror import MirrorSnapshot

__all__ = ["ServedRepository"]

_SHOWN = 3


class ServedRepository:
    """A repository under a name.

    Args:
        name: What clients call it, without `.git`.
        source: The top of its working tree.
        bare: Where its copy goes.
        sift: Tells files that must not leave the machine.
        slots: How many repositories are looked at in the same moment.
        emit: Told how far its first check is, and what goes wrong with it.
    """

    def __init__(
        self,
        name: str,
        source: Path,
        *,
        bare: Path,
        sift: Sift,
        slots: asyncio.Semaphore,
        emit: events.Emit,
    ) -> None:
        self.name = name
        self.source = source
        self._kept = StoredVerdicts(source)
        self._kept.load()
        self.mirror = Mirror(
            source, bare, sift, verdicts=self._kept.verdicts, on_checked=self._report_progress
        )
        self._slots = slots
        self._began_at: float | None = None
        self._emit = emit
        self._snapshot: MirrorSnapshot | None = None
        self._running: asyncio.Task[MirrorSnapshot] | None = None
        self._next: asyncio.Task[MirrorSnapshot] | None = None
        self._said: set[str] = set()

    @property
    def is_gone(self) -> bool:
        """Whether its owner has removed it."""
        return not (self.source / ".git").exists()

    async def refresh(self) -> MirrorSnapshot:
        """Return its state, with every change that was made before this call.

        However many ask at once, git looks at the repository once for those who asked before it began.

        Raises:
            RequestRefusedError: It is gone, or holds secrets in clear.
        """
        if self.is_gone:
            raise _not_found(self.name)
        if self._next is None:
            self._next = asyncio.create_task(self._refresh(self._running))
            self._next.add_done_callback(_retrieve_exception)
        try:
            snapshot = await asyncio.shield(self._next)
        except StackyardError as err:
            snapshot = self._last(err)
        self._warn(snapshot)
        if snapshot.tainted:
            raise RequestRefusedError(
                403, Code.TOKEN_WRONG, f"'{self.name}' is not served: files of it hold secrets in clear."
            )
        return snapshot

    def current(self) -> MirrorSnapshot:
        """Return the state that was served last, without looking.

        Raises:
            RequestRefusedError: There is none.
        """
        if self._snapshot is None or self._snapshot.tainted:
            raise _not_found(self.name)
        return self._snapshot

    async def close(self) -> None:
        """Stop looking."""
        tasks = {task for task in (self._running, self._next) if task is not None}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=1.0)

    async def _refresh(self, before: asyncio.Task[MirrorSnapshot] | None) -> MirrorSnapshot:
        if before is not None:
            await asyncio.wait({before})
        async with self._slots:
            # Anyone who asks from here on may know of a change that we do not see any more.
            self._running, self._next = self._next, None
            outcome = events.Outcome.FAILED
            try:
                self._snapshot = await self.mirror.refresh()
                outcome = events.Outcome.DONE
            finally:
                self._end_progress(outcome)
                await asyncio.to_thread(self._kept.save)
        return self._snapshot

    # --- How far the first check is; a later one is about a change, and short

    def _report_progress(self, done: int, total: int) -> None:
        self._kept.save_sometimes()
        if self._snapshot is not None:
            return
        if self._began_at is None:
            self._began_at = time.monotonic()
            self._emit(events.StepStarted(step=self._step, title=f"Checking {self.name} for secrets"))
        self._emit(events.StepProgressed(step=self._step, done=done, total=total, unit="contents"))

    def _end_progress(self, outcome: events.Outcome) -> None:
        if self._began_at is not None:
            elapsed_s = round(time.monotonic() - self._began_at, 3)
            self._began_at = None
            self._emit(events.StepFinished(step=self._step, outcome=outcome, detail="", elapsed_s=elapsed_s))

    @property
    def _step(self) -> str:
        return f"check-{self.name}"

    def _last(self, err: StackyardError) -> MirrorSnapshot:
        if self._snapshot is None and open_files.is_shortage(err):
            raise busy() from err
        if self._snapshot is None or self.is_gone:
            self._log_once(f"{self.name} is not served: {err.detail}")
            raise _not_found(self.name) from err
        self._log_once(f"The repository {self.name} is served as it was: {err.detail}")
        return self._snapshot

    def _warn(self, snapshot: MirrorSnapshot) -> None:
        if snapshot.tainted:
            self._log_once(
                f"{self.name} is not served: committed with secrets in clear: {_some(snapshot.tainted)}."
            )
            return
        if snapshot.held_back:
            self._log_once(f"Not served of {self.name}, for their secrets: {_some(snapshot.held_back)}.")
        if snapshot.filtered:
            self._log_once(
                f"Served of {self.name} as committed, for git would have to run a filter on them: "
                f"{_some(snapshot.filtered)}."
            )
        if snapshot.left_out:
            self._log_once(
                f"Not served of {self.name}, for they lead to no commit: {_some(snapshot.left_out)}."
            )

    def _log_once(self, text: str) -> None:
        """Tell something once."""
        if text not in self._said:
            self._said.add(text)
            self._emit(events.LogLine(level=events.LogLevel.WARNING, source="controller", text=text))


def _retrieve_exception(task: asyncio.Task[MirrorSnapshot]) -> None:
    """Take note of how it ended, also where everyone who waited for it is gone."""
    if not task.cancelled():
        task.exception()


def _some(names: tuple[str, ...]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _not_found(name: str) -> RequestRefusedError:
    return RequestRefusedError(404, Code.NOT_FOUND, f"There is no repository '{name}'.")
