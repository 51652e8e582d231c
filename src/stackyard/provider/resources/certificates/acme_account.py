"""`proxmox_acme_account`: an account at a certificate authority that speaks ACME."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.errors import InvalidInputError
from stackyard.clients import proxmox
from stackyard.provider.checks import matches
from stackyard.provider.create_once import create_object, note_seen
from stackyard.provider.fields import TEXT, Field, params
from stackyard.provider.kinds import Resource, both_names
from stackyard.provider.problems import Problem
from stackyard.provider.resources.certificates.tasks import await_running, run_task
from stackyard.provider.schema import Rule
from stackyard.provider.values import UNKNOWN, Object

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.provider.kinds import Work
    from stackyard.provider.plan import PlanDraft

__all__ = ["PATH", "RESOURCE", "AcmeAccountElsewhereError"]

PATH = "/cluster/acme/account"
_SECRETS = ("eab_kid", "eab_hmac_key")
_AGREED = {"directory": "directory", "tos": "tos_url"}
_FIELDS = (
    Field(attribute="contact", form=TEXT),
    *(Field(attribute=attribute, key=key, form=TEXT) for attribute, key in _AGREED.items()),
    *(Field(attribute=name, key=name.replace("_", "-"), form=TEXT, secret=True) for name in _SECRETS),
)
_MAIL = "mailto:"


class AcmeAccountElsewhereError(InvalidInputError):
    """An account is registered with other terms, or at another authority, than a configuration now says."""

    code = "E-PROVIDER-ACME-ACCOUNT"
    summary = "The ACME account is registered otherwise"
    default_remedy = (
        "Write what the account has, or register another one in its place: "
        "`-replace=ADDRESS` deactivates the account and makes a new one."
    )


def _path(state: Object) -> str:
    return f"{PATH}/{proxmox.quote(state['name'])}"


async def _find(work: Work, state: Object) -> Mapping[str, Any] | None:
    # Anyone may list the names, and root alone read an account: what is not listed is gone.
    listed = await work.client.get(PATH)
    if all(row.get("name") != state["name"] for row in listed):
        return None
    found: Mapping[str, Any] = await work.client.get(_path(state))
    account = found.get("account") or {}
    contacts = [str(one).removeprefix(_MAIL) for one in account.get("contact") or ()]
    return {
        "contact": ",".join(contacts) or None,
        "created_at": account.get("createdAt") or "",
        "directory": found.get("directory") or "",
        "location": found.get("location") or "",
        "tos_url": found.get("tos"),
    }


def _state(known: Object, found: Mapping[str, Any]) -> Object:
    told = {attribute: found.get(key) for attribute, key in _AGREED.items()}
    # What a configuration leaves out was the choice of Proxmox; a state has it only after an import.
    agreed = {name: told[name] if known.get(name) is not None else None for name in told}
    return {
        **known,
        **agreed,
        "contact": _spell_contact(known.get("contact"), found["contact"]),
        "created_at": found["created_at"],
        "location": found["location"],
    }


def _spell_contact(known: Any, told: str | None) -> str:
    """Return the addresses as they were written; some authorities do not tell any."""
    if told is None:
        return str(known or "")
    written = [part.strip() for part in str(known or "").replace(";", ",").split(",")]
    return str(known) if written == told.split(",") else told


async def _create(work: Work, planned: Object) -> Object:
    whole = {"name": planned["name"], **params(_FIELDS, planned)}
    shown = params([field for field in _FIELDS if not field.secret], planned)

    async def look() -> Mapping[str, Any] | None:
        await await_running(work, "acmeregister")
        found = await _find(work, planned)
        return None if found is None else {**found, "contact": found["contact"] or planned["contact"]}

    async def make() -> None:
        await run_task(work, "acmeregister", lambda: work.client.post(PATH, whole))

    was_there = await create_object(work, str(planned["name"]), sent=shown, make=make, look=look)
    found = await _find(work, planned)
    state = planned if found is None else _state(planned, found)
    work.keep(state)
    if was_there:
        await _set_contact(work, planned)
    return state


async def _read(work: Work, state: Object) -> Object | None:
    await note_seen(work, str(state["name"]))
    found = await _find(work, state)
    return None if found is None else _state(state, found)


async def _update(work: Work, prior: Object, planned: Object) -> Object:
    found = await _find(work, prior) or {}
    for attribute, key in _AGREED.items():
        if planned.get(attribute) is not None and planned[attribute] != found.get(key):
            raise AcmeAccountElsewhereError(
                f"`{attribute}` of the ACME account {prior['name']} is {found.get(key) or 'not set'}, "
                f"and not {planned[attribute]}."
            )
    if planned["contact"] != prior["contact"]:
        await _set_contact(work, planned)
    return {**planned, **{name: prior.get(name) for name in ("created_at", "location")}}


async def _set_contact(work: Work, planned: Object) -> None:
    await run_task(
        work, "acmeupdate", lambda: work.client.put(_path(planned), {"contact": planned["contact"]})
    )


async def _delete(work: Work, state: Object) -> None:
    await note_seen(work, str(state["name"]))
    try:
        await run_task(work, "acmedeactivate", lambda: work.client.delete(_path(state)))
    except (proxmox.RefusedError, proxmox.TaskFailedError):
        # Proxmox refuses in the same way what is gone and what the authority does not accept.
        if await _find(work, state) is not None:
            raise


def _plan(draft: PlanDraft) -> None:
    """Replace an account that is to be at another authority, or under other terms."""
    for name in _AGREED:
        before, after = (draft.prior or {}).get(name), draft.values.get(name)
        if before is not None and after is not None and after != before:
            draft.replace.append((name,))


def _check(config: Object) -> Iterator[Problem]:
    for name, other in (_SECRETS, _SECRETS[::-1]):
        if config.get(name) is not None and config.get(other) is None:
            yield Problem(path=(name,), detail=f"`{name}` needs `{other}`.")


def _check_contact(value: Any) -> str | None:
    return None if value is UNKNOWN or str(value).strip() else "must have an e-mail address"


RESOURCE = Resource(
    names=both_names("acme_account"),
    create=_create,
    read=_read,
    update=_update,
    delete=_delete,
    # What the state has by now is compared with a configuration; the rest is found out.
    identify=lambda given: {"name": given, "directory": "", "tos": ""},
    rules={
        # bpg changes the account of the new name, which is not there.
        "name": Rule(default="default", replace=True),
        "contact": Rule(check=_check_contact),
        "directory": Rule(check=matches("https?://.*", "be a URL that begins with http:// or https://")),
        "created_at": Rule(keep=True),
        "location": Rule(keep=True),
        **{name: Rule(replace=True) for name in _SECRETS},
    },
    plan=_plan,
    validate=_check,
)
