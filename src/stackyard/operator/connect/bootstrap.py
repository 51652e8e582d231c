"""The first token of a cluster: made with one login, kept in the secrets of the site, and used from then on.

It is the token that the file of the cluster describes for its own API, with its user and their roles, which
the engine takes over; or, where the file describes none, one for stackyard itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.base.errors import InvalidInputError
from stackyard.clients import proxmox
from stackyard.clients.proxmox.access import ApiAccess
from stackyard.clients.proxmox.access_calls import (
    AccessEntry,
    make_entry_call,
    make_role_call,
    make_token_change_call,
    make_user_call,
)
from stackyard.desired import ApiToken
from stackyard.operator.connect.access import USER, find_missing_grants, read_known_privileges
from stackyard.operator.connect.failures import (
    MayNotCreateError,
    OtherTokenError,
    TokenExistsError,
    UserDisabledError,
)
from stackyard.path.credentials.cluster import is_accepted, read_token
from stackyard.path.credentials.perform import CredentialWorker
from stackyard.path.credentials.plan import settings_of
from stackyard.path.credentials.record import change_record, read_record
from stackyard.path.run_state import hold_lock
from stackyard.render.references import short_type
from stackyard.state import StateService
from stackyard.state.embedded import serve_embedded

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from stackyard.clients.proxmox.access_calls import AccessCall, TokenSettings
    from stackyard.desired import Desired
    from stackyard.path.credentials.perform import LoginSession
    from stackyard.path.credentials.token_store import TokenStore
    from stackyard.path.settings import RunSettings
    from stackyard.path.target import Target

__all__ = ["BootstrapRequest", "NoRoleError", "TokenEndedError", "UserMissingError", "bootstrap"]

_ROLE = "StackyardHypervisor"
_TOKEN = "hypervisor"  # noqa: S105 -- the name of the token, not its secret
_ROOT = "root@pam"


class NoRoleError(InvalidInputError):
    """The file describes the token of its own API, and gives it no role, so that it could do nothing."""

    code = "E-TOKEN-NO-ROLE"
    summary = "The token of the API has no role"
    default_remedy = "Give its user, and the token if it has privileges of its own, a role in `acl`."


class TokenEndedError(InvalidInputError):
    """The file describes the token of its own API, and lets it end before now."""

    code = "E-TOKEN-ENDED"
    summary = "The token of the API would not work: its date is over"
    default_remedy = "Write a later `expiration_date`, or leave it out: then the token does not end."


class UserMissingError(InvalidInputError):
    """The file describes the token of its own API, and its user is neither in the file nor on the cluster."""

    code = "E-TOKEN-USER-MISSING"
    summary = "The user of the token does not exist"
    default_remedy = "Add the user to `users` of the file, or correct the name of the token."


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapRequest:
    """What is asked for.

    Attributes:
        target: The cluster as a target.
        connection: The way to its API.
        login: Who logged in.
        desired: What its file says.
        store: What the site calls the token of its API.
        renewed: The tokens that get new secrets, although they have one.
        tokens: Where tokens are kept.
    """

    target: Target
    connection: proxmox.Connection
    login: LoginSession
    desired: Desired
    store: str
    renewed: frozenset[str]
    tokens: TokenStore


@dataclass(frozen=True, slots=True, kw_only=True)
class _Access:
    """A token and what it needs.

    Attributes:
        token: The token.
        roles: The roles that the file describes, with their privileges.
        users: The users that the file describes, with their comments.
        entries: Who has which role where: the user of the token, and the token.
        is_own: Whether the file describes none of it.
    """

    token: ApiToken
    roles: Mapping[str, frozenset[str]]
    users: Mapping[str, str]
    entries: tuple[AccessEntry, ...]
    is_own: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Present:
    """What the cluster has."""

    roles: frozenset[str] = frozenset()
    users: Mapping[str, bool] = field(default_factory=dict)
    tokens: Mapping[str, TokenSettings] = field(default_factory=dict)
    entries: frozenset[tuple[str, str, str]] = frozenset()


async def bootstrap(request: BootstrapRequest, settings: RunSettings, emit: events.Emit) -> str | None:
    """Make what is missing of the token, and return its name if it was made.

    Raises:
        PlainSecretsError: The secrets of the site are not encrypted.
        MayNotCreateError: The user who logged in may not create users and tokens.
        TokenExistsError: The token is there, and its secret is lost.
        OtherTokenError: The secrets have another token under its name.
        UserDisabledError: The user of the token is disabled.
        NoRoleError: The token would have no role.
        TokenEndedError: The file lets the token end before now.
        ProxmoxError: A call failed; the same command continues from there.
    """
    connection = dataclasses.replace(request.connection, credentials=request.login.ticket)
    name = request.target.state_name
    with contextlib.closing(settings.store.open()) as objects:
        states = StateService(objects)
        async with (
            serve_embedded(states, prefix=name, emit=emit) as backend,
            hold_lock(backend, name, settings),
            proxmox.Client(connection) as client,
        ):
            access = await _choose_access(client, request)
            worker = CredentialWorker(
                client=client,
                targets=states.targets,
                target=request.target,
                store=request.tokens,
                emit=emit,
                is_own=access.is_own,
            )
            with events.step(emit, "login", f"Making the token {access.token.id}"):
                return await _make(request, access, worker)


async def _make(request: BootstrapRequest, access: _Access, worker: CredentialWorker) -> str | None:
    token, client = access.token, worker.client
    _require_lasting(token)
    present = await _read_present(client)
    await _repair(request, access, worker, present)
    makes = await _decide(request, access, worker, present)
    calls = _plan_calls(access, present)
    given = {(entry.path, entry.owner, entry.role) for entry in access.entries}
    if token.user not in present.users and token.user not in access.users:
        raise UserMissingError(f"{token.user}, whose token is to be created, does not exist.")
    _require_roles(token, {owner for _, owner, _ in given | present.entries})
    if not (makes or calls or given - present.entries):
        return None
    await asyncio.to_thread(request.tokens.require_safe)
    missing = await find_missing_grants(client)
    if missing:
        lines = "".join(f"\n  {grant}: to {why}" for grant, why in missing)
        raise MayNotCreateError(f"{request.login.user} lacks:{lines}", remedy="Log in as root@pam.")
    for made, call in calls:
        if not access.is_own:
            # Before it is there: what the next run finds in the way is ours.
            await asyncio.to_thread(_note_import, worker, made)
        await ApiAccess(client).perform(call)
    if makes:
        await _drop_roles(access, worker, given | present.entries)
        await worker.make_token(settings_of(token), token.store, replaces=token.id in present.tokens)
    for entry in access.entries:
        is_there = (entry.path, entry.owner, entry.role) in present.entries
        if entry.kind != "tokens" or (is_there and not makes):
            continue
        if access.is_own:
            await ApiAccess(client).perform(make_entry_call(entry))
        else:
            await worker.give_role(entry)
    return token.id if makes else None


def _require_lasting(token: ApiToken) -> None:
    if token.expires and token.expires <= time.time():
        raise TokenEndedError(f"The `expiration_date` of {token.id}, which the run would use, is over.")


async def _repair(
    request: BootstrapRequest, access: _Access, worker: CredentialWorker, present: _Present
) -> None:
    """Let a token work again that has ended, or that lost the privileges of its user; its secret stays."""
    token = access.token
    has = present.tokens.get(token.id)
    kept = (await asyncio.to_thread(request.tokens.read)).get(token.store, "")
    if has is None or token.id in request.renewed or kept.partition("=")[0] != token.id:
        return
    has_ended = 0 < has.expires <= time.time()
    if has_ended or (has.separates and not token.separates):
        what = f"let the token {token.id} work again"
        await ApiAccess(worker.client).perform(make_token_change_call(settings_of(token), what))


async def _drop_roles(
    access: _Access, worker: CredentialWorker, known: AbstractSet[tuple[str, str, str]]
) -> None:
    """Forget the roles of the token that neither the file nor the cluster has any more."""
    record = await asyncio.to_thread(read_record, worker.targets, worker.target)
    mine = (one for one in record.grants if one.owner == access.token.id)
    await worker.drop_roles(one for one in mine if (one.path, one.owner, one.role) not in known)


def _require_free(store: str, held: str) -> None:
    """Refuse to overwrite a secret that may be of another cluster: Proxmox shows it only once."""
    if held:
        raise OtherTokenError(
            f"`api_tokens.{store}` is a token {held} that this cluster does not have.",
            remedy="If it is of another cluster, give the token of this one another `store`. Otherwise take "
            "it out of the secrets with `stackyard secrets edit`, and run the command again.",
        )


async def _decide(
    request: BootstrapRequest, access: _Access, worker: CredentialWorker, present: _Present
) -> bool:
    """Return whether the token has to be made, or made again."""
    token = access.token
    if present.users.get(token.user) is False:
        raise UserDisabledError(f"{token.user} is disabled on the cluster.")
    kept = (await asyncio.to_thread(request.tokens.read)).get(token.store, "")
    held = kept.partition("=")[0]
    if held and held != token.id:
        raise OtherTokenError(
            f"`api_tokens.{token.store}` is the token {held}, and not {token.id}.",
            remedy="Take it out of the secrets with `stackyard secrets edit`, and run the command again.",
        )
    record = await asyncio.to_thread(read_record, worker.targets, worker.target)
    known = (record.own if access.is_own else record.tokens).get(token.id)
    if token.id in request.renewed:
        return True
    if token.id not in present.tokens:
        _require_free(token.store, held if known is None else "")
        return True
    is_unfinished = known is not None and not known.is_complete
    if held and await is_accepted(request.connection, kept):
        if is_unfinished:
            await worker.complete_token(token.id, token.store)
        return False
    if is_unfinished:
        return True
    what = f"is not accepted (`api_tokens.{token.store}`)" if held else "is not in the secrets of the site"
    raise TokenExistsError(
        f"{token.id} is on the cluster, and its secret {what}.",
        remedy=f"Replace it, if nothing else uses it: --renew-token '{token.id}'",
    )


def _plan_calls(access: _Access, present: _Present) -> list[tuple[tuple[str, str], AccessCall]]:
    """Return what is missing before the token can be made, each with its kind and its id for the engine."""
    token = access.token
    used = {entry.role for entry in access.entries}
    calls = [
        (("role", role), make_role_call(role, privileges, None))
        for role, privileges in access.roles.items()
        if role in used and role not in present.roles
    ]
    if token.user not in present.users:
        calls.append((("user", token.user), make_user_call(token.user, access.users.get(token.user, ""))))
    for entry in access.entries:
        if entry.kind == "users" and (entry.path, entry.owner, entry.role) not in present.entries:
            made = ("acl", f"{entry.path}?{entry.owner}?{entry.role}")
            calls.append((made, make_entry_call(entry)))
    return calls


def _require_roles(token: ApiToken, owners: set[str]) -> None:
    missing = [] if token.user == _ROOT or token.user in owners else [f"its user {token.user}"]
    missing += [token.id] if token.separates and token.id not in owners else []
    if missing:
        raise NoRoleError(f"{token.id} could do nothing: {' and '.join(missing)} would have no role.")


async def _choose_access(client: proxmox.Client, request: BootstrapRequest) -> _Access:
    """Return the token that the file describes for its own API; else one of stackyard."""
    tokens = request.desired.credentials.tokens
    token = next((one for one in tokens if one.store == request.store), None)
    if token is not None:
        return _describe_access(token, request.desired)
    own = ApiToken(id=f"{USER}!{_TOKEN}", comment="Runs stackyard", store=request.store)
    entries = tuple(AccessEntry(path="/", owner=owner, role=_ROLE) for owner in (USER, own.id))
    roles = {_ROLE: await read_known_privileges(client)}
    return _Access(token=own, roles=roles, users={USER: "Runs stackyard"}, entries=entries, is_own=True)


def _describe_access(token: ApiToken, desired: Desired) -> _Access:
    """Return what a file says of a token, its user, and their roles."""
    roles, users, entries = {}, {}, []
    for one in desired.objects:
        kind, values = short_type(one.key.type), one.attributes
        if kind == "role":
            roles[str(values["role_id"])] = frozenset(map(str, values.get("privileges") or ()))
        elif kind == "user":
            users[str(values["user_id"])] = str(values.get("comment") or "")
        elif kind == "acl" and values.get("user_id") == token.user:
            entries.append(_read_entry(values, token.user))
    entries += [
        AccessEntry(path=grant.path, owner=token.id, role=grant.role, propagate=grant.propagate)
        for grant in desired.credentials.grants
        if grant.token == token.id
    ]
    return _Access(token=token, roles=roles, users=users, entries=tuple(entries))


def _read_entry(values: Mapping[str, object], owner: str) -> AccessEntry:
    propagate = values.get("propagate")
    return AccessEntry(
        path=str(values["path"]),
        owner=owner,
        role=str(values["role_id"]),
        propagate=propagate is not False,
    )


async def _read_present(client: proxmox.Client) -> _Present:
    roles, users, entries = await asyncio.gather(
        client.get("/access/roles"), client.get("/access/users", {"full": 1}), client.get("/access/acl")
    )
    return _Present(
        roles=frozenset(str(row["roleid"]) for row in roles),
        users={str(row["userid"]): bool(int(row.get("enable", 1))) for row in users},
        tokens={
            token.id: token
            for row in users
            for token in (read_token(row, one) for one in row.get("tokens") or ())
        },
        entries=frozenset((str(row["path"]), str(row["ugid"]), str(row["roleid"])) for row in entries),
    )


def _note_import(worker: CredentialWorker, made: tuple[str, str]) -> None:
    change_record(
        worker.targets,
        worker.target,
        lambda known: dataclasses.replace(known, imports=known.imports | {made}),
    )
