"""Which notifications go where: `/cluster/notifications/matchers`, and what they can look at."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stackyard.lab.jobs import BACKUP, REPLICATION
from stackyard.lab.problems import PveError
from stackyard.lab.resources.notifications import config
from stackyard.lab.resources.notifications.delivery import ENDPOINTS, is_period
from stackyard.lab.routing import route

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.lab.call import Call

__all__ = ["create_matcher", "delete_matcher", "list_matchers", "read_matcher", "update_matcher"]

_SEVERITIES = frozenset(("info", "notice", "warning", "error", "unknown"))
_DELETABLE = frozenset(
    (
        *("match-severity", "match-field", "match-calendar", "target", "mode", "invert-match"),
        *("comment", "disable"),
    )
)
_TYPES = ("package-updates", "fencing", "replication", "vzdump", "system-mail")


@route("GET /cluster/notifications")
def list_notifications(_call: Call) -> Any:
    """List what there is of notifications."""
    names = ("endpoints", "matchers", "targets", "matcher-fields", "matcher-field-values")
    return [{"name": name} for name in names]


@route("GET /cluster/notifications/matcher-fields")
def list_fields(_call: Call) -> Any:
    """List the fields that matchers can look at."""
    return [{"name": name} for name in ("type", "hostname", "job-id")]


@route("GET /cluster/notifications/matcher-field-values")
def list_values(call: Call) -> Any:
    """List the values that these fields have."""
    rows = [{"value": kind, "field": "type"} for kind in _TYPES]
    jobs = list(call.store.items(BACKUP).items()) if call.may("/", "Sys.Audit") else []
    jobs += [
        (ident, job)
        for ident, job in call.store.items(REPLICATION).items()
        if call.may(f"/vms/{job['guest']}", "VM.Audit")
    ]
    for ident, job in jobs:
        comment = {"comment": job["comment"]} if "comment" in job else {}
        rows.append({"value": ident, **comment, "field": "job-id"})
    return [*rows, *({"value": node, "field": "hostname"} for node in call.world.cluster.nodes())]


@route("GET /cluster/notifications/matchers")
def list_matchers(call: Call) -> Any:
    """List the matchers."""
    return [config.shown(call.store, name) for name in config.entities(call.store, config.MATCHER)]


@route("GET /cluster/notifications/matchers/{name}")
def read_matcher(call: Call) -> Any:
    """Answer one matcher."""
    config.require(call.store, config.MATCHER, call.params["name"])
    return config.shown(call.store, call.params["name"], with_digest=True)


@route("POST /cluster/notifications/matchers")
def create_matcher(call: Call) -> Any:
    """Add a matcher."""
    name, given = str(call.params["name"]), _given(call)
    with call.world.cluster.locked(config.LOCK):
        config.check_unique(call.store, name)
        _check_targets(call, given)
        config.save(call.store, name, {"type": config.MATCHER, **given}, None)


@route("PUT /cluster/notifications/matchers/{name}")
def update_matcher(call: Call) -> Any:
    """Change a matcher."""
    name, given = str(call.params["name"]), _given(call)
    with call.world.cluster.locked(config.LOCK):
        config.check_digest(call)
        old = config.require(call.store, config.MATCHER, name)
        dropped = frozenset(call.params.get("delete", ()))
        for unknown in sorted(dropped - _DELETABLE):
            names = ", ".join(f"`{one}`" for one in sorted(_DELETABLE))
            raise PveError(f"unknown variant `{unknown}`, expected one of {names}")
        _check_targets(call, given)
        left = {key: value for key, value in old.items() if key not in dropped}
        config.save(call.store, name, {**left, **given}, None)


@route("DELETE /cluster/notifications/matchers/{name}")
def delete_matcher(call: Call) -> Any:
    """Remove a matcher; that which Proxmox brings along is as it was at first."""
    with call.world.cluster.locked(config.LOCK):
        config.require(call.store, config.MATCHER, call.params["name"])
        config.remove(call.store, str(call.params["name"]))


def _given(call: Call) -> dict[str, Any]:
    given = {key: value for key, value in call.params.items() if key not in ("name", "digest", "delete")}
    for text in given.get("match-field", ()):
        _check_field(text)
    for text in given.get("match-calendar", ()):
        if not is_period(text):
            raise PveError(f"could not parse schedule: unable to parse daily duration '{text}'")
    for text in given.get("match-severity", ()):
        for severity in text.split(","):
            if severity.strip() not in _SEVERITIES:
                raise PveError(f"unknown severity {severity.strip()}")
    return given


def _check_field(text: str) -> None:
    kind, colon, rest = text.partition(":")
    if not colon or kind not in ("exact", "regex"):
        raise PveError(f"could not apply filter: invalid match-field statement: {text}")
    _, equals, value = rest.partition("=")
    if not equals:
        raise PveError(f"could not apply filter: invalid match-field statement: {text}")
    if kind == "regex":
        try:
            re.compile(value)
        except (re.error, OverflowError, RecursionError) as err:
            raise PveError(f"could not apply filter: invalid regex: {err}") from err


def _check_targets(call: Call, given: Mapping[str, Any]) -> None:
    known = config.entities(call.store, *ENDPOINTS)
    for target in given.get("target", ()):
        if target not in known:
            raise PveError(f"endpoint '{target}' does not exist", status=404)
