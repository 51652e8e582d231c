"""`stackyard cluster kubeconfig` and `stackyard cluster talosconfig`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.cluster.change_options import cluster_name
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["kubeconfig", "talosconfig"]

_out_option: Callable[[Any], Any] = click.option(
    "--out",
    metavar="FILE",
    help="Write it to a file that only you can read, instead of printing it. It replaces the file: no merge.",
)


@click.command("kubeconfig", cls=Command)
@cluster_name
@_out_option
@click.option(
    "--context", metavar="NAME", help="The name of the context (default: admin@CLUSTER, as Talos names it)."
)
@pass_session
def kubeconfig(session: Session, /, name: str | None, out: str | None, context: str | None) -> Result:
    """Get a kubeconfig of a cluster, with a new client certificate, from a control plane node.

    \b
    stackyard cluster kubeconfig --out ~/.kube/home
    stackyard cluster kubeconfig home > kubeconfig
    stackyard cluster kubeconfig home --context home --out ~/.kube/home

    Whoever has it is an administrator of the cluster. It works before Kubernetes does: it proves nothing
    about the cluster.
    """  # noqa: D301 - click reads the control character
    from stackyard.cli.runs.clusters.access import read_kubeconfig  # lazy: the help needs none of it

    return _result("kubeconfig", session.run(read_kubeconfig(name, context)), out)


@click.command("talosconfig", cls=Command)
@cluster_name
@_out_option
@pass_session
def talosconfig(session: Session, /, name: str | None, out: str | None) -> Result:
    """Make a talosconfig of a cluster, with a new client certificate, from its encrypted secrets.

    \b
    stackyard cluster talosconfig --out ~/.talos/home

    It is made on this machine; no node is asked. Whoever has it is an administrator of the nodes.
    """  # noqa: D301 - click reads the control character
    del session
    from stackyard.cli.runs.clusters.access import make_talosconfig  # lazy: the help needs none of it

    return _result("talosconfig", make_talosconfig(name), out)


def _result(what: str, text: str, out: str | None) -> Result:
    if out is None:
        return Result(document={what: text}, show=lambda writer: writer.text(text))
    from pathlib import Path  # lazy: only for a file

    from stackyard.base.files import replace_file  # lazy: only for a file

    replace_file(Path(out), text.encode(), mode=0o600)
    return Result(document={"file": out}, show=lambda writer: writer.line(f"Wrote {out}."))
