"""`stackyard state backend`: the settings of the engine's own S3 backend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from stackyard.cli.command import group
from stackyard.cli.result import Result

__all__ = ["backend"]

_READABLE = 0o644


@group("backend")
def backend() -> None:
    """Write the configuration of the engine's own S3 backend, which needs no service.

    It locks with an object in the bucket (use_lockfile). While older clients still lock with a DynamoDB
    table, the configuration names both locks; drop-dynamodb is the last step.

    \b
    stackyard state backend render --bucket tofu --key prod/network/terraform.tfstate --dynamodb-table locks
    stackyard state backend drop-dynamodb backend.tf
    """  # noqa: D301 - click reads the control character


@backend.command("render")
@click.option("--bucket", required=True, metavar="NAME", help="The bucket.")
@click.option(
    "--key", required=True, metavar="KEY", help="The key of the object: prod/network/terraform.tfstate."
)
@click.option("--region", default="us-east-1", show_default=True, metavar="NAME", help="The region.")
@click.option("--endpoint", metavar="URL", help="The address of an S3 service other than AWS.")
@click.option(
    "--dynamodb-table", metavar="NAME", help="The table for locks, while older clients still use it."
)
@click.option("--encrypt", is_flag=True, help="Let the S3 service encrypt the object.")
@click.option(
    "--output",
    default="backend.tf",
    show_default=True,
    metavar="FILE",
    help="The file to write; OpenTofu JSON if it ends with .json. An existing file is replaced.",
)
def render(output: str, **given: Any) -> Result:
    """Write the configuration to a file; it never contains credentials.

    Run `tofu init -reconfigure` to use it, and `stackyard state move` to move an existing state there.
    """
    from stackyard.base.files import replace_file  # lazy: only when this verb runs
    from stackyard.state.s3_backend import S3Backend, render_hcl, render_json  # lazy: as above

    wanted = S3Backend(**given)
    text = render_json(wanted) if output.endswith(".json") else render_hcl(wanted)
    replace_file(Path(output), text.encode(), mode=_READABLE)
    return Result(
        document={"file": output, "settings": wanted.settings()},
        show=lambda writer: writer.line(f"Wrote {output}; `tofu init -reconfigure` takes it into use."),
    )


@backend.command("drop-dynamodb")
@click.argument("file")
def drop(file: str) -> Result:
    """Remove the DynamoDB table from the configuration in FILE, and keep the lock in the bucket.

    Do this when every client has the configuration with both locks: a client that locks only with the table
    would not see the locks of the others. The table itself stays. Run `tofu init -reconfigure` on each client
    to use the new configuration.
    """
    from stackyard.base.files import read_text, replace_file  # lazy: only when this verb runs
    from stackyard.state.s3_backend import drop_dynamodb  # lazy: as above

    path = Path(file)
    text = drop_dynamodb(read_text(path), file)
    replace_file(path, text.encode(), mode=_mode(path))
    return Result(
        document={"file": file, "dropped": "dynamodb_table"},
        show=lambda writer: writer.line(
            f"{file} locks in the bucket alone; run `tofu init -reconfigure` wherever it is used."
        ),
    )


def _mode(path: Path) -> int:
    """Return who may read and write a file that is there, so that replacing it changes nothing of that."""
    return path.stat().st_mode & 0o777
