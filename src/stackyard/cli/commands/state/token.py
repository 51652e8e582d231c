"""`stackyard state token`: who may do what at a service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import UsageError
from stackyard.cli.command import group
from stackyard.cli.commands.state.store import StoreChoice, current_actor, open_service, store_options
from stackyard.cli.commands.state.words import PERIOD, instant, local_time
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.state import Access, Principal

__all__ = ["token"]


@group("token")
def token() -> None:
    """Manage the principals of a state service, with their tokens and their rights.

    A right is for all states, or for those below a prefix. The rights are read, write, lock, break (remove
    locks), store (direct access to the stored objects) and admin (everything). An engine logs in with the
    name of a principal (TF_HTTP_USERNAME) and its token (TF_HTTP_PASSWORD).

    The right store is for machines that run stackyard with --store https://... and have their token in
    STACKYARD_STORE_TOKEN. Below its prefix, it bypasses locks, history, the audit log and the other rights.
    Do not give it to an engine.

    \b
    stackyard state token create ci --allow read,write,lock
    stackyard state token create dashboard --allow env=read --expires 90d
    stackyard state token create runner --allow prod=store
    stackyard state token revoke dashboard
    """  # noqa: D301 - click reads the control character


@token.command("create")
@click.argument("name")
@click.option(
    "--allow",
    "allowed",
    metavar="[PREFIX=]RIGHT,...",
    multiple=True,
    required=True,
    help="Rights on the states at or below a prefix, or on all states. Repeatable.",
)
@click.option(
    "--expires", type=PERIOD, metavar="AGE", help="When the token expires: 12h, 30d, 8w (default: never)."
)
@click.option(
    "--certificate",
    default="",
    metavar="NAME",
    help="A client certificate that also identifies the principal: its common name or SHA-256.",
)
@click.option("--note", default="", metavar="TEXT", help="A note about the purpose.")
@click.option("--replace", is_flag=True, help="Give an existing principal a new token and these rights.")
@store_options
def create(name: str, choice: StoreChoice, **given: Any) -> Result:
    """Create a principal, and show its token once; the token is not stored."""
    access = tuple(_access(text) for text in given["allowed"])
    with open_service(choice, create=True) as service:
        if not given["replace"] and any(one.name == name for one in service.principals.all()):
            raise UsageError(f"There is a principal {name}; --replace gives it a new token and these rights.")
        made, secret = service.principals.add(
            name,
            access,
            current_actor(),
            certificate=given["certificate"],
            lasts_s=given["expires"],
            note=given["note"],
        )
    return Result(
        document={**_document(made), "token": secret}, show=lambda writer: _show_created(writer, made, secret)
    )


@token.command("list")
@store_options
def list_tokens(choice: StoreChoice) -> Result:
    """Show every principal and its rights; the tokens are not stored."""
    with open_service(choice) as service:
        found = service.principals.all()
    return Result(
        document={"principals": [_document(one) for one in found]}, show=lambda writer: _show(writer, found)
    )


@token.command("revoke")
@click.argument("name")
@store_options
def revoke(name: str, choice: StoreChoice) -> Result:
    """Remove a principal; services reject its token within seconds."""
    with open_service(choice) as service:
        service.principals.remove(name, current_actor())
    return Result(document={"revoked": name}, show=lambda writer: writer.line(f"{name} is revoked."))


def _access(text: str) -> Access:
    from stackyard.state import Access, Right  # lazy: only when this verb runs

    # The name of a state may hold the sign, a right never does.
    prefix, _, words = text.rpartition("=")
    try:
        rights = tuple(Right(word.strip()) for word in words.split(","))
    except ValueError as err:
        known = ", ".join(Right)
        raise UsageError(f"--allow {text!r}: {err}; the rights are {known}.") from err
    return Access(prefix=prefix, rights=rights)


def _document(principal: Principal) -> dict[str, Any]:
    return {
        "name": principal.name,
        "access": [{"prefix": one.prefix, "rights": list(one.rights)} for one in principal.access],
        "certificate": principal.certificate or None,
        "created_at": instant(principal.created_at),
        "expires_at": instant(principal.expires_at),
        "note": principal.note or None,
    }


def _rights(principal: Principal) -> str:
    return "; ".join(f"{','.join(one.rights)} on {one.prefix or 'everything'}" for one in principal.access)


def _show_created(writer: TextWriter, made: Principal, secret: str) -> None:
    writer.line(f"{made.name}: {_rights(made)}", style="green")
    writer.line(f"  token  {secret}")
    writer.line("It is shown this once.")


def _show(writer: TextWriter, found: tuple[Principal, ...]) -> None:
    if not found:
        writer.line("There are no principals; `stackyard state token create` makes one.")
        return
    rows = [
        (
            one.name,
            _rights(one),
            local_time(one.created_at),
            "never" if one.expires_at is None else local_time(one.expires_at),
            one.note or "-",
        )
        for one in found
    ]
    writer.table(("principal", "may", "made", "ends", "note"), rows)
