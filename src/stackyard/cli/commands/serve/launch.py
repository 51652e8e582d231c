"""Running a controller in this process, and starting one in the background."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from stackyard.base import directories, events, process
from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.errors import StackyardError
from stackyard.cli.background import Background
from stackyard.cli.commands.lab.relay import parse_error
from stackyard.cli.lazy_module import pause_garbage_collection

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping
    from pathlib import Path

    from stackyard.base.serving import Handler
    from stackyard.cli.background import ServerRecord
    from stackyard.cli.commands.serve.options import ServeOptions
    from stackyard.controller import RunningController

__all__ = ["healthy", "launch", "place_of", "serve"]

# Far more than it takes: this only ends a start that hangs.
_START_TIMEOUT_S = 60.0
# The first check of large repositories takes minutes; it says how far it is.
_CHECK_TIMEOUT_S = 3600.0
# A file says nothing when it grows.
_LOOK_EVERY_S = 0.2


def place_of(port: int) -> Background:
    """Return the place of the controller on a port."""
    return Background(directories.state_folder() / "controllers" / str(port))


def default_log(port: int) -> Path:
    """Return where the log of a controller in the background goes."""
    return directories.state_folder() / "controllers" / f"controller-{port}.log"


def healthy(record: ServerRecord) -> bool:
    """Return whether a controller answers, and is the one that was started."""
    from stackyard.controller.guest import SpecSource, is_healthy  # lazy: ssl, only when one runs

    ready = record.ready
    place = SpecSource(
        server=str(ready["url"]), identity="-", fingerprint=None, pin=ready["pin"], timeout_s=5.0
    )
    return is_healthy(place)


async def serve(
    options: ServeOptions, emit: events.Emit, on_ready: Callable[[Mapping[str, Any]], None]
) -> None:
    """Run a controller in this process until the task is cancelled; SIGHUP makes it read everything again.

    Raises:
        StackyardError: It cannot be started.
    """
    with pause_garbage_collection():
        from stackyard.controller.unit import notify_ready  # lazy: a server, only when it runs

    async with _gitops(options, emit) as gitops, _controller(options, gitops, emit) as running:
        place = place_of(running.port)
        place.claim(running.document())
        try:
            with _reload_on_hangup(running, emit):
                on_ready(running.document())
                notify_ready()
                await asyncio.Event().wait()
        finally:
            place.withdraw()


@contextlib.asynccontextmanager
async def _controller(
    options: ServeOptions, gitops: Handler | None, emit: events.Emit
) -> AsyncIterator[RunningController]:
    with pause_garbage_collection():
        from stackyard.controller import controller  # lazy: a server, only when it runs

    chosen = dataclasses.replace(options.controller_options(), gitops=gitops)
    async with controller(chosen, emit=emit) as running:
        yield running


@contextlib.asynccontextmanager
async def _gitops(options: ServeOptions, emit: events.Emit) -> AsyncIterator[Handler | None]:
    """Give what answers webhooks, with its workers, where it is wanted."""
    if not options.gitops:
        yield None
        return
    from stackyard.cli.runs.gitops_serve import gitops_of_site  # lazy: only where it is wanted

    async with gitops_of_site(options.site_folder(), emit) as handler:
        yield handler


@contextlib.contextmanager
def _reload_on_hangup(running: RunningController, emit: events.Emit) -> Iterator[None]:
    """Make SIGHUP read everything again, where it would end us otherwise."""
    loop, wanted = asyncio.get_running_loop(), asyncio.Event()

    async def reload() -> None:
        while True:
            await wanted.wait()
            wanted.clear()
            try:
                await running.reload()
                level, text = events.LogLevel.INFO, "Everything was read again."
            except StackyardError as err:
                level, text = events.LogLevel.ERROR, f"Nothing was read again: {err.detail}"
            except Exception as err:
                # Anyone who revokes something later has to be heard, whatever went wrong this time.
                level, text = events.LogLevel.ERROR, f"Nothing was read again: {type(err).__name__}"
            emit(events.LogLine(level=level, source="controller", text=text))

    task = loop.create_task(reload())
    loop.add_signal_handler(signal.SIGHUP, wanted.set)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)
        task.cancel()


async def launch(options: ServeOptions, log: Path, emit: events.Emit = events.ignore) -> Mapping[str, Any]:
    """Start a controller in the background; return what it says when it is ready.

    Args:
        options: How it is to run.
        log: Where it writes what happens.
        emit: Told every line of the log until it is ready.

    Raises:
        StackyardError: It does not start; the error is the one that it ended with.
    """
    argv = (sys.executable, "-P", "-m", "stackyard", "--json", "serve", "--chdir", "/", *options.arguments())
    # It is this same program, for the same user.
    env = {**os.environ, **options.environment()}
    is_checked = options.repos or options.repos_dir is not None
    command = process.Command(
        argv=argv, env=env, timeout_s=_CHECK_TIMEOUT_S if is_checked else _START_TIMEOUT_S
    )
    directories.ensure_private(log.parent)
    try:
        async with _relay_log(log, emit):
            started = await process.start_detached(command, log=log, is_ready=_is_ready)
    except process.ProcessFailedError as err:
        import stackyard.base.serving.certificate  # lazy: the errors that it may have ended with
        import stackyard.controller.service  # lazy: as above
        import stackyard.state.service  # noqa: F401  # lazy: as above

        raise parse_error(err.stdout) or err from err
    ready: Mapping[str, Any] = parse_json(started.line)
    return ready


@contextlib.asynccontextmanager
async def _relay_log(log: Path, emit: events.Emit) -> AsyncIterator[None]:
    """Pass on the lines of a log as they come, for the length of the block."""
    relay = _LogRelay(log, emit)
    task = asyncio.create_task(relay.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
        # What came since the last look; a short check may be all of it.
        relay.look()


class _LogRelay:
    """Passes on what is written to a log from now on."""

    def __init__(self, log: Path, emit: events.Emit) -> None:
        self._log = log
        self._emit = emit
        # Still the log of an earlier start.
        self._seen = _stat_log(log)
        self._position = 0

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            self.look()

    def look(self) -> None:
        """Pass on the lines that are new."""
        if (now := _stat_log(self._log)) == self._seen:
            return
        self._seen = now
        try:
            with self._log.open("rb") as stream:
                stream.seek(self._position)
                whole, end, _ = stream.read().rpartition(b"\n")
        except OSError:
            return
        self._position += len(whole) + len(end)
        for line in whole.decode(errors="replace").splitlines():
            self._emit(events.LogLine(level=events.LogLevel.INFO, source="controller", text=line))


def _stat_log(log: Path) -> tuple[int, int] | None:
    """Return what differs whenever something was written to a log."""
    try:
        found = log.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _is_ready(line: str) -> bool:
    try:
        return "url" in parse_json(line)
    except JsonError:
        return False
