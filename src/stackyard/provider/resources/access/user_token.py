"""`proxmox_user_token`: a token of a user, whose secret Proxmox shows once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.provider.checks import matches
from stackyard.provider.create_once import create_object, note_seen
from stackyard.provider.fields import FLAG, TEXT, Field, changes, params, values
from stackyard.provider.kinds import Resource, both_names
from stackyard.provider.problems import ImportIdError
from stackyard.provider.resources.access.moments import MOMENT, is_moment, keep_spelling, same_moment
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["RESOURCE"]

_FIELDS = (
    Field(attribute="comment", form=TEXT),
    Field(attribute="expiration_date", key="expire", form=MOMENT, clears=False),
    Field(attribute="privileges_separation", key="privsep", form=FLAG, clears=False),
)


def _path(state: Object) -> str:
    return f"/access/users/{proxmox.quote(state['user_id'])}/token/{proxmox.quote(state['token_name'])}"


def _name(state: Object) -> str:
    return f"{state['user_id']}!{state['token_name']}"


async def _find(work: Work, state: Object) -> Mapping[str, Any] | None:
    try:
        found: Mapping[str, Any] = await work.client.get(_path(state))
    except proxmox.MissingError:
        return None
    return found


async def _create(work: Work, planned: Object) -> Object:
    sent, answers = params(_FIELDS, planned), []

    async def make() -> None:
        answers.append(await work.client.post(_path(planned), sent))

    await create_object(work, _name(planned), sent=sent, make=make, look=lambda: _find(work, planned))
    if not answers:
        # It is ours and its secret was lost on the way. No one else can have it.
        await work.client.delete(_path(planned))
        await make()
    work.warn(
        "The secret of the token is in the state",
        f"The state keeps `value` of {_name(planned)} as text, as bpg/proxmox does. Whoever can read the "
        "state can use the token.",
    )
    return {**planned, "id": _name(planned), "value": answers[-1]["value"]}


async def _read(work: Work, state: Object) -> Object | None:
    await note_seen(work, _name(state))
    found = await _find(work, state)
    if found is None:
        return None
    # Without an end, a token has the moment 0.
    read = values(_FIELDS, {**found, "expire": found.get("expire") or None})
    return {
        **state,
        **read,
        "id": _name(state),
        "expiration_date": keep_spelling(state, read, "expiration_date"),
    }


async def _update(work: Work, prior: Object, planned: Object) -> Object:
    sent, unset = changes(_FIELDS, prior, planned)
    if planned.get("expiration_date") is None:
        sent["expire"] = 0
    await work.client.put(_path(prior), {**sent, "delete": ",".join(unset) or None})
    return planned


async def _delete(work: Work, state: Object) -> None:
    await note_seen(work, _name(state))
    await work.client.delete(_path(state))


def _identify(given: str) -> Object:
    user, _, token = given.partition("!")
    if not user or not token or "!" in token:
        raise ImportIdError(f"The id of a token has the form USER@REALM!TOKEN, and {given!r} does not.")
    return {"id": given, "user_id": user, "token_name": token}


RESOURCE = Resource(
    names=both_names("user_token"),
    create=_create,
    read=_read,
    update=_update,
    delete=_delete,
    identify=_identify,
    rules={
        "id": Rule(keep=True),
        "expiration_date": Rule(check=is_moment, same=same_moment),
        "privileges_separation": Rule(default=True),
        "token_name": Rule(
            replace=True,
            check=matches(r"[A-Za-z][A-Za-z0-9.\-_]+", "be letters, digits and .-_, and begin with a letter"),
        ),
        "user_id": Rule(replace=True),
        "value": Rule(keep=True),
    },
)
