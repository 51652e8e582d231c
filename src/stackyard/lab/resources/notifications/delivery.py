"""Sending notifications: which targets a notice goes to, and how it gets there.

What is on the machine that runs the lab is really asked; every message that went out is kept in the lab's
outbox, `outbox/<number>`, mails among them.
"""

from __future__ import annotations

import base64
import datetime
import json
import re
from typing import TYPE_CHECKING, Any

from stackyard.lab.calendar_events import CalendarEventError, parse_calendar_event
from stackyard.lab.notices import NOTICES
from stackyard.lab.problems import PveError
from stackyard.lab.resources.notifications import config

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Mapping, Sequence

    from stackyard.lab.store import Document, Store
    from stackyard.lab.world import World

__all__ = ["ENDPOINTS", "NotificationPlan", "is_match", "is_period", "send", "targets_of"]

ENDPOINTS = ("gotify", "sendmail", "smtp", "webhook")

_OUTBOX = "outbox"
_MOST_KEPT = 1000
_PRIORITIES = {"info": 1, "notice": 3, "warning": 5, "error": 9}
_TIME = re.compile(r"(\d{1,2})(?::(\d{1,2}))?\s*-\s*(\d{1,2})(?::(\d{1,2}))?")


class NotificationPlan:
    """Sends notices as they come."""

    collections = (NOTICES,)

    def __init__(self, world: World) -> None:
        self._world = world
        self._sending: set[str] = set()

    def next_due(self) -> float | None:
        """Return None: what is there is sent at once."""
        return None

    def begin(self, _now: float) -> Sequence[Coroutine[Any, Any, None]]:
        """Send what waits."""
        waiting = [number for number in self._world.store.items(NOTICES) if number not in self._sending]
        self._sending.update(waiting)
        return [self._deliver(number) for number in waiting]

    async def _deliver(self, number: str) -> None:
        store = self._world.store
        try:
            notice = store.get(NOTICES, number) or {}
            for name in targets_of(store, notice) if notice else ():
                try:
                    await send(self._world, name, notice)
                except PveError as err:
                    text = f"could not notify via target `{name}`: {err.text}"
                    self._world.log.add(self._world.clock.now(), self._world.cluster.local(), text)
            with store.transaction():
                store.delete(NOTICES, number)
        finally:
            self._sending.discard(number)


def targets_of(store: Store, notice: Document) -> list[str]:
    """Return the targets that the matchers choose for a notice, each once, without those switched off."""
    known = config.entities(store, *ENDPOINTS)
    chosen: dict[str, None] = {}
    for matcher in config.entities(store, config.MATCHER).values():
        if not matcher.get("disable") and is_match(matcher, notice):
            chosen |= dict.fromkeys(matcher.get("target", ()))
    return [name for name in chosen if name in known and not known[name].get("disable")]


def is_match(matcher: Mapping[str, Any], notice: Document) -> bool:
    """Tell whether a matcher wants a notice; one that says nothing wants all."""
    joined = any if matcher.get("mode") == "any" else all
    groups: list[Iterable[bool]] = []
    if matcher.get("match-severity"):
        wanted = matcher["match-severity"]
        groups.append([notice["severity"] in re.split(r"\s*,\s*", text.strip()) for text in wanted])
    if matcher.get("match-field"):
        groups.append([_field_fits(text, notice["fields"]) for text in matcher["match-field"]])
    if matcher.get("match-calendar"):
        groups.append([_time_fits(text, int(notice["time"])) for text in matcher["match-calendar"]])
    if not groups:
        return True
    return joined(joined(group) for group in groups) != bool(matcher.get("invert-match"))


def _field_fits(text: str, fields: Mapping[str, str]) -> bool:
    kind, _, rest = text.partition(":")
    name, _, wanted = rest.partition("=")
    value = fields.get(name)
    if value is None:
        return False
    if kind == "regex":
        return re.search(wanted, value) is not None
    return value in [one.strip() for one in wanted.split(",")]


