"""How the command line shows a running lab."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.completions import complete_labs
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackyard.cli.commands.lab.instances import Instance, LabRecord
    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["DEFAULT_NAME", "make_running_result", "name_option"]

DEFAULT_NAME = "default"


def name_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option that chooses one of several labs."""
    return click.option(
        "--name",
        default=DEFAULT_NAME,
        metavar="NAME",
        shell_complete=complete_labs,
        help="The name of the lab, if several run at the same time.",
    )(function)


def make_running_result(
    record: LabRecord,
    instance: Instance,
    how: str,
    *,
    stays: bool = False,
    inside: Callable[[], str] | None = None,
) -> Result:
    """Return the result that shows how to reach a lab.

    Args:
        record: The lab.
        instance: Its name.
        how: What to say of it: "is ready".
        stays: Whether it runs in this process.
        inside: Tells a human what its guests are made of.
    """
    return Result(
        document={**record.document(), "log": None if stays else str(instance.log)},
        show=lambda writer: _show(writer, record, instance, how=how, stays=stays, inside=inside),
    )


def _show(
    writer: TextWriter,
    record: LabRecord,
    instance: Instance,
    *,
    how: str,
    stays: bool,
    inside: Callable[[], str] | None,
) -> None:
    ready = record.ready
    writer.line(f"The lab {how}: {ready['url']}", style="green")
    rows = {
        "user": ready["username"],
        "password": ready["password"],
        "API token": ready["api_token"],
        "SSH ports": ", ".join(f"{port} ({node})" for node, port in ready["ssh_ports"].items()),
        "fingerprint": ready["fingerprint"],
        "nodes": ", ".join(ready["nodes"]),
        "data": record.options.get("data") or "in memory",
    }
    if ready.get("factory_url"):
        rows["factory"] = ready["factory_url"]
    if ready.get("truenas_url"):
        rows["TrueNAS"] = ready["truenas_url"]
        rows["TrueNAS key"] = ready["truenas_api_key"]
    if inside is not None:
        rows["guests"] = inside()
    if not stays:
        rows["log"] = str(instance.log)
    for name, value in rows.items():
        writer.line(f"  {name:<12} {value}")
    which = "" if record.name == "default" else f" --name {record.name}"
    writer.line("Ctrl-C stops it." if stays else f"`stackyard lab down{which}` stops it.")
