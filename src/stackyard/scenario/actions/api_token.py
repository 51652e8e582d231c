"""A token for the API of a node, with the rights that guests need and no others."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.documents.jsontext import parse_json
from stackyard.operator.delegation.credentials import PRIVILEGES
from stackyard.scenario.actions.node_file import read_machine_name
from stackyard.scenario.actions.setup import run_json
from stackyard.scenario.failures import MachineUnfitError
from stackyard.scenario.model import ActionResult
from stackyard.sources.site.edit import put_api_token

if TYPE_CHECKING:
    from stackyard.scenario.context import Context

__all__ = ["CreateApiToken"]

_ROLE = "Stackyard"
_USER = "stackyard@pve"
_TOKEN = "stackyard"  # noqa: S105 -- the name of the token, not what it opens with


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateApiToken:
    """Makes a user, a role and a token on the node, and puts the token into the secrets of the site.

    A token that the site has already and the node still knows is kept: its value can be read only once.
    """

    async def run(self, context: Context) -> ActionResult:
        """Make the token, or find it made."""
        name = await read_machine_name(context)
        site = context.needed_site
        node = site.nodes.get(name)
        key = (node.model.api_token if node is not None else None) or name
        known = site.secret_values.api_tokens.get(key, "").partition("=")[0]
        if known and not context.options.force and await _is_there(context, known):
            return ActionResult(success=True, message=f"The site has the token {known} already.")
        await _grant(context)
        if await _is_there(context, f"{_USER}!{_TOKEN}"):
            await context.sh(f"pveum user token delete {_USER} {_TOKEN}")
        said = await context.sh(
            f"pveum user token add {_USER} {_TOKEN} --privsep 0 --output-format json", is_quiet=True
        )
        put_api_token(context.root, key, _token(context, said))
        message = f"The token {_USER}!{_TOKEN} is in the secrets of the site as `api_tokens.{key}`."
        return ActionResult(
            success=True, message=message, context_updates={"api_token_id": f"{_USER}!{_TOKEN}"}
        )


async def _is_there(context: Context, token_id: str) -> bool:
    user, _, token = token_id.partition("!")
    users = await run_json(context, "pveum user list")
    if not any(one.get("userid") == user for one in users):
        return False
    tokens = await run_json(context, f"pveum user token list {shlex.quote(user)}")
    return any(one.get("tokenid") == token for one in tokens)


async def _grant(context: Context) -> None:
    """Make the user with its role; what is there is brought up to date."""
    roles = await run_json(context, "pveum role list")
    known = next((str(one.get("privs", "")) for one in roles if one["roleid"] == "Administrator"), "").split(
        ","
    )
    # A right that this version of Proxmox VE does not know would be refused, and the whole role with it.
    rights = ",".join(one for one in PRIVILEGES if one in known)
    verb = "modify" if any(one["roleid"] == _ROLE for one in roles) else "add"
    await context.sh(f"pveum role {verb} {_ROLE} --privs {rights}")
    if not any(one.get("userid") == _USER for one in await run_json(context, "pveum user list")):
        await context.sh(f"pveum user add {_USER} --comment 'Runs stackyard'")
    await context.sh(f"pveum acl modify / --users {_USER} --roles {_ROLE}")


def _token(context: Context, said: str) -> str:
    """Return a token from what `pveum` printed, masked from now on."""
    try:
        answer = parse_json(said)
        value, full = str(answer["value"]), str(answer["full-tokenid"])
    except (ValueError, KeyError, TypeError) as err:
        raise MachineUnfitError(
            f"`pveum user token add` on {context.machine.shown} did not answer with a token."
        ) from err
    context.hide(value)
    return f"{full}={value}"
