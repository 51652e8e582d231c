"""`proxmox_acme_dns_plugin`: how the nodes answer DNS challenges of certificate authorities."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from stackyard.fields.properties import flag
from stackyard.provider.checks import between
from stackyard.provider.crud import Collection
from stackyard.provider.fields import FLAG, NUMBER, TEXT, Field
from stackyard.provider.kinds import both_names
from stackyard.provider.problems import Problem
from stackyard.provider.resources.certificates.plugins import DATA, PATH, check_data
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["RESOURCE"]

_DELAY_S = 30
_VERSION = "data_wo_version"


def _own_state(known: Object, found: Mapping[str, Any]) -> Object:
    delay = found.get("validation-delay")
    # What was given as write-only data is in no state; everyone who may change a plugin can read it.
    shows = known.get("data") is not None and found.get("data") is not None
    return {
        "data": DATA.read(found["data"]) if shows else None,
        "disable": flag(found.get("disable")) or (False if known.get("disable") is False else None),
        "validation_delay": _DELAY_S if delay is None else int(delay),
    }


_PLUGINS = Collection(
    path=PATH,
    key="id",
    attribute="plugin",
    fields=(
        Field(attribute="api", form=TEXT, clears=False),
        Field(attribute="data", form=DATA, secret=True, write_only="data_wo"),
        Field(attribute="disable", form=FLAG, off=False),
        Field(attribute="validation_delay", key="validation-delay", form=NUMBER, clears=False),
        Field(attribute="digest", form=TEXT, clears=False),
    ),
    own_state=_own_state,
    made_with={"type": "dns"},
    is_row=lambda state, row: row.get("plugin") == state["plugin"],
)


async def _create(work: Work, planned: Object) -> Object:
    # A digest is of what is there; a new plugin is compared with nothing.
    return _with_digest(work, await _PLUGINS.create(work, {**planned, "digest": None}))


async def _update(work: Work, prior: Object, planned: Object) -> Object:
    if prior.get(_VERSION) is not None and planned.get(_VERSION) is None:
        # There is data that no state has. It goes unless other data takes its place.
        prior = {**prior, "data": {"written": "only"}}
    return _with_digest(work, await _PLUGINS.update(work, prior, planned))


def _with_digest(work: Work, state: Object) -> Object:
    """Return a state with the digest that is configured, which the engine expects to find again."""
    given = work.config.get("digest")
    return state if given is None else {**state, "digest": given}


def _check(config: Object) -> Iterator[Problem]:
    if config.get("data") is not None and config.get("data_wo") is not None:
        yield Problem(path=("data",), detail="`data` and `data_wo` exclude each other.")
    if config.get(_VERSION) is not None and config.get("data_wo") is None:
        yield Problem(path=(_VERSION,), detail=f"`{_VERSION}` needs `data_wo`.")


RESOURCE = dataclasses.replace(
    _PLUGINS.resource(
        both_names("acme_dns_plugin"),
        # Data that is there shows that it is to be read, as after a plugin was made with some.
        identify=lambda given: {"plugin": given, "data": {}},
        rules={
            # bpg changes the plugin of the new name, which is not there.
            "plugin": Rule(replace=True),
            "data": Rule(check=check_data),
            "data_wo": Rule(check=check_data),
            "validation_delay": Rule(default=_DELAY_S, check=between(0, 172800)),
        },
        validate=_check,
    ),
    create=_create,
    update=_update,
)
