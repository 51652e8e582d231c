"""Looking at everything that a plan of tokens and passwords depends on."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING, Any

from stackyard.desired import Credentials, Secret
from stackyard.engine.tofu import PlanMode
from stackyard.path.credentials.cluster import find_unaccepted, read_present, require_shown
from stackyard.path.credentials.plan import Situation, find_kept, plan_credentials
from stackyard.path.credentials.record import CredentialRecord, fits_fingerprint
from stackyard.path.credentials.rows import CredentialPlan
from stackyard.path.guard_facts import caller_of
from stackyard.render.objects import address_of_object
from stackyard.render.references import short_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.clients import proxmox
    from stackyard.desired import ClusterObject
    from stackyard.path.credentials.cluster import PresentCredentials
    from stackyard.path.known_state import KnownState
    from stackyard.path.plan import PlanRequest
    from stackyard.path.run import Run
    from stackyard.state.targets import TargetRecord

__all__ = ["find_imports", "import_id_of", "look_at_credentials"]

_KEPT = "api_tokens."


async def look_at_credentials(
    run: Run, plan_request: PlanRequest, target: TargetRecord | None
) -> CredentialPlan:
    """Return what has to be done beside the engine; nothing for a target without tokens and passwords.

    Raises:
        CredentialsHiddenError: Not everything that this target has made can be seen.
        PlainSecretsError: A token is to be made, and the secrets of the site are not encrypted.
        ProxmoxError: The cluster does not answer.
    """
    resolved = run.resolved
    record = CredentialRecord.of(target)
    is_normal = plan_request.mode is PlanMode.NORMAL
    wanted = resolved.desired.credentials if is_normal else Credentials()
    has_made = bool(record.tokens or record.passwords or record.grants)
    if resolved.tokens is None or plan_request.targets or not (has_made or wanted != Credentials()):
        return CredentialPlan()
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
        node_tokens={name: nodes for name in kept if (nodes := resolved.tokens.list_users(name))},
        users=frozenset(_list_users(resolved.desired.objects)),
        caller=caller_of(resolved.connection),
        permits=plan_request.allowances.permits,
        changed_passwords=frozenset(_find_changed(run, wanted, record)),
        has_login=plan_request.has_login,
    )
    texts = {token.id: find_kept(token, situation) for token in wanted.tokens}
    held = {name: text for name, text in texts.items() if text}
    unaccepted = await find_unaccepted(resolved.connection, held, situation.present)
    judged = dataclasses.replace(situation.present, unaccepted=unaccepted)
    made = plan_credentials(dataclasses.replace(situation, present=judged))
    if made.makes_tokens:
        await asyncio.to_thread(resolved.tokens.require_safe)
    return made


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
        if (found := import_id_of(one)) in made and address_of_object(one.key) not in known.instances
    }
    if not wanted:
        return []
    there = await _read_ids(run.client)
    return [{"to": address, "id": one[1]} for address, one in wanted.items() if one in there]


def import_id_of(one: ClusterObject) -> tuple[str, str] | None:
    """Return the kind and the id of a role, a user or an ACL entry; None for anything else."""
    kind, values = short_type(one.key.type), one.attributes
    if kind in ("role", "user"):
        return kind, str(values[f"{kind}_id"])
    if kind != "acl":
        return None
    owner = values.get("user_id") or values.get("group_id")
    return kind, f"{values['path']}?{owner}?{values['role_id']}"


async def _read_ids(client: proxmox.Client) -> set[tuple[str, str]]:
    rows: tuple[list[Mapping[str, Any]], ...] = await asyncio.gather(
        client.get("/access/roles"), client.get("/access/users"), client.get("/access/acl")
    )
    roles, users, entries = rows
    return {
        *(("role", str(row["roleid"])) for row in roles),
        *(("user", str(row["userid"])) for row in users),
        *(("acl", f"{row['path']}?{row['ugid']}?{row['roleid']}") for row in entries),
    }
