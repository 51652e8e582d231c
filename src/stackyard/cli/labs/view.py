"""How the command line shows a running lab."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.result import Result

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackyard.cli.labs.instances import Instance, Record
    from stackyard.cli.views.paper import Paper

__all__ = ["name_option", "running_result"]


def name_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option that chooses one of several labs."""
    return click.option(
        "--name", default="default", metavar="NAME", help="Which lab, where several run at once."
    )(function)


def running_result(
    record: Record,
    instance: Instance,
    how: str,
    *,
    stays: bool = False,
    inside: Callable[[], str] | None = None,
) -> Result:
    """Return the result that tells how to reach a lab.

    Args:
        record: The lab.
        instance: Its name.
        how: What to say of it: "is ready".
        stays: Whether it runs in this process.
        inside: Tells a human what its guests are made of.
    """
    return Result(
        document={**record.document(), "log": None if stays else str(instance.log)},
        show=lambda paper: _show(paper, record, instance, how=how, stays=stays, inside=inside),
    )


def _show(
    paper: Paper,
    record: Record,
    instance: Instance,
    *,
    how: str,
    stays: bool,
    inside: Callable[[], str] | None,
) -> None:
    ready = record.ready
    paper.line(f"The lab {how}: {ready['url']}", style="green")
    rows = {
        "user": ready["username"],
        "password": ready["password"],
        "API token": ready["api_token"],
        "SSH ports": ", ".join(f"{port} ({node})" for node, port in ready["ssh_ports"].items()),
        "fingerprint": ready["fingerprint"],
        "nodes": ", ".join(ready["nodes"]),
        "data": record.options.get("data") or "in memory",
    }
    if inside is not None:
        rows["guests"] = inside()
    if not stays:
        rows["log"] = str(instance.log)
    for name, value in rows.items():
        paper.line(f"  {name:<12} {value}")
    which = "" if record.name == "default" else f" --name {record.name}"
    paper.line("Ctrl-C stops it." if stays else f"`stackyard lab down{which}` stops it.")
