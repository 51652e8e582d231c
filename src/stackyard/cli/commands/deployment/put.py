"""`stackyard deployment put`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import UsageError
from stackyard.cli.command import Command
from stackyard.cli.commands.deployment.options import place_of, read_acknowledgements, write_options
from stackyard.cli.commands.deployment.view import make_write_result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.result import Result
    from stackyard.sources.deployment.settings import ObjectLocation
    from stackyard.sources.deployment.store import Version

__all__ = ["put"]


@click.command("put", cls=Command)
@click.argument("file")
@click.option(
    "--base",
    metavar="VERSION",
    help="The version that FILE is based on; `deployment get FILE` remembers it.",
)
@write_options
@pass_session
def put(session: Session, /, file: str, base: str | None, store: str | None, **values: Any) -> Result:
    """Write FILE as the new version of the object.

    FILE is the whole object. The command validates it, compares it with the current version, and writes it
    only over the version that it is based on. If another session wrote first, the command merges both changes
    into FILE.merged for you to review. Use --allow-delete to name each entry that disappears. A first version
    needs no --base.

    \b
    stackyard deployment get deployment.json
    stackyard deployment put deployment.json --note "more memory for web"
    """  # noqa: D301 - click reads the control character
    from stackyard.base import files  # lazy: only when this verb runs
    from stackyard.sources.deployment.checkouts import remember  # lazy: as above
    from stackyard.sources.deployment.write import MergeNeededError, WriteRequest, write  # lazy: as above

    path = Path(file)
    data = files.read_text(path).encode()
    place = place_of(store)
    known = _base(place, path, base)
    request = WriteRequest(kind="put", make=lambda current: data, base=known, **read_acknowledgements(values))
    try:
        written = write(place, request, emit=session.emit)
    except MergeNeededError as err:
        proposal = path.with_name(f"{path.name}.merged")
        files.replace_file(proposal, err.proposal)
        err.remedy = (
            f"Both changes are joined in {proposal}. Look at it, then:"
            f" stackyard deployment put {proposal} --base {_format_version_id(place)}"
        )
        raise
    if written.version is not None:
        remember(place, path, written.version)
    return make_write_result(written, place.label)


def _format_version_id(place: ObjectLocation) -> str:
    from stackyard.sources.deployment.fetch import fetch  # lazy: only after a conflict

    version = fetch(place).version
    return "" if version is None else version.id


def _base(place: ObjectLocation, path: Path, said: str | None) -> Version | None:
    """Return the version that a file was created from; None where there is no object yet.

    Raises:
        UsageError: There is an object, and no one says which version the file was created from.
    """
    from stackyard.clients.objects.open_store import DATABASE  # lazy: as above
    from stackyard.sources.deployment.checkouts import base_of  # lazy: only when this verb runs
    from stackyard.sources.deployment.open_store import open_reader  # lazy: as above
    from stackyard.sources.deployment.settings import BucketAddress  # lazy: as above
    from stackyard.sources.deployment.store import choose_version  # lazy: as above

    if place.local is not None or place.domains is not None:
        return None
    if not isinstance(place.store, BucketAddress) and not (place.store / DATABASE).exists():
        return None
    store = open_reader(place)
    try:
        if store.read() is None:
            return None
        named = said or base_of(place, path)
        if named is None:
            raise UsageError(
                f"There is an object already, and nothing says which version {path} was made from: an older"
                " one would take back what others wrote since. Fetch it with `stackyard deployment get` and"
                " change that, or name the version with --base (`--base @0` is the current one)."
            )
        return choose_version(store, named)
    finally:
        store.close()
