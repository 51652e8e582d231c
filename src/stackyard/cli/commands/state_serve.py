"""`stackyard state serve`: the state service as a daemon."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackyard import events
from stackyard.cli.command import Command
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session
from stackyard.cli.states.store import StoreChoice, store_options
from stackyard.errors import InterruptedRunError, StackyardError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.cli.views.paper import Paper
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
    help="Listen on this port; 0: any.",
)
@click.option("--plain-http", is_flag=True, help="Speak HTTP without TLS; on loopback only.")
@click.option("--cert", metavar="FILE", help="Show this certificate (PEM) in place of one of our own.")
@click.option("--key", metavar="FILE", help="The private key of --cert.")
@click.option("--client-ca", metavar="FILE", help="Accept client certificates of these authorities (PEM).")
@click.option("--require-client-cert", is_flag=True, help="Turn away clients without a certificate.")
@click.option("--registered-only", is_flag=True, help="Serve only states that were registered before.")
@click.option("--allow-unlocked-writes", is_flag=True, help="Take writes without a lock (-lock=false).")
@click.option(
    "--allow-empty-unlock/--refuse-empty-unlock",
    default=True,
    help="Take the UNLOCK of `terraform force-unlock`, which names no lock, from who may break locks.",
)
@click.option(
    "--max-drop",
    type=click.IntRange(1, 100),
    metavar="PERCENT",
    help="Refuse a write that drops more of the resources than this, unless it was granted.",
)
@click.option(
    "--keep", type=click.IntRange(1), default=1000, show_default=True, help="Keep this many versions."
)
@click.option(
    "--keep-days", type=click.IntRange(0), default=30, show_default=True, help="Keep younger versions anyway."
)
@click.option(
    "--max-body",
    type=click.IntRange(1),
    default=64,
    show_default=True,
    metavar="MIB",
    help="The largest state.",
)
@pass_session
def serve(session: Session, /, choice: StoreChoice, **given: Any) -> Result:
    """Serve states to OpenTofu and Terraform, with locks, history and fencing.

    It is the `http` backend of both engines. Any number of services may share one bucket, and any number of
    processes of this machine one folder; locks stay exclusive.

    \b
    stackyard state serve --data ~/states                     one file, TLS with a certificate of its own
    stackyard state serve --store s3://states/prod            a bucket; start as many as you like
    stackyard state serve --data ~/states --plain-http        without TLS, on this machine only
    stackyard state serve --data ~/states --port 0 --json     one line of JSON when ready: url, username,
                                                              password, fingerprint

    The engine finds it through its environment:

    \b
    export TF_HTTP_ADDRESS=https://127.0.0.1:8009/states/prod/network
    export TF_HTTP_LOCK_ADDRESS=$TF_HTTP_ADDRESS TF_HTTP_UNLOCK_ADDRESS=$TF_HTTP_ADDRESS
    export TF_HTTP_USERNAME=admin TF_HTTP_PASSWORD=...

    The password of `admin` is made at the first start and kept beside the data (or taken from
    STACKYARD_STATE_PASSWORD); `stackyard state token` makes others with fewer rights. SIGHUP reads
    certificates, keys and principals again; SIGTERM stops it within two seconds.
    """  # noqa: D301 - click reads the control character
    from stackyard.state.daemon import daemon  # lazy: a server, only when this verb runs

    options = _options(choice, given)

    async def run() -> None:
        async with daemon(options) as running:
            with _reloading(session, running):
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
def _reloading(session: Session, running: RunningDaemon) -> Iterator[None]:
    """Make SIGHUP read everything again, where it would end us otherwise."""

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
    return Result(document=document, show=lambda paper: _show(paper, document))


def _show(paper: Paper, document: dict[str, Any]) -> None:
    paper.line(f"The state service is ready: {document['url']}", style="green")
    for name in ("username", "password", "fingerprint", "data"):
        paper.line(f"  {name:<12} {document[name] or 'none: plain HTTP'}")
    paper.line("Ctrl-C stops it.")
