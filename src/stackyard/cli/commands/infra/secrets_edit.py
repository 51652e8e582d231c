"""`stackyard infra secrets-edit`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.infra.options import cluster_option
from stackyard.cli.commands.secrets.edit import wants_again
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["secrets_edit"]


@click.command("secrets-edit", cls=Command)
@cluster_option
@pass_session
def secrets_edit(session: Session, /, cluster: str | None) -> Result:
    """Edit `infrastructure/secrets.sops.yaml` with your editor (SOPS_EDITOR, VISUAL or EDITOR).

    The plain text is in memory while you edit. Unchanged values keep their encrypted form. What you change
    here is newer than the input of the cluster: `stackyard cluster configure` reports the difference and
    does not overwrite it.
    """
    from stackyard.cli.runs.clusters.infra import choose_cluster  # lazy: the help needs none of it
    from stackyard.path.clusters.credentials import SECRETS_FILE  # lazy: as above
    from stackyard.path.clusters.keys import make_keyring  # lazy: as above
    from stackyard.secrets.edit import Editing, edit_secret_file  # lazy: cryptography, only for this verb

    _, folder = choose_cluster(cluster)
    file: Path = folder / "infrastructure" / SECRETS_FILE
    how = Editing(wants_again=wants_again, emit=session.emit)
    is_changed = edit_secret_file(file, make_keyring(folder), how)
    said = "was changed" if is_changed else "was not changed"
    return Result(
        document={"file": str(file), "is_changed": is_changed},
        show=lambda writer: writer.line(f"{file} {said}."),
    )
