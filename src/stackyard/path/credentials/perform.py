"""Doing what was planned beside the engine: removals before it, tokens, their roles and passwords after it.

Each step is written down before it begins where that decides what the next run does. A token whose secret was
not stored is removed and made again; everything else is done again.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base import events
from stackyard.clients import proxmox
from stackyard.clients.proxmox.access import ApiAccess
from stackyard.clients.proxmox.access_calls import (
    make_entry_call,
    make_token_call,
    make_token_change_call,
    make_token_removal_call,
    read_token_secret,
)
from stackyard.engine.changes import Action
from stackyard.path.credentials.cluster import read_present
from stackyard.path.credentials.findings import LoginNeededError
from stackyard.path.credentials.record import (
    CredentialRecord,
    TokenRecord,
    change_record,
    read_record,
)
from stackyard.path.credentials.rows import CredentialKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stackyard.clients.proxmox.access_calls import AccessCall, AccessEntry, TokenSettings
    from stackyard.path.credentials.rows import CredentialPlan, CredentialStep
    from stackyard.path.credentials.token_store import TokenStore
    from stackyard.path.target import Target
    from stackyard.state.targets import Targets

__all__ = ["CredentialWorker", "LoginSession", "require_login"]

_ROOT = "root@pam"
# How Proxmox says that a token of the name exists.
_BAD_REQUEST = 400
_SERVER_ERROR = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginSession:
    """A login of a user, for what Proxmox lets no token do; it is not stored.

    Attributes:
        user: Who logged in.
        password: The password, with which everyone but root@pam confirms the change of another.
        ticket: What the login gave.
    """

    user: str
    password: str = field(repr=False)
    ticket: proxmox.Ticket


def require_login(plan: CredentialPlan, login: LoginSession | None) -> None:
    """Refuse a plan that sets passwords without a login.

    Raises:
        LoginNeededError: It does, and there is none; nothing was changed.
    """
    users = [step.name for step in plan.steps if step.kind is CredentialKind.PASSWORD]
    if users and login is None:
        raise LoginNeededError(f"The password of {', '.join(users)} is to be set, and there is no login.")


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialWorker:
    """Does the steps of a plan.

    Attributes:
        client: Speaks to the cluster.
        targets: The records of targets.
        target: The target.
        store: Where the secrets of tokens are kept.
        emit: Takes the events.
        is_own: Whether tokens are made for stackyard itself, and not because the file has them.
    """

    client: proxmox.Client
    targets: Targets
    target: Target
    store: TokenStore
    emit: events.Emit = events.ignore
    is_own: bool = False

    async def remove(self, plan: CredentialPlan) -> None:
        """Do what comes before the engine.

        Raises:
            ProxmoxError: A call failed; the next run continues from there.
        """
        for step in plan.steps:
            if step.removes:
                with events.step(self.emit, "credentials", f"Removing {_describe(step)}"):
                    await (self._take_role(step.entry) if step.entry else self._remove_token(step))

    async def set(self, plan: CredentialPlan) -> None:
        """Do what comes after the engine, but for passwords.

        A token that is there gets its roles before it changes: one that loses the privileges of its user
        keeps what it may do. What the token of the run loses comes last.

        Raises:
            ProxmoxError: A call failed; the next run continues from there.
        """
        await self.drop_roles(one for one in plan.forgotten if not isinstance(one, str))
        for step in _sort_steps(plan):
            with events.step(self.emit, "credentials", f"Setting {_describe(step)}"):
                await (self.give_role(step.entry) if step.entry else self._set_token(step))
        for one in plan.forgotten:
            if isinstance(one, str):
                await self._forget(one)
        for step in plan.steps:
            if step.is_last and step.entry is not None:
                with events.step(self.emit, "credentials", f"Removing {_describe(step)}"):
                    await self._take_last_role(step.entry)

    async def set_password(self, user: str, password: str, fingerprint: str, login: LoginSession) -> None:
        """Set a password as the user who logged in.

        Args:
            user: Whose.
            password: The new one.
            fingerprint: What the record keeps of it.
            login: Who sets it.

        Raises:
            ProxmoxError: It was refused.
        """
        params = {"userid": user, "password": password}
        if login.user != _ROOT:
            params["confirmation-password"] = login.password
        connection = dataclasses.replace(self.client.connection, credentials=login.ticket)
        with events.step(self.emit, "credentials", f"Setting the password of {user}"):
            async with proxmox.Client(connection) as client:
                await client.put("/access/password", params)
            await self._note(
                lambda known: dataclasses.replace(known, passwords={**known.passwords, user: fingerprint})
            )

    async def make_token(self, token: TokenSettings, store: str, *, replaces: bool) -> str:
        """Make a token, keep its secret, and return it; what another run left of it is removed.

        Args:
            token: The token.
            store: What the secrets keep it as.
            replaces: Whether the one that is there goes.

        Raises:
            ProxmoxError: A call failed.
            StackyardError: The secrets cannot be written; the next run makes the token again.
        """
        before = await self._read_token(token.id)
        await self._remove_replaced(token.id, store, before, replaces=replaces)
        try:
            answer = await self._perform(make_token_call(token))
        except (proxmox.RefusedError, proxmox.ProxmoxUnreachableError) as err:
            if _was_not_made(err) and (not replaces or getattr(err, "status", 0) == _BAD_REQUEST):
                # One of this name that somebody else makes, or has made meanwhile, is not ours.
                await self._note_token(token.id, before)
            raise
        made = read_token_secret(token.id, answer)
        await asyncio.to_thread(self.store.put, store, made)
        await self.complete_token(token.id, store)
        return made

    async def _read_token(self, token_id: str) -> TokenRecord | None:
        record = await asyncio.to_thread(read_record, self.targets, self.target)
        return (record.own if self.is_own else record.tokens).get(token_id)

    async def _remove_replaced(
        self, token_id: str, store: str, before: TokenRecord | None, *, replaces: bool
    ) -> None:
        """Write down which roles a token has, and remove it; what a killed run has written down counts."""
        entries = set(() if before is None or (replaces and not before.is_removed) else before.entries)
        if replaces:
            entries |= {one for one in (await read_present(self.client)).entries if one.owner == token_id}
        is_removed = not replaces or (before is not None and before.is_removed)
        known = TokenRecord(
            store=store, is_complete=False, entries=tuple(sorted(entries)), is_removed=is_removed
        )
        await self._note_token(token_id, known)
        if replaces:
            with contextlib.suppress(proxmox.MissingError):
                await self._perform(make_token_removal_call(token_id))
            await self._note_token(token_id, dataclasses.replace(known, is_removed=True))

    async def _set_token(self, step: CredentialStep) -> None:
        token = step.token
        if token is None:
            return
        if step.change.action in (Action.CREATE, Action.REPLACE):
            await self.make_token(token, step.store, replaces=step.change.action is Action.REPLACE)
            return
        if step.change.action is Action.UPDATE:
            await self._perform(make_token_change_call(token, f"change the token {token.id}"))
        known = await self._read_token(token.id)
        if known is not None and known.store != step.store:
            await asyncio.to_thread(self._move, token.id, known.store, step.store)
        await self.complete_token(token.id, step.store)

    async def complete_token(self, token_id: str, store: str) -> None:
        """Write down that the secret of a token is kept; it gets the roles again that it had before.

        Each of them is given once: what is taken away after that stays away. A role that no longer exists
        cannot be given.

        Raises:
            ProxmoxError: A role was refused.
        """
        known = await self._read_token(token_id)
        left = () if known is None else known.entries
        roles = {str(row["roleid"]) for row in await self.client.get("/access/roles")} if left else set()
        while known is not None and left:
            entry, *rest = left
            if entry.role in roles:
                await self._perform(make_entry_call(entry))
            left = tuple(rest)
            await self._note_token(token_id, dataclasses.replace(known, entries=left))
        await self._note_token(token_id, TokenRecord(store=store))

    async def drop_roles(self, entries: Iterable[AccessEntry]) -> None:
        """Forget roles that a token had and its file no longer gives: they are not given again."""
        gone = frozenset(entries)

        def drop(known: CredentialRecord) -> CredentialRecord:
            tokens = {
                name: dataclasses.replace(one, entries=tuple(e for e in one.entries if e not in gone))
                for name, one in known.tokens.items()
            }
            return dataclasses.replace(known, tokens=tokens, grants=known.grants - gone)

        await self._note(drop)

    def _move(self, token_id: str, old: str, new: str) -> None:
        text = self.store.read().get(old, "")
        if text.partition("=")[0] == token_id:
            self.store.put(new, text)
            self.store.remove(old, token_id)

    async def _remove_token(self, step: CredentialStep) -> None:
        with contextlib.suppress(proxmox.MissingError):
            await self._perform(make_token_removal_call(step.name))
        await self._forget_token(step.name, step.store)

    async def _forget_token(self, token_id: str, store: str) -> None:
        await asyncio.to_thread(self.store.remove, store, token_id)

        def forget(known: CredentialRecord) -> CredentialRecord:
            grants = frozenset(one for one in known.grants if one.owner != token_id)
            return dataclasses.replace(known.with_token(token_id, None), grants=grants)

        await self._note(forget)

    async def give_role(self, entry: AccessEntry) -> None:
        """Give a token a role.

        Raises:
            ProxmoxError: It was refused.
        """
        other = dataclasses.replace(entry, propagate=not entry.propagate)
        await self._note(lambda known: dataclasses.replace(known, grants=(known.grants - {other}) | {entry}))
        await self._perform(make_entry_call(entry))

    async def _take_role(self, entry: AccessEntry) -> None:
        with contextlib.suppress(proxmox.MissingError):
            await self._perform(make_entry_call(entry, removes=True))
        await self.drop_roles((entry,))

    async def _take_last_role(self, entry: AccessEntry) -> None:
        rows = await self.client.get("/access/roles")
        if entry.role in {str(row["roleid"]) for row in rows}:
            await self._take_role(entry)
        else:
            # The engine has removed the role, and Proxmox lets nobody name it any more.
            await self.drop_roles((entry,))

    async def _forget(self, one: str) -> None:
        record = await asyncio.to_thread(read_record, self.targets, self.target)
        if one in record.tokens:
            await self._forget_token(one, record.tokens[one].store)
        passwords = {user: text for user, text in record.passwords.items() if user != one}
        await self._note(lambda known: dataclasses.replace(known, passwords=passwords))

    async def _perform(self, call: AccessCall) -> Any:
        return await ApiAccess(self.client).perform(call)

    async def _note_token(self, token_id: str, token: TokenRecord | None) -> None:
        await self._note(lambda known: known.with_token(token_id, token, is_own=self.is_own))

    async def _note(self, change: Callable[[CredentialRecord], CredentialRecord]) -> None:
        await asyncio.to_thread(change_record, self.targets, self.target, change)


def _sort_steps(plan: CredentialPlan) -> list[CredentialStep]:
    """Return what is set, in its order: roles of tokens that exist, tokens, roles of new tokens."""
    setting = [one for one in plan.steps if one.kind is not CredentialKind.PASSWORD]
    setting = [one for one in setting if one.change.action is not Action.DELETE]
    made = (Action.CREATE, Action.REPLACE)
    new = {one.name for one in setting if one.entry is None and one.change.action in made}
    return sorted(setting, key=lambda one: 1 if one.entry is None else 2 * (one.entry.owner in new))


def _was_not_made(err: proxmox.RefusedError | proxmox.ProxmoxUnreachableError) -> bool:
    """Return whether Proxmox surely made nothing: it refused, or was never asked."""
    if isinstance(err, proxmox.RefusedError):
        return err.status < _SERVER_ERROR or isinstance(err, proxmox.MissingError)
    return True


def _describe(step: CredentialStep) -> str:
    return f"the token {step.name}" if step.entry is None else f"the role of the token {step.name}"
