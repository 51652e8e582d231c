"""`proxmox_cluster_options`: options of the whole cluster, several of which Proxmox keeps in one text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.errors import StackyardError
from stackyard.provider.checks import at_least, between, is_cidr, matches, one_of
from stackyard.provider.fields import FLAG, NUMBER, TEXT, Field, changes, params, values
from stackyard.provider.kinds import Resource, both_names
from stackyard.provider.schema import Rule
from stackyard.provider.values import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["RESOURCE", "SETTINGS"]

_PATH = "/cluster/options"
_ID = "cluster"
_AGE_S = 0.5
# Whoever may see all options gets these, set or not.
_SHOWN_TO_AUDITORS = frozenset(("description", "mac_prefix"))
_KEYBOARDS = (
    *("da", "de", "de-ch", "en-gb", "en-us", "es", "fi", "fr", "fr-be", "fr-ca", "fr-ch", "hu", "is", "it"),
    *("ja", "lt", "mk", "nl", "no", "pl", "pt", "pt-br", "sl", "sv", "tr"),
)
_LANGUAGES = (
    *("ca", "da", "de", "en", "es", "eu", "fa", "fr", "he", "it", "ja", "nb", "nn", "pl", "pt_BR", "ru"),
    *("sl", "sv", "tr", "zh_CN", "zh_TW"),
)
_PLAIN = (
    *(Field(attribute=name, form=TEXT) for name in ("console", "description", "email_from", "http_proxy")),
    *(Field(attribute=name, form=TEXT) for name in ("keyboard", "language", "mac_prefix")),
    Field(attribute="max_workers", form=NUMBER),
)
_BALANCING = "ha-auto-rebalance"
# The parts of the options that are one text each: attributes, and what they are called in it.
_PARTS: Mapping[str, tuple[Field, ...]] = {
    "bwlimit": tuple(
        Field(attribute=f"bandwidth_limit_{name}", key=name, form=NUMBER)
        for name in ("clone", "default", "migration", "move", "restore")
    ),
    "crs": (
        Field(attribute="crs_ha", key="ha", form=TEXT),
        Field(attribute="crs_ha_auto_rebalance", key=_BALANCING, form=FLAG),
        Field(
            attribute="crs_ha_auto_rebalance_hold_duration", key=f"{_BALANCING}-hold-duration", form=NUMBER
        ),
        Field(attribute="crs_ha_auto_rebalance_margin", key=f"{_BALANCING}-margin", form=NUMBER),
        Field(attribute="crs_ha_auto_rebalance_method", key=f"{_BALANCING}-method", form=TEXT),
        Field(attribute="crs_ha_auto_rebalance_threshold", key=f"{_BALANCING}-threshold", form=NUMBER),
        Field(attribute="crs_ha_rebalance_on_start", key="ha-rebalance-on-start", form=FLAG),
    ),
    "ha": (Field(attribute="ha_shutdown_policy", key="shutdown_policy", form=TEXT),),
    "migration": (
        Field(attribute="migration_type", key="type", form=TEXT),
        Field(attribute="migration_cidr", key="network", form=TEXT),
    ),
}
# The same for those that are an object in the configuration too, by its attribute.
_OBJECTS: Mapping[str, tuple[str, tuple[Field, ...]]] = {
    "next_id": ("next-id", (Field(attribute="lower", form=NUMBER), Field(attribute="upper", form=NUMBER))),
    "notify": (
        "notify",
        (
            Field(attribute="ha_fencing_mode", key="fencing", form=TEXT),
            Field(attribute="ha_fencing_target", key="target-fencing", form=TEXT),
            Field(attribute="package_updates", key="package-updates", form=TEXT),
            Field(attribute="package_updates_target", key="target-package-updates", form=TEXT),
            Field(attribute="replication", form=TEXT),
            Field(attribute="replication_target", key="target-replication", form=TEXT),
        ),
    ),
}


class HiddenOptionsError(StackyardError):
    """The caller sees only a part of the options, so no one can say which of them are set."""

    code = "E-PROVIDER-OPTIONS-HIDDEN"
    summary = "The options of the cluster cannot be seen"
    default_remedy = "Give the user or token of the provider Sys.Audit on /."


def _texts(state: Object) -> dict[str, str]:
    """Return the options of several parts that have any."""
    found = {option: params(fields, state) for option, fields in _PARTS.items()}
    for attribute, (option, fields) in _OBJECTS.items():
        nested = state.get(attribute)
        found[option] = params(fields, nested) if isinstance(nested, dict) else {}
    return {option: _join(parts) for option, parts in found.items() if parts}


def _join(parts: Mapping[str, Any]) -> str:
    return ",".join(
        f"{name}={int(value) if isinstance(value, bool) else value}" for name, value in parts.items()
    )


def _split(option: Any) -> dict[str, Any]:
    """Return the parts of an option, which is shown as an object or, where it is not parsed, as a text."""
    if isinstance(option, str):
        return dict(part.split("=", 1) for part in option.split(",") if "=" in part)
    return dict(option or {})


def _state(known: Object, found: Mapping[str, Any]) -> Object:
    state = {**known, "id": _ID, **values(_PLAIN, found)}
    for option, fields in _PARTS.items():
        state |= values(fields, _split(found.get(option)))
    for attribute, (option, fields) in _OBJECTS.items():
        nested, before = values(fields, _split(found.get(option))), known.get(attribute)
        is_set = any(value is not None for value in nested.values())
        # An object that is written and empty is nothing to Proxmox, and has to stay what it is.
        is_empty = isinstance(before, dict) and not params(fields, before)
        state[attribute] = nested if is_set or is_empty else None
    # The description is lines of the file's head: the last one always ends.
    shown, written = state["description"] or "", known.get("description")
    is_same = written not in (None, UNKNOWN) and str(written).rstrip("\n") == shown.rstrip("\n")
    return {**state, "description": written if is_same else shown or None}


async def _create(work: Work, planned: Object) -> Object:
    await work.client.put(_PATH, {**params(_PLAIN, planned), **_texts(planned)})
    work.keep({**planned, "id": _ID})
    return await _read(work, planned)


async def _read(work: Work, state: Object) -> Object:
    found = await work.client.get(_PATH, max_age_s=_AGE_S) or {}
    if not found.keys() & _SHOWN_TO_AUDITORS:
        await _require_sight(work)
    return _state(state, found)


async def _require_sight(work: Work) -> None:
    """Check that the caller sees all options: to everybody else, Proxmox shows some as if they were all."""
    rights = await work.client.get("/access/permissions", {"path": "/"}, max_age_s=_AGE_S)
    if "Sys.Audit" not in (rights.get("/") or {}):
        raise HiddenOptionsError("The caller may not see the options of the cluster.")


async def _update(work: Work, prior: Object, planned: Object) -> Object:
    sent, unset = changes(_PLAIN, prior, planned)
    after = _texts(planned)
    unset += [option for option in _texts(prior) if option not in after]
    await work.client.put(_PATH, {**sent, **after, "delete": ",".join(unset) or None})
    return await _read(work, planned)


async def _delete(work: Work, state: Object) -> None:
    unset = [*changes(_PLAIN, state, {})[1], *_texts(state)]
    if unset:
        await work.client.put(_PATH, {"delete": ",".join(unset)})


class _Settings:
    """The options, for what has to know them before there is a state."""

    def path_of(self, state: Object) -> str:
        """Return the path of all of them."""
        del state
        return _PATH

    def identity(self, state: Object) -> str:
        """Return the id of their state."""
        del state
        return _ID

    def attributes(self, known: Object, found: Mapping[str, Any]) -> Object:
        """Return the attributes for an answer of Proxmox."""
        return {name: value for name, value in _state(known, found).items() if name != "id"}


SETTINGS = _Settings()
_TARGET = Rule(check=matches(r"(?s)\S|\S.*\S", "neither be empty nor start or end with a space"))
_PERCENT = Rule(check=between(0, 100))
RESOURCE = Resource(
    names=both_names("cluster_options"),
    create=_create,
    read=_read,
    update=_update,
    delete=_delete,
    identify=lambda given: {"id": given},
    rules={
        "id": Rule(keep=True),
        "console": Rule(check=one_of("applet", "vv", "html5", "xtermjs")),
        "keyboard": Rule(check=one_of(*_KEYBOARDS)),
        "language": Rule(check=one_of(*_LANGUAGES)),
        "ha_shutdown_policy": Rule(check=one_of("freeze", "failover", "migrate", "conditional")),
        "migration_type": Rule(check=one_of("secure", "insecure")),
        "migration_cidr": Rule(check=is_cidr),
        "next_id.lower": Rule(check=at_least(100)),
        "next_id.upper": Rule(
            check=lambda value: None if value <= 999999999 else "must be at most 999999999"
        ),
        "notify.ha_fencing_mode": Rule(check=one_of("always", "never")),
        "notify.package_updates": Rule(check=one_of("auto", "always", "never")),
        "notify.replication": Rule(check=one_of("always", "never")),
        **{f"notify.{name}_target": _TARGET for name in ("ha_fencing", "package_updates", "replication")},
        "crs_ha": Rule(check=one_of("static", "basic", "dynamic")),
        "crs_ha_auto_rebalance_hold_duration": Rule(check=at_least(0)),
        "crs_ha_auto_rebalance_margin": _PERCENT,
        "crs_ha_auto_rebalance_method": Rule(check=one_of("bruteforce", "topsis")),
        "crs_ha_auto_rebalance_threshold": _PERCENT,
    },
)
