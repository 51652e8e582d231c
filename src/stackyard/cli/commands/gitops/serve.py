"""`stackyard gitops serve`: the control machine, which plans and applies by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import InterruptedRunError
from stackyard.cli.command import Command
from stackyard.cli.commands.gitops.options import forge_options
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["serve"]


@click.command("serve", cls=Command)
@forge_options
@click.option("--bind", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="The address.")
@click.option(
    "--port",
    "-p",
    type=click.IntRange(0, 65535),
    default=44444,
    show_default=True,
    help="The port; 0 for any free one.",
)
@click.option("--cert", metavar="FILE", help="The certificate to serve TLS with; without one, plain HTTP.")
@click.option("--key", metavar="FILE", help="The private key of the certificate.")
@click.option(
    "--webhook-url",
    metavar="URL",
    help="Where the forge reaches this server: https://control.example.org/gitops/webhook. The webhook of "
    "the repository is set up to lead there.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=2,
    show_default=True,
    metavar="N",
    help="How many pull requests to work on at the same time.",
)
@click.option(
    "--reconcile",
    type=click.IntRange(10, 86400),
    default=300,
    show_default=True,
    metavar="SECONDS",
    help="How often to ask the forge for what no webhook told.",
)
@click.option(
    "--drift",
    metavar="EVENT",
    envvar="STACKYARD_GITOPS_DRIFT",
    help="When to look for drift, in UTC: `daily`, `mon..fri 02:30` (default: never). See `stackyard gitops "
    "drift`.",
)
@click.option(
    "--report",
    metavar="EVENT",
    envvar="STACKYARD_GITOPS_REPORT",
    help="When to report newer versions of providers and modules: `quarterly` (default: never). See "
    "`stackyard gitops report`.",
)
@pass_session
def serve(session: Session, /, **values: Any) -> Result:
    """Plan pull requests when they change, and apply them when they are merged: a server.

    It obeys commands in comments.

    Webhooks of the forge are answered at once and kept in the store until they are done, whatever is killed.
    STACKYARD_GITOPS_WEBHOOK_SECRET has the secret of the webhook; two of them, with a space between, while
    one replaces the other. What no webhook told is found at the start and every few minutes, so that the
    server also works where the forge cannot reach it.

    One machine works at a time, and a second one waits to take over. Where the store is PostgreSQL, any
    number of machines work side by side. Applies run one after another, in the order of the merges.

    \b
    stackyard gitops serve --webhook-url https://control.example.org/gitops/webhook --bind 0.0.0.0 \\
        --cert cert.pem --key key.pem
    """  # noqa: D301 - click reads the control character
    from stackyard.cli.runs.gitops_serve import run_gitops_serve  # lazy: a server, only when this verb runs

    try:
        session.run(run_gitops_serve(session, values, lambda ready: session.publish(_ready_result(ready))))
    except InterruptedRunError as stopped:
        return Result(document={"stopped": stopped.detail})
    return Result(document={"stopped": "by itself"})


def _ready_result(ready: Mapping[str, Any]) -> Result:
    def show(writer: TextWriter) -> None:
        writer.line(f"Ready for webhooks of {ready['repository']}: {ready['webhook']}", style="green")
        writer.line("Ctrl-C stops the server; what is not done then is done after the next start.")

    return Result(document=dict(ready), show=show)
