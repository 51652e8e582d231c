"""`stackyard serve`: the controller, in the foreground; its subcommands run it in the background."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import InterruptedRunError, UsageError
from stackyard.cli.command import Group, LazyCommand
from stackyard.cli.commands.serve.options import ServeOptions, serve_options
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["ready_result", "serve"]

_LATER = {
    "new-key": LazyCommand(
        module="stackyard.cli.commands.serve.new_key",
        name="new_key",
        help="Forget the private key of the controller; its next start creates another one.",
    ),
    "start": LazyCommand(
        module="stackyard.cli.commands.serve.background",
        name="start",
        help="Start the controller in the background; it is ready when the command returns.",
    ),
    "status": LazyCommand(
        module="stackyard.cli.commands.serve.background",
        name="status",
        help="Show whether the controller runs and answers.",
    ),
    "stop": LazyCommand(
        module="stackyard.cli.commands.serve.background",
        name="stop",
        help="Stop the controller and wait until it has stopped.",
    ),
    "token": LazyCommand(
        module="stackyard.cli.commands.serve.token",
        name="token",
        help="Issue, list, revoke and rotate the signed tokens of a site.",
    ),
    "unit": LazyCommand(
        module="stackyard.cli.commands.serve.unit",
        name="unit",
        help="Print a systemd unit that runs the controller.",
    ),
}


class _ServeGroup(Group):
    """A group that does something of its own when no verb follows."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, later=_LATER, invoke_without_command=True, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb; without one, the controller."""
        return click.Group.invoke(self, ctx)


@click.group("serve", cls=_ServeGroup)
@serve_options
@pass_session
def serve(session: Session, /, **given: Any) -> Result | None:
    """Serve the specs of the site, git repositories and states to guests, over HTTPS.

    Without a subcommand, it stays in the foreground, reports when it is ready, and runs until Ctrl-C.

    \b
    stackyard serve                                  port 44443, with a generated certificate
    stackyard serve --port 8443 --bind 127.0.0.1     another port and address
    stackyard serve --cert cert.pem --key key.pem    with your own certificate
    stackyard serve --repos                          with the git repositories beside the site
    stackyard serve --repos --json                   one line of JSON when ready: url, port, fingerprint,
                                                     pin, specs, repo_token, repos
    stackyard serve start                            in the background

    Guests recognise the controller by the key of its certificate (`pin`), which is kept with the site and
    passed to them by cloud-init. SIGHUP reloads the site, secrets, tokens, certificate and repositories
    without closing connections; SIGTERM stops the controller within two seconds.
    """  # noqa: D301 - click reads the control character
    ctx = click.get_current_context()
    if ctx.invoked_subcommand is not None:
        _refuse_lost_options(ctx)
        return None
    from stackyard.cli.commands.serve.launch import serve as run  # lazy: asyncio, only when this verb runs

    try:
        session.run(
            run(ServeOptions(**given), session.emit, lambda ready: session.publish(ready_result(ready)))
        )
    except InterruptedRunError as stopped:
        return Result(document={"stopped": stopped.detail})
    return Result(document={"stopped": "by itself"})


def _refuse_lost_options(ctx: click.Context) -> None:
    """Refuse options before a verb: they would be the foreground's, and silently have no effect."""
    source = click.core.ParameterSource.COMMANDLINE
    given = [name for name in ctx.params if ctx.get_parameter_source(name) is source]
    if given:
        verb = ctx.invoked_subcommand
        raise UsageError(
            f"--{given[0].replace('_', '-')} goes behind the verb: `stackyard serve {verb} ...`."
        )


def ready_result(ready: Mapping[str, Any], *, how: str = "is ready", **more: Any) -> Result:
    """Return the result that shows how to reach a controller."""
    document = {**ready, **more}
    return Result(document=document, show=lambda writer: _show(writer, document, how))


def _show(writer: TextWriter, document: Mapping[str, Any], how: str) -> None:
    writer.line(f"The controller {how}: {document['url']}", style="green")
    names = ("fingerprint", "pin", "repo_token", "pid", "log")
    rows = {name: str(document[name]) for name in names if document.get(name) is not None}
    for name in ("specs", "repos"):
        if name in document:
            rows[name] = ", ".join(document[name]) or "none"
    for name, value in rows.items():
        writer.line(f"  {name:<12} {value}")
    writer.line("`stackyard serve stop` stops it." if "log" in document else "Ctrl-C stops it.")
