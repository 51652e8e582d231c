"""A token for the API of a node, with the rights that guests need and no others."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.documents.jsontext import parse_json
from stackyard.clients.proxmox.access import (
    AccessRequest,
    TokenAnswerError,
    make_access,
    plan_access,
    read_access,
)
from stackyard.operator.delegation.credentials import PRIVILEGES
from stackyard.scenario.actions.node_file import read_machine_name
from stackyard.scenario.actions.setup import run_json
from stackyard.scenario.failures import MachineUnfitError
from stackyard.scenario.model import ActionResult
from stackyard.sources.site.edit import put_api_token

if TYPE_CHECKING:
    from stackyard.clients.proxmox.access import AccessCall
    from stackyard.scenario.context import Context

__all__ = ["CreateApiToken"]

_ACCESS = AccessRequest(
    role="Stackyard",
    user="stackyard@pve",
    token="stackyard",  # noqa: S106 -- the name of the token, not its secret
    privileges=PRIVILEGES,
    comment="Runs stackyard",
)


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
        access = _ShellAccess(context)
        calls = plan_access(_ACCESS, await read_access(access, _ACCESS), renews=True)
        try:
            made = await make_access(access, _ACCESS, calls)
        except TokenAnswerError as err:
            raise MachineUnfitError(f"{context.machine.shown}: {err.detail}") from err
        if made is None:
            raise MachineUnfitError("No token was made. This is a bug in stackyard.")
        put_api_token(context.root, key, made)
        message = f"The token {_ACCESS.token_id} is in the secrets of the site as `api_tokens.{key}`."
        return ActionResult(success=True, message=message, context_updates={"api_token_id": _ACCESS.token_id})


async def _is_there(context: Context, token_id: str) -> bool:
    user, _, token = token_id.partition("!")
    users = await run_json(context, "pveum user list")
    if not any(one.get("userid") == user for one in users):
        return False
    tokens = await run_json(context, f"pveum user token list {shlex.quote(user)}")
    return any(one.get("tokenid") == token for one in tokens)


@dataclass(frozen=True, slots=True)
class _ShellAccess:
    """Performs calls with `pveum` on the machine."""

    context: Context

    async def perform(self, call: AccessCall) -> Any:
        if call.method == "GET":
            return await run_json(self.context, call.command)
        if not call.is_secret:
            return await self.context.sh(call.command)
        said = await self.context.sh(f"{call.command} --output-format json", is_quiet=True)
        try:
            answer = parse_json(said)
        except ValueError as err:
            raise MachineUnfitError(
                f"`pveum user token add` on {self.context.machine.shown} did not answer with a token."
            ) from err
        if isinstance(answer, dict):
            # Masked from now on.
            self.context.hide(str(answer.get("value", "")))
        return answer
