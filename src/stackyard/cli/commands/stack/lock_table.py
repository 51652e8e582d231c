"""`stackyard stack lock-table`: from a DynamoDB lock table to the lock object in the bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stackyard.cli.command import group
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    import datetime

    from stackyard.cli.result import Result

__all__ = ["lock_table"]

_table = click.option("--table", metavar="NAME", help="Only the stacks that name this table.")
_since = click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d"]),
    metavar="TIME",
    help="Count only versions since this time, in UTC (default: since both locks are on the default branch).",
)
_unproven = click.option(
    "--without-proof",
    "is_unproven_taken",
    is_flag=True,
    help="Also change stacks that are `unproven`: a bucket without versions, or no write yet.",
)
_foreign = click.option(
    "--without-proof",
    "is_unproven_taken",
    is_flag=True,
    help="Delete it even if it has digests of states that no stack here has.",
)


@group("lock-table")
def lock_table() -> None:
    """Move S3 stacks from a DynamoDB lock table to the lock object in the bucket, in three steps.

    A client that locks with the table alone does not see the lock objects of the others. So every client uses
    both locks for a while, and you delete the table once the bucket shows that all of them do.

    \b
    stackyard stack lock-table add-lockfile    both locks in the code; commit and merge it
    stackyard stack lock-table status          what the bucket and the table show
    stackyard stack lock-table drop            the lock object alone; commit and merge it
    stackyard stack lock-table delete TABLE    delete the table
    """  # noqa: D301 - click reads the control character


@lock_table.command("status")
@_table
@_since
@pass_session
def status(session: Session, table: str | None, since: datetime.datetime | None) -> Result:
    """Show for each stack with a lock table whether all clients use both locks.

    `proven`: since both locks are on the default branch, every version of the state was written under the
    lock object, and the table has the digest of the current one. `refuted`: a client uses only one of the
    locks; it is named if it holds the lock in the table. `unproven`: something cannot be seen, or no
    version was written yet.
    """
    from stackyard.cli.runs.stacks.lock_table import run_status  # lazy: the help needs none of it

    return session.run(run_status(table, _timestamp(since)))


@lock_table.command("add-lockfile")
@_table
@pass_session
def add_lockfile(session: Session, table: str | None) -> Result:
    """Add `use_lockfile = true` to the code of every stack that names a lock table.

    Nothing else in the files changes. Commit and merge them: every client with this code takes both locks.
    """
    from stackyard.cli.runs.stacks.lock_table import run_add_lockfile  # lazy: the help needs none of it

    return session.run(run_add_lockfile(table))


@lock_table.command("drop")
@_table
@_since
@_unproven
@pass_session
def drop(
    session: Session, table: str | None, since: datetime.datetime | None, is_unproven_taken: bool
) -> Result:
    """Remove the lock table from the code of every stack that is `proven`.

    Nothing else in the files changes. Commit and merge them. If other stacks are left, the exit status is 1.
    A stack that is `refuted` or `locked` is never changed. If it is `refuted`, update the client that uses
    only one lock, then ignore older versions with --since.
    """
    from stackyard.cli.runs.stacks.lock_table import run_drop  # lazy: the help needs none of it

    return session.run(run_drop(table, _timestamp(since), is_unproven_taken=is_unproven_taken))


@lock_table.command("delete")
@click.argument("table")
@_foreign
@pass_session
def delete(session: Session, table: str, is_unproven_taken: bool) -> Result:
    """Delete a lock table that no stack names any more, here and on the default branch.

    It is refused while a lock is held in the table, and while the table has digests of states that no stack
    here has: another repository may use it.
    """
    from stackyard.cli.runs.stacks.lock_table import run_delete_table  # lazy: the help needs none of it

    return session.run(run_delete_table(table, is_unproven_taken=is_unproven_taken))


def _timestamp(since: datetime.datetime | None) -> float | None:
    import datetime  # lazy: only where a time is given

    return None if since is None else since.replace(tzinfo=datetime.UTC).timestamp()
