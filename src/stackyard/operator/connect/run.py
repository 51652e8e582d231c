"""Connecting a cluster: everything is read and checked first, then changed, and taken back if it fails."""

from __future__ import annotations

import asyncio
import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import InterruptedRunError, StackyardError
from stackyard.clients import proxmox
from stackyard.clients.proxmox.access import (
    ApiAccess,
    make_access,
    plan_access,
    plan_token_removal,
    read_access,
)
from stackyard.guard.features import list_privileges
from stackyard.operator.connect.access import (
    find_missing_grants,
    find_missing_privileges,
    make_access_request,
    read_held_privileges,
    read_known_privileges,
)
from stackyard.operator.connect.contents import add_contents, find_missing_contents
from stackyard.operator.connect.endpoints import find_endpoints
from stackyard.operator.connect.failures import (
    ClusterAnswerError,
    MayNotCreateError,
    NoQuorumError,
    OtherTokenError,
    TokenExistsError,
    TokenLeftError,
    UnusedTokenError,
    UserDisabledError,
)
from stackyard.operator.connect.model import Connected, ConnectPlan
from stackyard.operator.connect.nodes import choose_bridge, choose_nodes, describe_node
from stackyard.operator.connect.survey import read_cluster
from stackyard.sources.site.connected_site import plan_site, write_site

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.clients.proxmox.access import AccessCall, AccessRequest
    from stackyard.operator.connect.model import ConnectRequest
    from stackyard.sources.site.connected_site import SitePlan

__all__ = ["connect", "plan_connection"]


async def plan_connection(request: ConnectRequest) -> ConnectPlan:
    """Read the cluster and the site, and return what has to be done; nothing is changed.

    Raises:
        MayNotCreateError: The user may not create a token.
        TokenExistsError: The token is there, and its secret is lost.
        UserDisabledError: The user of the token is disabled.
        NodeOfflineError: A node cannot be read.
        NoQuorumError: The cluster accepts no changes now.
        SiteConflictError: Files of the site say something else.
        ProxmoxError: A call failed.
        ClusterAnswerError: An answer has a form that it must not have.
        InvalidInputError: The request does not fit the cluster or the site.
    """
    try:
        return await _plan(request)
    except (AttributeError, LookupError, TypeError, ValueError) as err:
        raise ClusterAnswerError(f"{request.url}: {type(err).__name__}: {err}.") from err


async def _plan(request: ConnectRequest) -> ConnectPlan:
    async with proxmox.Client(request.connection()) as client:
        plan = await _plan_site(client, request)
        missing = await find_missing_grants(client)
        if missing and isinstance(request.credentials, proxmox.Token):
            return _use_given_token(plan, request.credentials, await read_held_privileges(client))
        if missing:
            lines = "".join(f"\n  {grant}: to {why}" for grant, why in missing)
            raise MayNotCreateError(f"{request.caller} lacks:{lines}")
        wanted = tuple(sorted({one.privilege for one in plan.privileges}))
        access = make_access_request(request.token_name, wanted)
        calls = await _plan_calls(client, request, access, plan.site)
        if calls and not plan.cluster.is_quorate:
            raise NoQuorumError(f"{request.url} answers, but cannot create a role, a user or a token now.")
        return dataclasses.replace(plan, access=access, calls=calls)


async def _plan_site(client: proxmox.Client, request: ConnectRequest) -> ConnectPlan:
    """Read the cluster, and plan everything but the token."""
    cluster = await read_cluster(client, pinned=request.fingerprint)
    nodes = choose_nodes(cluster, request)
    endpoints = await find_endpoints(nodes, request.url, request.fingerprint)
    described = [describe_node(node, endpoints[node.name], request) for node in nodes]
    site = plan_site(
        request.root,
        described,
        cluster=request.alias or cluster.name or nodes[0].name,
        bridge=choose_bridge(nodes),
        overwrites=request.overwrites,
    )
    file_stores = [str(one.fields["file_datastore"]) for one in described]
    return ConnectPlan(
        request=request,
        cluster=cluster,
        endpoints=endpoints,
        privileges=list_privileges(request.features, await read_known_privileges(client)),
        site=site,
        contents=find_missing_contents(nodes, file_stores, request, cluster.version),
    )


