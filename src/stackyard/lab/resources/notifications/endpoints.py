"""Endpoints of notifications: `/cluster/notifications/endpoints/{gotify,sendmail,smtp,webhook}`."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.lab.problems import PveError, bad_parameter
from stackyard.lab.resources.notifications import config
from stackyard.lab.routing import Route, route

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.lab.call import Call

__all__ = ["GOTIFY", "SENDMAIL", "SMTP", "WEBHOOK", "list_endpoints"]

_BASE = "/cluster/notifications/endpoints"


@route(f"GET {_BASE}")
def list_endpoints(_call: Call) -> Any:
    """List the types of endpoints."""
    return [{"name": kind} for kind in ("gotify", "sendmail", "smtp", "webhook")]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """A type of endpoint.

    Attributes:
        name: What it is called in paths.
        deletable: The options that can be removed.
        secret: The options that are never shown.
        has_recipients: Whether somebody must get its mails.
    """

    name: str
    deletable: frozenset[str]
    secret: frozenset[str] = frozenset()
    has_recipients: bool = False

    def routes(self) -> tuple[Route, ...]:
        """Return the handlers of its methods."""
        every, one = f"{_BASE}/{self.name}", f"{_BASE}/{self.name}/{{name}}"
        return (
            route(f"GET {every}")(self.list),
            route(f"GET {one}")(self.read),
            route(f"POST {every}")(self.create),
            route(f"PUT {one}")(self.update),
            route(f"DELETE {one}")(self.delete),
        )

    def list(self, call: Call) -> Any:
        """List the endpoints of this type."""
        return [self._shown(call, name) for name in config.entities(call.store, self.name)]

    def read(self, call: Call) -> Any:
        """Answer one endpoint."""
        config.require(call.store, self.name, call.params["name"])
        return self._shown(call, call.params["name"], with_digest=True)

    def create(self, call: Call) -> Any:
        """Add an endpoint."""
        name = str(call.params["name"])
        with call.world.cluster.locked(config.LOCK):
            config.check_unique(call.store, name)
            entity, secrets = self._given(call, {})
            self._check_recipients(entity)
            config.save(call.store, name, {"type": self.name, **entity}, secrets)

    def update(self, call: Call) -> Any:
        """Change an endpoint."""
        name = str(call.params["name"])
        with call.world.cluster.locked(config.LOCK):
            config.check_digest(call)
            old, kept = config.require(call.store, self.name, name), config.secrets_of(call.store, name)
            dropped = self._dropped(call)
            entity, secrets = self._given(call, {} if "secret" in dropped else kept)
            left = {key: value for key, value in old.items() if key not in dropped}
            remaining = {key: value for key, value in kept.items() if key not in dropped}
            self._check_recipients({**left, **entity})
            config.save(call.store, name, {**left, **entity}, {**remaining, **secrets})

    def delete(self, call: Call) -> Any:
        """Remove an endpoint that no matcher refers to."""
        with call.world.cluster.locked(config.LOCK):
            config.require(call.store, self.name, call.params["name"])
            config.remove(call.store, str(call.params["name"]))

    def _dropped(self, call: Call) -> frozenset[str]:
        wanted = frozenset(call.params.get("delete", ()))
        for name in sorted(wanted - self.deletable):
            raise PveError(f"unknown variant `{name}`, expected one of {_listed(self.deletable)}")
        return wanted

    def _given(self, call: Call, known: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what is shown and what is not of the settings in a call."""
        given = {key: value for key, value in call.params.items() if key not in ("name", "digest", "delete")}
        for key in ("header", "secret") if self.name == "webhook" else ():
            if key in given:
                given[key] = [_checked(key, text, known.get("secret", ())) for text in given[key]]
        if self.name == "webhook" and "secret" in given:
            _refuse_twice(given["secret"])
        secrets = {key: given.pop(key) for key in sorted(self.secret) if key in given}
        return given, secrets

    def _check_recipients(self, entity: Mapping[str, Any]) -> None:
        if self.has_recipients and not entity.get("mailto") and not entity.get("mailto-user"):
            text = "must at least provide one recipient, either in mailto or in mailto-user"
            raise PveError(text, status=400)

    def _shown(self, call: Call, name: str, *, with_digest: bool = False) -> dict[str, Any]:
        row = config.shown(call.store, name, with_digest=with_digest)
        if self.name == "webhook":
            # Which secrets there are is no secret.
            held = config.secrets_of(call.store, name).get("secret", ())
            names = [f"name={_pair(text)[0]}" for text in held]
            return {**row, "secret": names} if names else row
        return row


def _pair(text: str) -> tuple[str, str | None]:
    """Read `name=N,value=V`."""
    parts = dict(part.partition("=")[::2] for part in text.split(","))
    return str(parts.get("name", "")), parts.get("value")


def _checked(what: str, text: str, known: Any) -> str:
    """Return a header or a secret; a secret without a value keeps the one that it has."""
    name, value = _pair(text)
    if not name:
        raise bad_parameter(
            what, "invalid format - format error\nname: property is missing and it is not optional"
        )
    if value is None and what == "secret":
        kept = next((one for one in known if _pair(one)[0] == name), None)
        if kept is None:
            raise PveError(f"secret '{name}' not known", status=400)
        return str(kept)
    if value is None:
        raise PveError(f"header '{name}' has empty value", status=400)
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as err:
        text = f"{what} '{name}' does not have valid base64 encoded data"
        raise PveError(text, status=400) from err
    return f"name={name},value={value}"


def _refuse_twice(secrets: list[str]) -> None:
    names = [_pair(text)[0] for text in secrets]
    for name in names:
        if names.count(name) > 1:
            raise PveError(f"secret '{name}' defined multiple times", status=400)


def _listed(names: frozenset[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


_COMMON = frozenset(("comment", "disable"))
_MAIL = frozenset(("author", "from-address", "mailto", "mailto-user"))

GOTIFY = _Kind(name="gotify", deletable=_COMMON, secret=frozenset(("token",))).routes()
SENDMAIL = _Kind(name="sendmail", deletable=_COMMON | _MAIL, has_recipients=True).routes()
SMTP = _Kind(
    name="smtp",
    deletable=(_COMMON | _MAIL | {"password", "port", "username"}) - {"from-address"},
    secret=frozenset(("password",)),
    has_recipients=True,
).routes()
WEBHOOK = _Kind(
    name="webhook", deletable=_COMMON | {"header", "body", "secret"}, secret=frozenset(("secret",))
).routes()
