"""`proxmox_haresource`: a guest that the manager of the cluster keeps running."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.provider.checks import between, matches, one_of
from stackyard.provider.crud import Collection
from stackyard.provider.fields import FLAG, NUMBER, TEXT, Field
from stackyard.provider.kinds import both_names
from stackyard.provider.problems import Problem
from stackyard.provider.resources.ha.checks import COMMENT, HA_ID
from stackyard.provider.schema import Rule
from stackyard.provider.values import Object, get_known

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["RESOURCE"]


def _resource_state(known: Object, found: Mapping[str, Any]) -> Object:
    kind = str(known["id"]).partition(":")[0]
    return {"type": found.get("type") or kind, "state": found.get("state") or known.get("state")}


def _check_resource(config: Object) -> Iterator[Problem]:
    ident, kind = get_known(config, "resource_id"), get_known(config, "type")
    if ident is not None and kind is not None and ident.partition(":")[0] != kind:
        yield Problem(path=("type",), detail=f"`type` is {kind}, and `resource_id` is {ident}.")


RESOURCE = Collection(
    path="/cluster/ha/resources",
    key="sid",
    attribute="resource_id",
    fields=(
        Field(attribute="state", form=TEXT, clears=False),
        Field(attribute="comment", form=TEXT),
        Field(attribute="failback", form=FLAG),
        Field(attribute="group", form=TEXT),
        Field(attribute="max_relocate", form=NUMBER),
        Field(attribute="max_restart", form=NUMBER),
    ),
    own_state=_resource_state,
).resource(
    both_names("haresource"),
    rules={
        "id": Rule(keep=True),
        # bpg changes the old one, and then says itself that the result is not what was planned.
        "resource_id": Rule(replace=True, check=matches(r"(vm|ct):\d+", "be vm:ID or ct:ID")),
        "state": Rule(default="started", check=one_of("started", "stopped", "disabled", "ignored")),
        "type": Rule(keep=True, check=one_of("vm", "ct")),
        "comment": Rule(check=COMMENT),
        "group": Rule(check=HA_ID),
        "max_relocate": Rule(check=between(0, 10)),
        "max_restart": Rule(check=between(0, 10)),
    },
    validate=_check_resource,
)
