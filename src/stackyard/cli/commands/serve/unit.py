"""`stackyard serve unit`: the controller under systemd."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.serve.options import ServeOptions, serve_options
from stackyard.cli.result import Result

__all__ = ["unit"]


@click.command("unit", cls=Command)
@serve_options
@click.option(
    "--user", "is_for_user", is_flag=True, help="For the systemd instance of the user, not of the system."
)
@click.option("--out", metavar="FILE", help="Write the unit to a file instead of printing it.")
def unit(is_for_user: bool, out: str | None, **given: Any) -> Result:
    """Print a systemd unit that runs the controller.

    It accepts the options of `serve`. The unit contains no token: write STACKYARD_REPO_TOKEN=... into a file
    of root and name that file with `EnvironmentFile=`.

    \b
    stackyard serve unit --repos --out /etc/systemd/system/stackyard-controller.service
    systemctl daemon-reload && systemctl enable --now stackyard-controller
    systemctl reload stackyard-controller
    """  # noqa: D301 - click reads the control character
    from stackyard.controller.unit import systemd_unit  # lazy: only when this verb runs

    options = ServeOptions(**given)
    found = shutil.which("stackyard")
    program = (str(Path(found).absolute()),) if found else (sys.executable, "-P", "-m", "stackyard")
    text = systemd_unit(
        (*program, "serve", *options.arguments()), options.site_folder(), is_for_user=is_for_user
    )
    if out is not None:
        from stackyard.base.files import replace_file  # lazy: as above

        replace_file(Path(out), text.encode(), mode=0o644)
    said = text.rstrip() if out is None else f"Wrote {out}."
    return Result(document={"unit": text, "file": out}, show=lambda writer: writer.lines(said))