def is_period(text: str) -> bool:
    """Tell whether a text is a part of the day, on some weekdays: `mon..fri 8:00-17:30`."""
    return _period(text) is not None


def _period(text: str) -> tuple[frozenset[int], int, int] | None:
    days, space, rest = text.strip().rpartition(" ") if text[:1].isalpha() else ("", "", text.strip())
    found = _TIME.fullmatch(rest)
    if found is None or (text[:1].isalpha() and not space):
        return None
    try:
        weekdays = parse_calendar_event(days).weekdays if days else frozenset[int]()
    except CalendarEventError:
        return None
    start = int(found[1]) * 60 + int(found[2] or 0)
    end = int(found[3]) * 60 + int(found[4] or 0)
    return (weekdays, start, end) if start <= end <= 24 * 60 else None


def _time_fits(text: str, moment: int) -> bool:
    period = _period(text)
    now = datetime.datetime.fromtimestamp(moment, datetime.UTC)
    if period is None or (period[0] and now.weekday() not in period[0]):
        return False
    return period[1] <= now.hour * 60 + now.minute < period[2]


async def send(world: World, name: str, notice: Document) -> None:
    """Send a notice to a target, and keep it in the outbox.

    Raises:
        PveError: The target refuses it or cannot be reached.
    """
    target = config.entities(world.store, *ENDPOINTS)[name]
    secrets = config.secrets_of(world.store, name)
    if target["type"] == "gotify":
        await _gotify(world, target, secrets, notice)
    elif target["type"] == "webhook":
        await _webhook(world, target, secrets, notice)
    with world.store.transaction():
        number = max((int(key) for key in world.store.items(_OUTBOX)), default=0) + 1
        world.store.put(_OUTBOX, str(number), {"target": name, **notice})
        world.store.delete(_OUTBOX, str(number - _MOST_KEPT))


async def _gotify(world: World, target: Document, secrets: Document, notice: Document) -> None:
    body = {
        "title": notice["title"],
        "message": f"```\n{notice['message']}\n```",
        "priority": _PRIORITIES.get(str(notice["severity"]), 3),
        "extras": {"client::display": {"contentType": "text/markdown"}},
    }
    headers = {
        "Content-Type": "application/json",
        "Authorization": f"Bearer {secrets.get('token', '')}",
        "X-Gotify-Key": str(secrets.get("token", "")),
    }
    await world.fetcher.send("POST", f"{target['server']}/message", json.dumps(body).encode(), headers)


async def _webhook(world: World, target: Document, secrets: Document, notice: Document) -> None:
    values = {key: str(notice[key]) for key in ("title", "message", "severity")}
    values |= {"timestamp": str(notice["time"])}
    values |= {f"fields.{key}": str(value) for key, value in notice["fields"].items()}
    values |= {f"secrets.{key}": value for key, value in map(_decoded, secrets.get("secret", ()))}
    headers = {key: _filled(value, values) for key, value in map(_decoded, target.get("header", ()))}
    try:
        body = base64.b64decode(str(target.get("body", ""))).decode("utf-8", "replace")
    except ValueError as err:
        raise PveError("could not decode base64 value") from err
    url, method = _filled(str(target["url"]), values), str(target["method"]).upper()
    await world.fetcher.send(method, url, _filled(body, values).encode(), headers)


def _decoded(text: str) -> tuple[str, str]:
    parts = dict(part.partition("=")[::2] for part in text.split(","))
    return parts["name"], base64.b64decode(parts.get("value", "")).decode("utf-8", "replace")


def _filled(template: str, values: Mapping[str, str]) -> str:
    """Put values in the places of a template: `{{ title }}`, `{{ secrets.token }}`."""

    def value(found: re.Match[str]) -> str:
        return values.get(found[1], found[0])

    return re.sub(r"\{\{\s*([\w.\-]{1,100})\s*\}\}", value, template)
