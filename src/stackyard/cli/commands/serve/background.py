"""`stackyard serve start|stop|status`: the controller in the background."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import ExitStatus
from stackyard.cli.command import Command
from stackyard.cli.commands.serve import ready_result
from stackyard.cli.commands.serve.options import ServeOptions, serve_options
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["start", "status", "stop"]

_port_option = click.option(
    "--port",
    "-p",
    type=click.IntRange(1, 65535),
    default=44443,
    show_default=True,
    help="The port of the controller.",
)


@click.command("start", cls=Command)
@serve_options
@click.option("--log", metavar="FILE", help="The log file (default: in the state folder of the user).")
@pass_session
def start(session: Session, /, log: str | None, **given: Any) -> Result:
    """Start the controller in the background; it is ready when the command returns.

    A controller that already runs on the port and answers keeps running. One that does not answer is
    replaced.

    \b
    stackyard serve start --repos
    stackyard serve status
    stackyard serve stop
    """  # noqa: D301 - click reads the control character
    from stackyard.cli.commands.serve import launch  # lazy: asyncio, only when this verb runs

    options = ServeOptions(**given)
    path = Path(log) if log is not None else launch.default_log(options.port)
    place = launch.place_of(options.port)
    record = place.read()
    if record is not None and launch.healthy(record):
        return ready_result(record.ready, how="already runs", pid=record.pid, log=str(path))
    if record is not None:
        session.run(place.stop(record))
    ready = session.run(launch.launch(options, path, session.emit))
    started = launch.place_of(int(ready["port"])).read()
    return ready_result(ready, pid=None if started is None else started.pid, log=str(path))


@click.command("stop", cls=Command)
@_port_option
@pass_session
def stop(session: Session, port: int) -> Result:
    """Stop the controller and wait until it has stopped.

    If none runs, that is not an error.
    """
    from stackyard.cli.commands.serve import launch  # lazy: asyncio, only when this verb runs

    place = launch.place_of(port)
    record = place.read()
    if record is not None:
        session.run(place.stop(record))
    text = "No controller is running." if record is None else f"Stopped the controller on port {port}."
    document = {"stopped": record is not None, "pid": None if record is None else record.pid}
    return Result(document=document, show=lambda writer: writer.line(text))


@click.command("status", cls=Command)
@_port_option
def status(port: int) -> Result:
    """Show whether the controller runs and answers.

    Exit status: 0 it runs and answers, 1 it does not run, 2 it runs but does not answer.
    """
    from stackyard.cli.commands.serve import launch  # lazy: asyncio, only when this verb runs

    record = launch.place_of(port).read()
    if record is None:
        document: dict[str, Any] = {"running": False, "pid": None, "healthy": False}
        text = f"No controller is running on port {port}."
        return Result(document=document, show=lambda writer: writer.line(text), status=ExitStatus.FAILED)
    is_healthy = launch.healthy(record)
    document = {"running": True, "pid": record.pid, "healthy": is_healthy, **record.ready}
    word = "runs and answers" if is_healthy else "runs and does NOT answer"

    def show(writer: TextWriter) -> None:
        writer.line(f"The controller {word}: {record.ready['url']} (process {record.pid})")

    # Two is what such a controller says when it is unwell; nothing here has changes.
    return Result(document=document, show=show, status=ExitStatus.DONE if is_healthy else ExitStatus.CHANGES)
