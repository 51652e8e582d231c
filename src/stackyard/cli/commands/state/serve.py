"""`stackyard state serve`: the state service as a daemon."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import InterruptedRunError, StackyardError
from stackyard.cli.command import Command
from stackyard.cli.commands.state.store import StoreChoice, store_options
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.state.daemon import DaemonOptions, RunningDaemon

__all__ = ["serve"]

_DAY_S = 86_400.0
_MIB = 1024 * 1024


@click.command("serve", cls=Command)
@store_options
@click.option(
    "--bind", metavar="ADDR", default="127.0.0.1", show_default=True, help="Listen on this address."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8009,
    show_default=True,
    help="Listen on this port; 0: any free port.",
)
@click.option("--plain-http", is_flag=True, help="Use HTTP without TLS; on loopback only.")
@click.option("--cert", metavar="FILE", help="Use this certificate (PEM) instead of a generated one.")
@click.option("--key", metavar="FILE", help="The private key of --cert.")
@click.option("--client-ca", metavar="FILE", help="Accept client certificates from these authorities (PEM).")
@click.option("--require-client-cert", is_flag=True, help="Reject clients without a certificate.")
@click.option("--registered-only", is_flag=True, help="Serve only registered states.")
@click.option(
    "--allow-unlocked-writes/--refuse-unlocked-writes",
    default=True,
    help="Accept writes without a lock (no lock_address, -lock=false) to states that are not locked.",
)
@click.option(
    "--allow-empty-unlock/--refuse-empty-unlock",
    default=True,
    help="Accept the UNLOCK of `terraform force-unlock`, which names no lock, from principals that "
    "may break locks.",
)
@click.option(
    "--max-drop",
    type=click.IntRange(1, 100),
    metavar="PERCENT",
    help="Refuse a write that removes more than this share of the resources, unless it was granted.",
)
@click.option(
    "--keep", type=click.IntRange(1), default=1000, show_default=True, help="Keep this many versions."
)
@click.option(
    "--keep-days",
    type=click.IntRange(0),
    default=30,
    show_default=True,
    help="Always keep versions younger than this many days.",
)
@click.option(
    "--max-body",
    type=click.IntRange(1),
    default=64,
    show_default=True,
    metavar="MIB",
    help="The maximum size of a state.",
)
@pass_session
def serve(session: Session, /, choice: StoreChoice, **given: Any) -> Result:
    """Serve states to OpenTofu and Terraform, with locks, history and fencing.

    This is the `http` backend of both engines. Any number of services can share one bucket or database, and
    any number of processes on this machine can share one folder; locks stay exclusive.

    \b
    stackyard state serve --data ~/states                     one file, TLS with its own certificate
    stackyard state serve --store s3://states/prod            a bucket; run as many as you like
    stackyard state serve --store postgresql://me@db/states   a database; the same
    stackyard state serve --data ~/states --plain-http        without TLS, on this machine only
    stackyard state serve --data ~/states --port 0 --json     one line of JSON when ready: url, username,
                                                              password, fingerprint

    Configure the engine with environment variables:

    \b
    export TF_HTTP_ADDRESS=https://127.0.0.1:8009/states/prod/network
    export TF_HTTP_LOCK_ADDRESS=$TF_HTTP_ADDRESS TF_HTTP_UNLOCK_ADDRESS=$TF_HTTP_ADDRESS
    export TF_HTTP_USERNAME=admin TF_HTTP_PASSWORD=...

    The first start creates the password of `admin` and keeps it beside the data (or takes it from
    STACKYARD_STATE_PASSWORD). `stackyard state token` creates principals with fewer rights. SIGHUP reloads
    certificates, keys and principals; SIGTERM stops the service within two seconds. Other machines that run
    stackyard use the whole store with --store https://... and a token that has the right store.
    """  # noqa: D301 - click reads the control character
    import asyncio  # lazy: only when this verb runs

    from stackyard.state.daemon import daemon  # lazy: a server, only when this verb runs

    options = _options(choice, given)

    async def run() -> None:
        async with daemon(options) as running:
            with _reload_on_hangup(session, running):
                session.publish(_ready(running, options))
                await asyncio.Event().wait()

    try:
        session.run(run())
    except InterruptedRunError as stopped:
        return Result(document={"stopped": stopped.detail})
    return Result(document={"stopped": "by itself"})


def _options(choice: StoreChoice, given: dict[str, Any]) -> DaemonOptions:
    from stackyard.state.daemon import DaemonOptions, identity_folder  # lazy: as above
    from stackyard.state.policy import Policy  # lazy: as above

    place = choice.place()
    return DaemonOptions(
        data=place if isinstance(place, Path) else identity_folder(place),
        store=None if isinstance(place, Path) else place,
        key_file=_path(choice.key_file),
        bind=given["bind"],
        port=given["port"],
        plain_http=given["plain_http"],
        require_client_cert=given["require_client_cert"],
        max_body_bytes=given["max_body"] * _MIB,
        policy=Policy(
            create_states=not given["registered_only"],
            unlocked_writes=given["allow_unlocked_writes"],
            empty_unlock=given["allow_empty_unlock"],
            max_drop_percent=given["max_drop"],
            keep_versions=given["keep"],
            keep_versions_s=given["keep_days"] * _DAY_S,
        ),
        cert=_path(given["cert"]),
        key=_path(given["key"]),
        client_ca=_path(given["client_ca"]),
    )


def _path(given: str | None) -> Path | None:
    return None if given is None else Path(given)


@contextlib.contextmanager
def _reload_on_hangup(session: Session, running: RunningDaemon) -> Iterator[None]:
    """Make SIGHUP read everything again, where it would end us otherwise."""
    import asyncio  # lazy: only when this verb runs

    from stackyard.base import events  # lazy: as above

    def reload() -> None:
        try:
            running.reload()
            level, text = events.LogLevel.INFO, "Certificates, keys and principals were read again."
        except StackyardError as err:
            level, text = events.LogLevel.ERROR, f"Nothing was read again: {err.detail}"
        session.emit(events.LogLine(level=level, source="state", text=text))

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, reload)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)


def _ready(running: RunningDaemon, options: DaemonOptions) -> Result:
    document = {**running.document(), "data": options.store or str(options.data)}
    return Result(document=document, show=lambda writer: _show(writer, document))


def _show(writer: TextWriter, document: dict[str, Any]) -> None:
    writer.line(f"The state service is ready: {document['url']}", style="green")
    for name in ("username", "password", "fingerprint", "data"):
        writer.line(f"  {name:<12} {document[name] or 'none: plain HTTP'}")
    writer.line("Ctrl-C stops it.")
