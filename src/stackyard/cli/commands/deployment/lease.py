"""`stackyard deployment lease`: which session may write the object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import UsageError
from stackyard.cli.command import group
from stackyard.cli.commands.deployment.options import place_of, store_option
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from stackyard.sources.deployment.lease_status import LeaseStatus

__all__ = ["lease"]


@group("lease")
def lease() -> None:
    """Manage the lease: which session may write the object.

    Every write acquires the lease by itself, renews it while it works, and releases it. The next writer takes
    over the lease of a holder that died: at once if its process was on the same machine, otherwise after a
    minute without a renewal.
    """


@lease.command("status")
@store_option
def status(store: str | None) -> Result:
    """Show who holds the lease, for what, for how long, and when it expires."""
    from stackyard.sources.deployment.lease_status import lease_status  # lazy: only when this verb runs

    found = lease_status(place_of(store))
    text = f"{found}" + (f"\nIts id is {found.id}." if found.is_held else "")
    return Result(document=_document(found), show=lambda writer: writer.line(text))


@lease.command("release")
@click.option("--lease-id", required=True, metavar="ID", help="The ID of the lease; `status` shows it.")
@store_option
def release(lease_id: str, store: str | None) -> Result:
    """Release a lease whose holder no longer can, such as your own session that was killed.

    The command releases the lease only if it is the one that --lease-id names.
    """
    from stackyard.sources.deployment.lease_status import release_lease  # lazy: only when this verb runs

    found = release_lease(place_of(store), lease_id)
    return Result(
        document={"released": _document(found)},
        show=lambda writer: writer.line(f"Released the lease of {found.holder}."),
    )


@lease.command("break")
@click.option("--reason", default="", metavar="TEXT", help="The reason; it is recorded first, with the user.")
@store_option
def break_(reason: str, store: str | None) -> Result:
    """Take the lease away from its holder, and record the reason first.

    The holder detects this at its next renewal, finishes what it is doing, and reports it as suspect.
    """
    from stackyard.sources.deployment.lease_status import break_lease  # lazy: only when this verb runs

    if not reason.strip():
        raise UsageError("Give the reason with --reason TEXT, for other users.")
    found = break_lease(place_of(store), reason)
    return Result(
        document={"broken": _document(found), "reason": reason},
        show=lambda writer: writer.line(f"Broke the lease of {found.holder}: {reason}"),
    )


def _document(found: LeaseStatus) -> dict[str, Any]:
    if not found.is_held:
        return {"is_held": False}
    return {
        "is_held": True,
        "id": found.id,
        "holder": found.holder,
        "doing": found.doing,
        "age_s": round(found.age_s, 1),
        "renewed_s": round(found.renewed_s, 1),
        "expires_in_s": round(found.expires_in_s, 1),
        "is_dead": found.is_dead,
    }
