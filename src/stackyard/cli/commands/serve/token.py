"""`stackyard serve token`: signed tokens of a site."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import group
from stackyard.cli.commands.site import site_option
from stackyard.cli.commands.state.words import PERIOD, instant, local_time
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.controller.tokens import Claims, IssuedToken, Tokens

__all__ = ["token"]

_DAY_S = 86_400.0


@group("token")
def token() -> None:
    """Issue, list, revoke and rotate the signed tokens of a site.

    A token opens the spec of one node, one spec, or one repository, and expires by itself. A running
    controller accepts a new token, and refuses a revoked one, at once.

    \b
    stackyard serve token issue --node web1 --expires 2h
    stackyard serve token issue --node web1 --repo bootstrap
    stackyard serve token list
    stackyard serve token rotate --overlap 1d
    """  # noqa: D301 - click reads the control character


@token.command("issue")
@click.option("--node", default="", metavar="NAME", help="The guest whose spec the token opens.")
@click.option(
    "--spec",
    default="",
    metavar="NAME",
    help="The spec that the token opens; with --node, for that guest only.",
)
@click.option("--repo", default="", metavar="NAME", help="The repository that the token opens; * for all.")
@click.option(
    "--expires",
    type=PERIOD,
    default=_DAY_S,
    metavar="AGE",
    help="When the token expires: 30m, 12h, 7d (default: 1d).",
)
@click.option("--note", default="", metavar="TEXT", help="A note about the purpose.")
@site_option
def issue(said: str | None, expires: float, **given: str) -> Result:
    """Create a token, and show it once; the token is not stored."""
    made, issued = _tokens(said).issue(lasts_s=expires, **given)

    def show(writer: TextWriter) -> None:
        writer.line(
            f"{issued.id}: {_format_scope(issued)}, until {local_time(issued.expires_at)}", style="green"
        )
        writer.line(f"  token  {made}")
        writer.line("It is shown this once.")

    return Result(document={**_document(issued), "token": made}, show=show)


@token.command("list")
@site_option
def list_tokens(said: str | None) -> Result:
    """Show every token that has not expired; the tokens themselves are not stored."""
    found = _tokens(said).all()
    return Result(
        document={"tokens": [_document(one) for one in found]}, show=lambda writer: _show(writer, found)
    )


@token.command("revoke")
@click.argument("id")
@site_option
def revoke(id: str, said: str | None) -> Result:
    """Revoke a token immediately."""
    revoked = _tokens(said).revoke(id)
    return Result(document=_document(revoked), show=lambda writer: writer.line(f"{id} is revoked."))


@token.command("rotate")
@click.option(
    "--overlap",
    type=PERIOD,
    default=_DAY_S,
    metavar="AGE",
    help="How long tokens of the old key stay valid (default: 1d); 0s invalidates them now.",
)
@site_option
def rotate(overlap: float, said: str | None) -> Result:
    """Sign new tokens with a new key.

    Tokens of the old key stay valid during the overlap. If the secrets of the site contain
    `auth.signing_key`, change that value to rotate; tokens of the old key then become invalid at once.
    """
    key = _tokens(said).rotate(overlap_s=overlap)
    text = f"New tokens are signed with the key {key.id}."
    return Result(document={"key": key.id, "overlap_s": overlap}, show=lambda writer: writer.line(text))


@token.command("inspect")
@click.argument("token")
@click.option("--verify", is_flag=True, help="Fail unless this site issued the token and it is valid now.")
@site_option
def inspect(token: str, verify: bool, said: str | None) -> Result:
    """Show the contents of a token from any issuer."""
    from stackyard.controller.tokens import read_unverified_claims  # lazy: only when this verb runs

    claims = _tokens(said).check(token) if verify else read_unverified_claims(token)
    document = {**_document(claims), "verified": verify}

    def show(writer: TextWriter) -> None:
        for name, value in document.items():
            writer.line(f"{name:<12} {'-' if value is None else value}")

    return Result(document=document, show=show)


def _tokens(said: str | None) -> Tokens:
    """Return the tokens of the site."""
    from stackyard.controller.tokens import TokenObjects, Tokens  # lazy: only when a verb runs
    from stackyard.sources.site import ConfigResolver  # lazy: as above

    site = ConfigResolver(said).site
    return Tokens(TokenObjects(site.store), site_key=site.secret_values.auth.signing_key)


def _document(one: IssuedToken | Claims) -> dict[str, Any]:
    revoked_at = getattr(one, "revoked_at", None)
    return {
        "id": one.id,
        "node": one.node or None,
        "spec": one.spec or None,
        "repo": one.repo or None,
        "issued_at": instant(one.issued_at),
        "expires_at": instant(one.expires_at),
        "revoked_at": instant(revoked_at),
        "note": getattr(one, "note", "") or None,
    }


def _format_scope(issued: IssuedToken) -> str:
    parts = {"node": issued.node, "spec": issued.spec, "repository": issued.repo}
    return ", ".join(f"{kind} {name}" for kind, name in parts.items() if name)


def _show(writer: TextWriter, found: tuple[IssuedToken, ...]) -> None:
    if not found:
        writer.line("There are no tokens; `stackyard serve token issue` makes one.")
        return
    rows = [
        (
            one.id,
            _format_scope(one),
            local_time(one.issued_at),
            "revoked" if one.revoked_at is not None else local_time(one.expires_at),
            one.note or "-",
        )
        for one in found
    ]
    writer.table(("id", "opens", "made", "ends", "note"), rows)
