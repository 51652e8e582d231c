"""`proxmox_realm_ldap`: users of a directory server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.provider.checks import between, one_of
from stackyard.provider.fields import FLAG, NUMBER, TEXT, Field
from stackyard.provider.problems import Problem
from stackyard.provider.resources.access.realms import make_realm
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.provider.values import Object

__all__ = ["RESOURCE"]

_DEFAULTS: Object = {
    "user_attr": "uid",
    "secure": False,
    "verify": False,
    "default": False,
    "case_sensitive": True,
}
# What has a meaning only beside another one.
_NEEDS = {"bind_password": "bind_dn", "cert_path": "cert_key_path", "cert_key_path": "cert_path"}
_TEXTS = (
    "server2 bind_dn filter group_dn group_filter group_classes group_name_attr mode user_classes "
    "sync_attributes comment"
).split()


def _state(known: Object, found: Mapping[str, Any]) -> Object:
    # Proxmox keeps nothing that is off or as it would be anyway.
    keys = {"case_sensitive": "case-sensitive"}
    read = {name: value for name, value in _DEFAULTS.items() if found.get(keys.get(name, name)) is None}
    # The options of a synchronisation come back in another order.
    options = known.get("sync_defaults_options")
    if _parts(options) == _parts(found.get("sync-defaults-options")):
        read["sync_defaults_options"] = options
    return read


def _parts(options: Any) -> list[str]:
    return sorted(str(options or "").split(","))


def _check(config: Object) -> Iterator[Problem]:
    for name, needed in _NEEDS.items():
        if config.get(name) is not None and config.get(needed) is None:
            yield Problem(path=(name,), detail=f"`{name}` needs `{needed}`.")
    if config.get("mode") is not None and config.get("secure") is not None:
        yield Problem(path=("secure",), detail="`secure` and `mode` exclude each other; `mode` is the newer.")


RESOURCE = make_realm(
    "ldap",
    (
        *(Field(attribute=name, form=TEXT) for name in _TEXTS),
        Field(attribute="server1", form=TEXT, clears=False),
        Field(attribute="base_dn", form=TEXT, clears=False),
        Field(attribute="user_attr", form=TEXT, clears=False),
        Field(attribute="bind_password", key="password", form=TEXT, secret=True),
        Field(attribute="port", form=NUMBER),
        Field(attribute="ca_path", key="capath", form=TEXT),
        Field(attribute="cert_path", key="cert", form=TEXT),
        Field(attribute="cert_key_path", key="certkey", form=TEXT),
        Field(attribute="ssl_version", key="sslversion", form=TEXT),
        Field(attribute="sync_defaults_options", key="sync-defaults-options", form=TEXT),
        Field(attribute="secure", form=FLAG, clears=False),
        Field(attribute="verify", form=FLAG, clears=False),
        Field(attribute="default", form=FLAG, clears=False),
        Field(attribute="case_sensitive", key="case-sensitive", form=FLAG, clears=False),
    ),
    own_state=_state,
    validate=_check,
    rules={
        **{name: Rule(default=value) for name, value in _DEFAULTS.items()},
        "port": Rule(check=between(1, 65535)),
        "mode": Rule(check=one_of("ldap", "ldaps", "ldap+starttls")),
        "ssl_version": Rule(check=one_of("tlsv1", "tlsv1_1", "tlsv1_2", "tlsv1_3")),
    },
)
