"""What has to be done so that tokens, their roles and passwords are as a file says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.clients.proxmox.access_calls import AccessEntry, TokenSettings
from stackyard.engine.changes import SENSITIVE, Action, Difference
from stackyard.guard import Finding, Permit
from stackyard.guard.destruction import ALLOW_DESTROY
from stackyard.path.credentials import findings
from stackyard.path.credentials.cluster import PresentCredentials
from stackyard.path.credentials.record import CredentialRecord, TokenRecord
from stackyard.path.credentials.rows import (
    CredentialKind,
    CredentialPlan,
    CredentialStep,
    address_of_credential,
    describe_token,
    make_row,
    name_grant,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.base.diagnostics import Kind
    from stackyard.desired import ApiToken, Credentials, TokenGrant

__all__ = ["Situation", "find_kept", "plan_credentials", "settings_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Everything that a plan depends on.

    Attributes:
        wanted: What the file says; nothing where all is to go.
        record: What the target has made.
        present: What the cluster has.
        kept: The tokens in the secrets of the site, by their names there.
        node_tokens: Which nodes of the site use the token of a name there.
        users: The users that the file describes.
        caller: The token that the run uses.
        permits: What the user has named.
        changed_passwords: The users whose passwords are others than those that they were given.
        has_login: Whether somebody logged in, who sets passwords.
        staying: The tokens that stay although all is to go, because the site uses them.
    """

    wanted: Credentials
    record: CredentialRecord = field(default_factory=CredentialRecord)
    present: PresentCredentials = field(default_factory=PresentCredentials)
    kept: Mapping[str, str] = field(default_factory=dict, repr=False)
    node_tokens: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    users: frozenset[str] = frozenset()
    caller: str = ""
    permits: frozenset[Permit] = frozenset()
    changed_passwords: frozenset[str] = frozenset()
    has_login: bool = False
    staying: frozenset[str] = frozenset()


def settings_of(token: ApiToken) -> TokenSettings:
    """Return a token of a file as Proxmox has it."""
    return TokenSettings(id=token.id, separates=token.separates, comment=token.comment, expires=token.expires)


def plan_credentials(situation: Situation) -> CredentialPlan:
    """Return what has to be done."""
    found: list[Finding] = []
    going = list(_plan_removals(situation, found))
    tokens = [step for one in situation.wanted.tokens if (step := _plan_token(one, situation, found))]
    renewed = {step.name for step in tokens if step.change.action in (Action.CREATE, Action.REPLACE)}
    grants = [step for one in situation.wanted.grants if (step := _plan_grant(one, situation, found))]
    passwords = list(_plan_passwords(situation, found))
    gone = {step.name for step in going if step.kind is CredentialKind.TOKEN}
    return CredentialPlan(
        steps=(*going, *tokens, *grants, *passwords),
        findings=tuple(found),
        forgotten=frozenset(_find_forgotten(situation, gone | renewed)),
        used=dict(_find_used(situation)),
    )


