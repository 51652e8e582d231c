"""`proxmox_storage_pbs`: a datastore of a Proxmox Backup Server."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from stackyard.provider.create_once import create_object
from stackyard.provider.fields import TEXT, Field, params, values
from stackyard.provider.problems import Problem
from stackyard.provider.resources.storage.backups import check_backups
from stackyard.provider.resources.storage.storages import StorageKind, fixed, lift_backups
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["RESOURCE"]

_FIXED = ("server", "datastore", "username", "namespace")
_SECRETS = ("password", "encryption_key")
_NEW_KEY = {"encryption-key": "autogen"}
_KEY = "encryption-key"

_KIND = StorageKind(
    kind="pbs",
    type="pbs",
    fields=(
        *(fixed(name) for name in _FIXED),
        *(
            Field(
                attribute=name,
                key=name.replace("_", "-"),
                form=TEXT,
                secret=True,
                create_only=True,
                clears=False,
            )
            for name in _SECRETS
        ),
        Field(attribute="fingerprint", form=TEXT),
    ),
    rules={
        **{name: Rule(replace=True) for name in (*_FIXED, *_SECRETS, "generate_encryption_key")},
        # Proxmox returns it once; without it, the backups cannot be read any more.
        "generated_encryption_key": Rule(keep=True),
        "encryption_key_fingerprint": Rule(keep=True),
    },
    backups=True,
)


def _own_state(known: Object, row: Mapping[str, Any]) -> Object:
    shown = row.get(_KEY)
    generated = known.get("generated_encryption_key")
    return {
        **_KIND.own_state(known, row),
        # A key that has no fingerprint is shown as 1.
        "encryption_key_fingerprint": None if shown in (None, "1", 1) else str(shown),
        "generated_encryption_key": generated if isinstance(generated, str) else None,
    }


_STORAGES = dataclasses.replace(_KIND.collection(), own_state=_own_state)


async def _create(work: Work, planned: Object) -> Object:
    fields = [field for field in _KIND.all_fields() if not field.secret]
    wanted = lift_backups(planned)
    answers: list[Any] = []
    generates = bool(planned.get("generate_encryption_key"))
    shown = {**params(fields, wanted), "type": "pbs"}
    whole = {**params(_KIND.all_fields(), wanted), "type": "pbs", **(_NEW_KEY if generates else {})}

    async def make() -> None:
        answers.append(await work.client.post("/storage", {"storage": planned["id"], **whole}))

    was_there = await create_object(
        work, str(planned["id"]), sent=shown, make=make, look=lambda: _STORAGES.find(work, planned)
    )
    if not answers:
        # It is ours, and what it was given last may be another password, and a key that was lost on the way.
        given = {name: whole[name] for name in ("password", _KEY) if name in whole}
        answers.append(await work.client.put(_STORAGES.path_of(planned), given))
    key = (answers[-1] or {}).get("config", {}).get(_KEY) if generates else None
    state = {**wanted, "generated_encryption_key": key}
    found = await _STORAGES.find(work, state) or {}
    made = {**state, **values(fields, found), **_own_state(state, found)}
    work.keep(made)
    if key is not None:
        work.warn(
            "The encryption key is in the state",
            f"The state keeps `generated_encryption_key` of {planned['id']} as text, as bpg/proxmox does. "
            "Whoever can read the state can decrypt the backups.",
        )
    if was_there:
        return await _STORAGES.update(work, made, state)
    return made


def _check(config: Object) -> Iterator[Problem]:
    yield from check_backups(config)
    if config.get("encryption_key") is not None and config.get("generate_encryption_key") is not None:
        yield Problem(
            path=("encryption_key",),
            detail="`encryption_key` and `generate_encryption_key` exclude each other.",
        )


async def _update(work: Work, prior: Object, planned: Object) -> Object:
    return await _STORAGES.update(work, lift_backups(prior), lift_backups(planned))


RESOURCE = dataclasses.replace(
    _KIND.resource(), create=_create, read=_STORAGES.read, update=_update, validate=_check
)
