"""Looking at everything that a plan of tokens and passwords depends on."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING

from stackyard.desired import Credentials, Secret
from stackyard.engine.tofu import PlanMode
from stackyard.path.credentials.cluster import find_unaccepted, read_present, require_shown
from stackyard.path.credentials.kept_access import (
    explain_kept,
    find_kept_access,
    import_id_of,
    read_import_ids,
)
from stackyard.path.credentials.plan import Situation, find_kept, plan_credentials
from stackyard.path.credentials.record import CredentialRecord, fits_fingerprint
from stackyard.path.credentials.rows import CredentialPlan, KeptAccess
from stackyard.path.guard_facts import caller_of
from stackyard.render.objects import address_of_object
from stackyard.render.references import short_type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.desired import ClusterObject
    from stackyard.path.credentials.cluster import PresentCredentials
    from stackyard.path.credentials.token_store import TokenStore
    from stackyard.path.known_state import KnownState
    from stackyard.path.plan_request import PlanRequest
    from stackyard.path.run import Run
    from stackyard.state.targets import TargetRecord

__all__ = ["find_imports", "look_at_credentials"]

_KEPT = "api_tokens."


async def look_at_credentials(
    run: Run, plan_request: PlanRequest, target: TargetRecord | None, known: KnownState
) -> CredentialPlan:
    """Return what has to be done beside the engine; nothing for a target without tokens and passwords.

    Args:
        run: The target.
        plan_request: What the user asks for.
        target: The record of the target.
        known: What its state has.

    Raises:
        CredentialsHiddenError: Not everything that this target has made can be seen.
        PlainSecretsError: A token is to be made, and the secrets of the site are not encrypted.
        ProxmoxError: The cluster does not answer.
    """
    resolved, record = run.resolved, CredentialRecord.of(target)
    if resolved.tokens is None or plan_request.targets:
        return CredentialPlan()
    kept = KeptAccess()
    if plan_request.mode is PlanMode.DESTROY:
        used = _find_used_tokens(run, resolved.tokens, record)
        kept = await find_kept_access(run.client, used, known.instances, record.imports)
    wanted = resolved.desired.credentials if plan_request.mode is PlanMode.NORMAL else Credentials()
    made = CredentialPlan()
    if record.tokens or record.passwords or record.grants or wanted != Credentials():
        situation = await _read_situation(run, plan_request, record, wanted)
        made = plan_credentials(dataclasses.replace(situation, staying=kept.tokens))
    if made.makes_tokens:
        await asyncio.to_thread(resolved.tokens.require_safe)
    said = (*made.findings, *explain_kept(kept, record.tokens))
    return dataclasses.replace(made, kept=kept, findings=said)


async def _read_situation(
    run: Run, plan_request: PlanRequest, record: CredentialRecord, wanted: Credentials
) -> Situation:
    """Return everything that a plan of tokens and passwords depends on."""
    resolved = run.resolved
    kept = {
        name.removeprefix(_KEPT): resolved.secrets.reveal(Secret(secret=name))
        for name in resolved.secrets
        if name.startswith(_KEPT)
    }
    situation = Situation(
        wanted=wanted,
        record=record,
        present=await _read_shown(run, record),
        kept=kept,
        node_tokens={
            name: nodes for name in kept if resolved.tokens and (nodes := resolved.tokens.list_users(name))
        },
        users=frozenset(_list_users(resolved.desired.objects)),
        caller=caller_of(resolved.connection),
        permits=plan_request.allowances.permits,
        changed_passwords=frozenset(_find_changed(run, wanted, record)),
        has_login=plan_request.has_login,
    )
    texts = {token.id: find_kept(token, situation) for token in wanted.tokens}
    held = {name: text for name, text in texts.items() if text}
    unaccepted = await find_unaccepted(resolved.connection, held, situation.present)
    return dataclasses.replace(
        situation, present=dataclasses.replace(situation.present, unaccepted=unaccepted)
    )


def _find_used_tokens(run: Run, tokens: TokenStore, record: CredentialRecord) -> frozenset[str]:
    """Return the token that a run uses, and those of the target that nodes of the site use."""
    used = {caller_of(run.resolved.connection)} - {""}
    for token, known in record.tokens.items():
        held = Secret(secret=f"{_KEPT}{known.store}")
        is_held = held.secret in run.resolved.secrets and (
            run.resolved.secrets.reveal(held).partition("=")[0] == token
        )
        if is_held and tokens.list_users(known.store):
            used.add(token)
    return frozenset(used)


async def _read_shown(run: Run, record: CredentialRecord) -> PresentCredentials:
    """Return what there is; what this target has made and is not listed is gone, and not only hidden."""
    present = await read_present(run.client)
    missing = {*record.tokens} - {*present.tokens} | {*record.passwords} - {*present.users}
    await require_shown(run.client, missing)
    return present


def _list_users(objects: tuple[ClusterObject, ...]) -> Iterator[str]:
    for one in objects:
        if short_type(one.key.type) == "user":
            yield str(one.attributes["user_id"])


def _find_changed(run: Run, wanted: Credentials, record: CredentialRecord) -> Iterator[str]:
    for password in wanted.passwords:
        known = record.passwords.get(password.user)
        value = run.resolved.secrets.reveal(password.secret)
        if known is not None and not fits_fingerprint(known, password.user, value, run.keys):
            yield password.user


async def find_imports(run: Run, target: TargetRecord | None, known: KnownState) -> list[dict[str, str]]:
    """Return what the engine takes over: what a login has made before the first apply, and is still there.

    Raises:
        ProxmoxError: The cluster does not answer.
    """
    made = CredentialRecord.of(target).imports
    wanted = {
        address_of_object(one.key): found
        for one in run.resolved.desired.objects
        if (found := import_id_of(short_type(one.key.type), one.attributes)) in made
        and address_of_object(one.key) not in known.instances
    }
    if not wanted:
        return []
    there = await read_import_ids(run.client)
    return [{"to": address, "id": one[1]} for address, one in wanted.items() if one in there]
