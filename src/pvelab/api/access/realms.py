"""Realms, where users come from: `/access/domains`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.server.params import properties
from pvelab.server.params.property_formats import PROPERTY_FORMATS
from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.world.sections import Kind, SectionFile

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from pvelab.server.call import Call
    from pvelab.world.store import Document

__all__ = [
    "BUILTIN",
    "create_realm",
    "delete_realm",
    "list_realms",
    "map_vanished_options",
    "read_realm",
    "unreachable",
    "update_realm",
]

BUILTIN: Mapping[str, str] = {
    "pam": "Linux PAM standard authentication",
    "pve": "Proxmox VE authentication server",
}

_SYNC = PROPERTY_FORMATS["realm-sync-options"]
_ALL = frozenset(("default", "comment"))
_SYNCED = frozenset(
    (
        *("server2", "bind_dn", "port", "secure", "sslversion", "tfa", "verify", "capath", "cert", "certkey"),
        *("filter", "sync_attributes", "user_classes", "group_dn", "group_name_attr", "group_filter"),
        *("group_classes", "sync-defaults-options", "mode", "case-sensitive"),
    )
)
_OPENID = frozenset(
    (
        *("client-key", "autocreate", "username-claim", "groups-claim", "groups-autocreate"),
        *("groups-overwrite", "prompt", "scopes", "acr-values", "audiences", "query-userinfo"),
    )
)
_KINDS: Mapping[str, Kind] = {
    "pam": Kind(name="pam", optional=_ALL | {"tfa"}),
    "pve": Kind(name="pve", optional=_ALL | {"tfa"}),
    "ldap": Kind(
        name="ldap", required=frozenset(("server1", "base_dn", "user_attr")), optional=_ALL | _SYNCED
    ),
    "ad": Kind(
        name="ad",
        required=frozenset(("server1", "domain")),
        optional=_ALL | _SYNCED | {"base_dn", "user_attr"},
    ),
    "openid": Kind(
        name="openid",
        required=frozenset(("issuer-url", "client-id")),
        optional=_ALL | _OPENID,
        fixed=frozenset(("username-claim",)),
    ),
}
_NOT_OPTIONS = frozenset(("realm", "type", "password", "delete", "digest", "check-connection"))


@route("GET /access/domains")
def list_realms(call: Call) -> Any:
    """List the realms, to everyone: the login page shows them."""
    rows = []
    for realm, section in _file(call).all().items():
        config = _format_realm(realm, section)
        row = {"realm": realm, **{key: config[key] for key in ("type", "comment") if config.get(key)}}
        if config.get("default"):
            row["default"] = 1
        if config.get("tfa"):
            row["tfa"] = properties.parse(PROPERTY_FORMATS["pve-tfa-config"], config["tfa"])["type"]
        rows.append(row)
    return rows


@route("GET /access/domains/{realm}")
def read_realm(call: Call) -> Any:
    """Answer the settings of a realm; its bind password is no part of them."""
    config = _format_realm(call.params["realm"], _require(call, "domain"))
    if config.get("sync-defaults-options"):
        config["sync-defaults-options"] = _map_sync_options(config["sync-defaults-options"], keep_old=True)
    return {**config, "digest": _file(call).digest}


@route("POST /access/domains")
def create_realm(call: Call) -> None:
    """Add a realm."""
    params, realm = call.params, call.params["realm"]
    with _lock_domains(call, "add auth server failed"):
        if _file(call).get(realm) is not None:
            raise PveError(f"domain '{realm}' already exists")
        if params["type"] in BUILTIN:
            raise PveError(f"unable to create builtin type '{params['type']}'")
        config = _KINDS[params["type"]].validate(_settings(call, params["type"]), create=True)
        _save(call, config)
        _keep_password(call, params["type"])
        _check_connection(call, config)


@route("PUT /access/domains/{realm}")
def update_realm(call: Call) -> None:
    """Unset and set options of a realm."""
    params, realm = call.params, call.params["realm"]
    with _lock_domains(call, "update auth server failed"):
        _file(call).check_digest(params.get("digest"))
        known = _require(call, "domain")
        settings, names = _settings(call, known["type"]), split_list(params.get("delete", ""))
        if not settings and not names and "password" not in params:
            raise PveError("no options specified")
        kind = _KINDS[known["type"]]
        kept = {key: value for key, value in known.items() if key not in names}
        config = {**kept, **kind.validate(settings, create=False)}
        for key in sorted(kind.required):
            if key not in config:
                raise PveError(f"section '{realm}' - missing value for required option '{key}'")
        _save(call, config)
        if "password" in names or "password" in params:
            _keep_password(call, known["type"])
        _check_connection(call, config)


@route("DELETE /access/domains/{realm}")
def delete_realm(call: Call) -> None:
    """Remove a realm; its users stay. The built-in ones come back as they were first."""
    realm = call.params["realm"]
    with _lock_domains(call, "delete auth server failed"):
        _require(call, "authentication domain")
        _file(call).remove(realm)
        call.store.delete("realm_secrets", realm)
        if realm in BUILTIN:
            _file(call).put(realm, {"type": realm})


def map_vanished_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return sync options with the old `full` and `purge` said as `remove-vanished`."""
    parts = ["entry", "properties"] if options.get("full") else []
    parts += ["acl"] if options.get("purge") else []
    if "remove-vanished" in options or not parts:
        return dict(options)
    return {**options, "remove-vanished": ";".join(parts)}