def _find_used(situation: Situation) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Return the tokens that nodes of the site use, each with these nodes; but not the one of the run."""
    stores = {name: known.store for name, known in situation.record.tokens.items()}
    stores |= {token.id: token.store for token in situation.wanted.tokens if token.id not in stores}
    for name, store in stores.items():
        nodes = situation.node_tokens.get(store, ())
        is_held = situation.kept.get(store, "").partition("=")[0] == name
        if nodes and is_held and name != situation.caller:
            yield name, nodes


def find_kept(token: ApiToken, situation: Situation) -> str:
    """Return a token with its secret as the secrets have it, perhaps under an earlier name; empty if not."""
    known = situation.record.tokens.get(token.id)
    names = (token.store, *(() if known is None else (known.store,)))
    texts = (situation.kept.get(name, "") for name in names)
    return next((text for text in texts if text.partition("=")[0] == token.id), "")


def _plan_token(token: ApiToken, situation: Situation, found: list[Finding]) -> CredentialStep | None:
    _check_token(token, situation, found)
    settings, present = settings_of(token), situation.present.tokens.get(token.id)
    known = situation.record.tokens.get(token.id)
    is_ours = known == TokenRecord(store=token.store)
    action, differences, imported = Action.CREATE, [], None
    if present is not None:
        differences = list(_compare(token, situation, present))
        action = Action.UPDATE if differences else Action.NOTHING
        reason = _find_reason_to_renew(token, situation, found)
        if reason is not None:
            differences.insert(0, Difference(path=("secret",), before=reason, after=SENSITIVE))
            action = Action.REPLACE
        elif is_ours and not differences:
            return None
        elif known is None:
            imported = token.id
    change = make_row(
        CredentialKind.TOKEN,
        token.id,
        action,
        before=None if present is None else describe_token(present),
        after=describe_token(settings, token.store),
        differences=tuple(differences),
        imported_as=imported,
    )
    return CredentialStep(kind=CredentialKind.TOKEN, change=change, token=settings, store=token.store)


def _check_token(token: ApiToken, situation: Situation, found: list[Finding]) -> None:
    if token.user not in situation.users and token.user not in situation.present.users:
        detail = (
            f"{token.user}, whose token {token.name} is to be created, does not exist, or cannot be seen."
        )
        found.append(_finding(findings.USER_UNKNOWN, detail, CredentialKind.TOKEN, token.id))
    held = situation.kept.get(token.store, "").partition("=")[0]
    if held and held != token.id:
        detail = f"`api_tokens.{token.store}` is the token {held}, and {token.id} would take its place."
        found.append(_finding(findings.STORE_TAKEN, detail, CredentialKind.TOKEN, token.id))
    known = situation.record.tokens.get(token.id)
    if held == token.id and known is None and token.id not in situation.present.tokens:
        detail = f"`api_tokens.{token.store}` is a token {held} that this cluster does not have."
        found.append(_finding(findings.STORE_TAKEN, detail, CredentialKind.TOKEN, token.id))
    if known is not None and known.store != token.store:
        nodes = situation.node_tokens.get(known.store, ())
        if nodes:
            detail = f"{', '.join(nodes)} use `api_tokens.{known.store}`, which would be removed."
            found.append(_finding(findings.USED_BY_NODES, detail, CredentialKind.TOKEN, token.id))


def _find_reason_to_renew(token: ApiToken, situation: Situation, found: list[Finding]) -> str | None:
    """Return why a token that exists gets a new secret; None where it keeps the one that it has."""
    permit = Permit(option=findings.RENEW_TOKEN, name=token.id)
    known = situation.record.tokens.get(token.id)
    # Only a run of ours that was stopped leaves a token that is not complete: no one has its secret.
    is_ours = known is not None and not known.is_complete
    kind, reason = None, None
    if not find_kept(token, situation):
        kind, reason = findings.SECRET_UNKNOWN, "not in the secrets"
    elif token.id in situation.present.unaccepted:
        kind, reason = findings.SECRET_REFUSED, "refused by the cluster"
    elif permit in situation.permits:
        reason = "to be renewed"
    if reason is not None and token.id == situation.caller:
        detail = f"{token.id} cannot replace itself."
        found.append(_finding(findings.IN_USE, detail, CredentialKind.TOKEN, token.id))
    elif kind is not None and not is_ours:
        detail = f"{token.id} is on the cluster, and its secret is {reason} (`api_tokens.{token.store}`)."
        found.append(_finding(kind, detail, CredentialKind.TOKEN, token.id, permit))
    return reason


def _compare(token: ApiToken, situation: Situation, has: TokenSettings) -> Iterator[Difference]:
    before, after = describe_token(has), describe_token(settings_of(token))
    for name in before:
        if before[name] != after[name]:
            yield Difference(path=(name,), before=before[name], after=after[name])
    known = situation.record.tokens.get(token.id)
    if known is not None and known.store != token.store:
        old, new = f"api_tokens.{known.store}", f"api_tokens.{token.store}"
        yield Difference(path=("store",), before=old, after=new)


def _plan_grant(grant: TokenGrant, situation: Situation, found: list[Finding]) -> CredentialStep | None:
    entry = AccessEntry(path=grant.path, owner=grant.token, role=grant.role, propagate=grant.propagate)
    tokens = {token.id for token in situation.wanted.tokens}
    name = name_grant(entry)
    if grant.token not in tokens and grant.token not in situation.present.tokens:
        detail = f"{grant.token} is neither in `tokens` nor on the cluster."
        found.append(_finding(findings.GRANT_UNKNOWN, detail, CredentialKind.GRANT, name))
    if entry in situation.present.entries:
        return None
    other = AccessEntry(path=entry.path, owner=entry.owner, role=entry.role, propagate=not entry.propagate)
    if other in situation.present.entries:
        difference = Difference(path=("propagate",), before=other.propagate, after=entry.propagate)
        change = make_row(CredentialKind.GRANT, name, Action.UPDATE, differences=(difference,))
    else:
        change = make_row(CredentialKind.GRANT, name, Action.CREATE, after={"propagate": entry.propagate})
    return CredentialStep(kind=CredentialKind.GRANT, change=change, entry=entry)


def _plan_passwords(situation: Situation, found: list[Finding]) -> Iterator[CredentialStep]:
    for password in situation.wanted.passwords:
        user = password.user
        is_set = user in situation.present.users and user in situation.record.passwords
        if is_set and user not in situation.changed_passwords:
            continue
        if not situation.has_login:
            detail = f"The password of {user} is to be set."
            found.append(_finding(findings.LOGIN_NEEDED, detail, CredentialKind.PASSWORD, user))
        if is_set:
            secret = Difference(path=("password",), before=SENSITIVE, after=SENSITIVE)
            change = make_row(CredentialKind.PASSWORD, user, Action.UPDATE, differences=(secret,))
        else:
            change = make_row(CredentialKind.PASSWORD, user, Action.CREATE, after={"password": SENSITIVE})
        yield CredentialStep(kind=CredentialKind.PASSWORD, change=change, password=password)


def _plan_removals(situation: Situation, found: list[Finding]) -> Iterator[CredentialStep]:
    """Return what this target has made and its file no longer has; what others have made is not touched."""
    wanted = {token.id for token in situation.wanted.tokens} | situation.staying
    grants = {(one.token, one.path, one.role) for one in situation.wanted.grants}
    going = {name for name in situation.record.tokens if name not in wanted} & {*situation.present.tokens}
    for entry in sorted(situation.record.grants & situation.present.entries):
        # The roles of a token go with it.
        is_wanted = (entry.owner, entry.path, entry.role) in grants or entry.owner in situation.staying
        if not is_wanted and entry.owner not in going:
            change = make_row(CredentialKind.GRANT, name_grant(entry), Action.DELETE, before={})
            # Until then, the run needs what its own token may do.
            is_last = entry.owner == situation.caller
            yield CredentialStep(kind=CredentialKind.GRANT, change=change, entry=entry, is_last=is_last)
    for token_id in sorted(going):
        store = situation.record.tokens[token_id].store
        found.extend(_check_removal(token_id, store, situation))
        before = describe_token(situation.present.tokens[token_id], store)
        change = make_row(CredentialKind.TOKEN, token_id, Action.DELETE, before=before)
        yield CredentialStep(kind=CredentialKind.TOKEN, change=change, store=store)


def _check_removal(token_id: str, store: str, situation: Situation) -> Iterator[Finding]:
    kind = CredentialKind.TOKEN
    nodes = situation.node_tokens.get(store, ())
    if token_id == situation.caller:
        yield _finding(findings.IN_USE, f"{token_id} is what this run logs in with.", kind, token_id)
    elif nodes and situation.kept.get(store, "").partition("=")[0] == token_id:
        detail = f"{token_id} is `api_tokens.{store}`, which {', '.join(nodes)} use."
        yield _finding(findings.USED_BY_NODES, detail, kind, token_id)
    else:
        permit = Permit(option=ALLOW_DESTROY, name=token_id)
        yield _finding(findings.DESTROYS, f"The token {token_id} would be removed.", kind, token_id, permit)


def _find_forgotten(situation: Situation, touched: set[str]) -> Iterator[str | AccessEntry]:
    wanted = {token.id for token in situation.wanted.tokens} | touched
    yield from (
        name
        for name in situation.record.tokens
        if name not in wanted and name not in situation.present.tokens
    )
    users = {password.user for password in situation.wanted.passwords}
    users |= {token.partition("!")[0] for token in situation.staying}
    yield from (user for user in situation.record.passwords if user not in users)
    grants = {(one.token, one.path, one.role) for one in situation.wanted.grants}
    for entry in situation.record.grants - situation.present.entries:
        if (entry.owner, entry.path, entry.role) not in grants:
            yield entry


def _finding(kind: Kind, detail: str, of: CredentialKind, name: str, permit: Permit | None = None) -> Finding:
    address = address_of_credential(of, name)
    return Finding(kind=kind, detail=detail, permit=permit, subject=name, address=address, label=address)
