"""`proxmox_realm_openid`: users of an OpenID Connect provider."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.provider.fields import FLAG, TEXT, Field
from stackyard.provider.problems import Problem
from stackyard.provider.resources.access.realms import make_realm
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.provider.values import Object

__all__ = ["RESOURCE"]

_TEXTS = ("groups_claim", "prompt", "acr_values", "audiences", "comment")
_FLAGS = ("autocreate", "groups_autocreate", "groups_overwrite", "query_userinfo", "default")


def _key(attribute: str) -> str:
    return attribute.replace("_", "-")


def _check(config: Object) -> Iterator[Problem]:
    if config.get("client_key") is not None and config.get("client_key_wo") is not None:
        yield Problem(path=("client_key",), detail="`client_key` and `client_key_wo` exclude each other.")
    if config.get("client_key_wo_version") is not None and config.get("client_key_wo") is None:
        yield Problem(
            path=("client_key_wo_version",), detail="`client_key_wo_version` needs `client_key_wo`."
        )


RESOURCE = make_realm(
    "openid",
    (
        *(Field(attribute=name, key=_key(name), form=TEXT) for name in _TEXTS),
        *(Field(attribute=name, key=_key(name), form=FLAG, clears=False) for name in _FLAGS),
        Field(attribute="scopes", form=TEXT, clears=False),
        Field(attribute="issuer_url", key="issuer-url", form=TEXT, clears=False),
        Field(attribute="client_id", key="client-id", form=TEXT, clears=False),
        Field(attribute="client_key", key="client-key", form=TEXT, secret=True, write_only="client_key_wo"),
        Field(attribute="username_claim", key="username-claim", form=TEXT, create_only=True, clears=False),
    ),
    validate=_check,
    rules={"username_claim": Rule(replace=True)},
)