def _use_given_token(plan: ConnectPlan, given: proxmox.Token, held: frozenset[str]) -> ConnectPlan:
    """Plan to use a token that may not create another."""
    known = plan.site.known_token
    if known not in (None, given.text) and not plan.request.overwrites:
        raise _make_other_token_error(plan.site)
    missing = find_missing_privileges(plan.privileges, held)
    return dataclasses.replace(plan, missing=missing, token=None if known == given.text else given.text)


def _make_other_token_error(site: SitePlan) -> OtherTokenError:
    there = str(site.known_token).partition("=")[0]
    return OtherTokenError(f"`api_tokens.{site.token_key}` in {site.secrets_file} is the token {there}.")


async def _plan_calls(
    client: proxmox.Client, request: ConnectRequest, access: AccessRequest, site: SitePlan
) -> tuple[AccessCall, ...]:
    present = await read_access(ApiAccess(client), access)
    if access.user in present.disabled:
        raise UserDisabledError(f"{access.user} is disabled on the cluster.")
    renews, known = request.renews, site.known_token
    if known is not None and known.partition("=")[0] != access.token_id:
        if not request.overwrites:
            raise _make_other_token_error(site)
        known = None
    if access.token in present.tokens and not renews:
        if known is None:
            raise TokenExistsError(f"{access.token_id} is on the cluster, and not in {site.secrets_file}.")
        if not await _is_accepted(request, known):
            raise TokenExistsError(
                f"{access.token_id} is on the cluster, and its secret in {site.secrets_file} is not accepted."
            )
    return plan_access(access, present, renews=renews)


async def _is_accepted(request: ConnectRequest, token: str) -> bool:
    try:
        async with proxmox.Client(request.connection(proxmox.Token(text=token))) as client:
            await client.get("/version")
    except proxmox.LoginRefusedError:
        return False
    return True


async def connect(plan: ConnectPlan, ssh_keys: Sequence[tuple[str, str]] = ()) -> Connected:
    """Do what was planned.

    Args:
        plan: What to do.
        ssh_keys: Public keys of the user, for a new site.

    Raises:
        UnusedTokenError: It failed; the new token is removed again, and no file is changed.
        TokenLeftError: It failed, and the new token could not be removed.
        StackyardError: It failed before there was a new token.
    """
    async with proxmox.Client(plan.request.connection()) as client:
        await add_contents(client, plan.content_changes)
        if plan.access is None:
            return Connected(plan=plan, written=write_site(plan.site, plan.token, ssh_keys))
        backend = _NotingAccess(client)
        try:
            token = await make_access(backend, plan.access, plan.calls)
            written = write_site(plan.site, token, ssh_keys)
        except StackyardError as err:
            if await _remove_token(backend, plan.access, err):
                detail = f"{err.detail} The token {plan.token_id} is removed; its role and user stay."
                raise UnusedTokenError(detail, where=err.where, remedy=err.remedy) from err
            raise
        except asyncio.CancelledError:
            await _remove_token(backend, plan.access, InterruptedRunError("The run was stopped."))
            raise
    return Connected(plan=plan, written=written)


@dataclass(slots=True)
class _NotingAccess:
    """Performs calls, and remembers whether a token may have been made."""

    client: proxmox.Client
    has_made_token: bool = False

    async def perform(self, call: AccessCall) -> Any:
        is_known_before, self.has_made_token = self.has_made_token, self.has_made_token or call.is_secret
        try:
            return await ApiAccess(self.client).perform(call)
        except proxmox.RefusedError:
            # A token of this name that another run made meanwhile is not ours to remove.
            self.has_made_token = is_known_before
            raise


async def _remove_token(backend: _NotingAccess, access: AccessRequest, cause: StackyardError) -> bool:
    """Remove a token that nobody has the secret of; return whether there may have been one.

    Raises:
        TokenLeftError: It is not removed.
    """
    if not backend.has_made_token:
        return False
    try:
        await backend.perform(plan_token_removal(access))
    except proxmox.MissingError:
        pass
    except StackyardError as err:
        detail = f"{cause.detail} The token {access.token_id} could not be removed: {err.detail}"
        remedy = f"Run `pveum user token delete {access.user} {access.token}` on a node. {cause.remedy}"
        raise TokenLeftError(detail, where=cause.where, remedy=remedy) from cause
    return True