def unreachable(config: Mapping[str, Any]) -> PveError:
    """Return the refusal of a directory server: no server of any name can be reached from the lab."""
    return PveError(f"IO::Socket::INET: Bad hostname '{config['server1']}'")


def _file(call: Call) -> SectionFile:
    return SectionFile(call.store, "realms")


def _lock_domains(call: Call, failure: str) -> AbstractContextManager[None]:
    return call.world.cluster.lock_file("file-domains_cfg", failure)


def _require(call: Call, noun: str) -> Document:
    realm = call.params["realm"]
    found = _file(call).get(realm)
    if found is None:
        raise PveError(f"{noun} '{realm}' does not exist")
    return found


def _format_realm(realm: str, section: Document) -> dict[str, Any]:
    shown = {key: value for key, value in section.items() if key != "realm"}
    # The built-in realms are never without a comment.
    return {"comment": BUILTIN[realm], **shown} if realm in BUILTIN else shown


def _settings(call: Call, kind: str) -> dict[str, Any]:
    params = call.params
    if "check-connection" in params and kind not in ("ldap", "ad"):
        text = "'check-connection' parameter can only be set for realms of type 'ldap' or 'ad'"
        raise PveError(text)
    settings = {key: value for key, value in params.items() if key not in _NOT_OPTIONS}
    if settings.get("sync-defaults-options") and kind in ("ldap", "ad"):
        settings["sync-defaults-options"] = _map_sync_options(
            settings["sync-defaults-options"], keep_old=False
        )
    return settings


def _map_sync_options(text: str, *, keep_old: bool) -> str:
    options = map_vanished_options(properties.parse(_SYNC, text))
    if not keep_old:
        options = {key: value for key, value in options.items() if key not in ("full", "purge")}
    return properties.render(_SYNC, options)


def _save(call: Call, config: Mapping[str, Any]) -> None:
    file, realm = _file(call), call.params["realm"]
    for other, section in list(file.all().items()) if call.params.get("default") else ():
        if section.get("default") and other != realm:
            file.put(other, {key: value for key, value in section.items() if key != "default"})
    file.put(realm, config)


def _keep_password(call: Call, kind: str) -> None:
    realm, password = call.params["realm"], call.params.get("password")
    if kind in ("ldap", "ad") and password is not None:
        call.store.put("realm_secrets", realm, {"password": password})
    else:
        call.store.delete("realm_secrets", realm)


def _check_connection(call: Call, config: Mapping[str, Any]) -> None:
    if call.params.get("check-connection"):
        raise unreachable(config)
