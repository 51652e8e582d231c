"""Requests made up from the declared API: valid ones, borderline ones, and ones that nobody should send."""

from __future__ import annotations

import enum
import json
import random
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.lab_words import BY_FORMAT, BY_NAME, NASTY, PATH_TRICKS

from pvelab.server.facts import Method
from pvelab.server.params.property_formats import PROPERTY_FORMATS
from pvelab.world.world import World

__all__ = ["MARKER", "Mood", "RequestMaker", "Sent"]

# Sent as every password: no answer and no journal may show it.
MARKER = "Pw-MARKER-7f3a"
_PASSWORDS = frozenset(("password", "cipassword", "confirmation-password", "new-password"))
_FORM = "application/x-www-form-urlencoded"
_BOUNDARY = "----made-up"
_OTHER_TYPES = (
    "text/plain",
    "application/xml",
    "multipart/form-data; boundary=x",
    "application/json",
    "",
    "²",
)
_GUESSES = frozenset(("digest", "lock-token", "target-digest"))
_PLACEHOLDER = re.compile(r"\{([^}]+)\}")


class Mood(enum.StrEnum):
    """How much of a request is wrong on purpose."""

    VALID = "valid"
    ONE_WRONG = "one-wrong"
    CHAOS = "chaos"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A request as it goes out; the path is encoded already."""

    method: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    base: str = "/api2/json"

    def __str__(self) -> str:
        text = f"{self.method} {self.base}{self.path[:400]}"
        return f"{text} {dict(self.headers)} {self.body[:600]!r}" if self.body else text


class RequestMaker:
    """Makes requests; the same seed makes the same ones in a lab with the same content."""

    def __init__(self, randomness: random.Random, world: World) -> None:
        self._random = randomness
        self._world = world

    def make(self, method: Method) -> Sent:
        """Make a request of one method."""
        mood = self._random.choices(list(Mood), (5, 4, 1))[0]
        names = self._chosen_names(method, mood)
        wrong = {Mood.VALID: (), Mood.CHAOS: names}.get(mood) or (
            (self._random.choice(names),) if names and mood is Mood.ONE_WRONG else ()
        )
        values = {
            name: self._wrong(method.parameters[key])
            if key in wrong and self._random.random() < 0.8
            else self._valid(name, method.parameters[key], method)
            for key, name in ((key, self._indexed(key)) for key in names)
        }
        if mood is Mood.VALID or self._random.random() < 0.5:
            values |= self._existing(method)
        path = self._path(method, values, tricky=mood is not Mood.VALID)
        if mood is not Mood.VALID and self._random.random() < 0.15:
            values[self._random.choice(("extra", "²", "net99", "a" * 300, "_dc", "node", "vmid"))] = "1"
        return self._encoded(method, path, values, mood)

    # --- Values

    def _chosen_names(self, method: Method, mood: Mood) -> list[str]:
        """Choose which parameters are sent: the required ones, most of the time, and some of the others."""
        optional = [key for key, schema in method.parameters.items() if schema.get("optional")]
        required = [key for key in method.parameters if key not in optional]
        if mood is not Mood.VALID and required and self._random.random() < 0.1:
            required.remove(self._random.choice(required))
        if mood is Mood.VALID and self._random.random() < 0.9:
            # A guess of one of these is right by chance only, and ends the call early.
            optional = [key for key in optional if key not in _GUESSES]
        count = min(len(optional), self._random.choice((0, 0, 1, 1, 1, 2, 3, 12)))
        return required + self._random.sample(optional, count)

    def _indexed(self, key: str) -> str:
        return f"{key[:-3]}{self._random.choice((0, 0, 1, 2))}" if key.endswith("[n]") else key

    def _valid(self, name: str, schema: Mapping[str, Any], method: Method) -> Any:
        if name in _PASSWORDS:
            return MARKER
        known = self._present(name)
        words = BY_NAME.get(name, ())
        if known and self._random.random() < 0.4:
            return self._random.choice(known)
        if words and not schema.get("enum") and self._random.random() < 0.9:
            # The first word is that of something which is there from the start.
            return words[0] if self._random.random() < 0.5 else self._random.choice(words)
        return self._fitting(name, schema, method)

    def _existing(self, method: Method) -> dict[str, str]:
        """Return the parts of a path that name something which is there, where that can be told."""
        store, path = self._world.store, method.path
        if "/{vmid}" in path:
            kind = "lxc" if "/lxc/" in path else "qemu"
            found = [guest for guest in store.items("guests").values() if guest["type"] == kind]
            guests = sorted(found, key=lambda guest: int(guest["vmid"]))
            if guests:
                guest = guests[0] if self._random.random() < 0.4 else self._random.choice(guests)
                return {"node": guest["node"], "vmid": str(guest["vmid"])}
        if "{upid}" in path and store.items("tasks"):
            upid = self._random.choice(list(store.items("tasks"))[-50:])
            return {"node": upid.split(":")[1], "upid": upid}
        if "{volume}" in path and store.items("volumes"):
            volume = self._random.choice(list(store.items("volumes").values()))
            return {
                "node": volume["scope"] or "pve1",
                "storage": volume["storage"],
                "volume": volume["volid"],
            }
        return {}

    def _present(self, name: str) -> Sequence[str]:
        """Return what the lab has of something, for the names that cannot be guessed."""
        match name:
            case "upid":
                return list(self._world.store.items("tasks"))[-20:]
            case "volume":
                return [volume["volid"] for volume in self._world.store.items("volumes").values()]
            case "vmid":
                return list(self._world.guests.all())
            case "digest":
                return [guest["digest"] for guest in self._world.guests.all().values()]
        return ()

    def _fitting(self, name: str, schema: Mapping[str, Any], method: Method) -> Any:
        kind, declared = schema.get("type", "string"), schema.get("format")
        if schema.get("enum"):
            return str(self._random.choice(schema["enum"]))
        if kind == "array":
            items = schema.get("items") or {"type": "string"}
            return [self._fitting(name, items, method) for _ in range(self._random.choice((1, 1, 2, 3)))]
        if kind in ("integer", "number"):
            return str(self._number(schema))
        if kind == "boolean":
            return self._random.choice("01")
        if declared is not None:
            return self._formatted(declared, method)
        return self._random.choice(("good", "web", "one two", "ünïcødé", "a,b", "x" * 20))

    def _number(self, schema: Mapping[str, Any]) -> int:
        low = int(float(schema.get("minimum", 0)))
        high = int(float(schema.get("maximum", max(low, 0) + 4096)))
        return self._random.choice((low, high, min(low + 1, high), self._random.randint(low, max(low, high))))

    def _formatted(self, declared: str | Mapping[str, Any], method: Method) -> str:
        if not isinstance(declared, str):
            return self._properties(declared, method)
        if declared in PROPERTY_FORMATS:
            return self._properties(PROPERTY_FORMATS[declared], method)
        if declared == "mac-addr":
            return "02:" + ":".join(f"{self._random.randrange(256):02X}" for _ in range(5))
        plain = declared.removesuffix("-opt")
        if plain in BY_FORMAT:
            return self._random.choice(BY_FORMAT[plain])
        words = BY_FORMAT.get(plain.removesuffix("-list"), ("good",))
        return ",".join(self._random.sample(words, self._random.randint(1, len(words))))

    def _properties(self, schema: Mapping[str, Mapping[str, Any]], method: Method) -> str:
        """Make a property string: the keys that must be there and a few others."""
        keys = [key for key, one in schema.items() if not one.get("optional") and "alias" not in one]
        others = [key for key in schema if key not in keys and "alias" not in schema[key]]
        keys += self._random.sample(others, min(len(others), self._random.choice((0, 1, 2, 4))))
        parts = []
        for key in keys:
            value = self._valid(key, schema[key], method)
            bare = schema[key].get("default_key") and self._random.random() < 0.7
            parts.append(str(value) if bare else f"{key}={value}")
        return ",".join(parts)

    def _wrong(self, schema: Mapping[str, Any]) -> Any:
        """Make a value that does not fit, or only just."""
        choices: list[Any] = [self._random.choice(NASTY) for _ in range(6)]
        for limit in ("minimum", "maximum"):
            if limit in schema:
                choices += [str(int(float(schema[limit])) + step) for step in (-1, 0, 1)]
        longest = schema.get("maxLength")
        if longest is not None and longest < 10000:
            choices += ["x" * longest, "x" * (longest + 1)]
        choices.append([self._random.choice(NASTY), self._random.choice(NASTY)])
        declared = schema.get("format")
        if isinstance(declared, Mapping):
            key = self._random.choice(list(declared))
            choices += [f"{key}={self._random.choice(NASTY)}", f"{key}=1,{key}=2", f"{key}={key}"] * 3
        return self._random.choice(choices)

    # --- The request

    def _path(self, method: Method, values: dict[str, Any], *, tricky: bool) -> str:
        """Fill the path from the values, which leave the body then."""
        parts = []
        for part in filter(None, method.path.split("/")):
            found = _PLACEHOLDER.fullmatch(part)
            if found is None:
                parts.append(part)
                continue
            value = values.pop(found[1], None)
            plain = value if isinstance(value, str) else "x"
            parts.append(
                urllib.parse.quote(
                    plain, safe=":@/" if self._random.random() < 0.3 else ":@", errors="replace"
                )
            )
        if tricky and parts and self._random.random() < 0.15:
            parts[self._random.randrange(len(parts))] = self._random.choice(PATH_TRICKS)
        path = "/" + "/".join(parts)
        if tricky and self._random.random() < 0.1:
            path = self._random.choice(
                (path + "/", path.replace("/", "//"), path + "/..", path + "?", path + "#a")
            )
        return path

    def _encoded(self, method: Method, path: str, values: Mapping[str, Any], mood: Mood) -> Sent:
        pairs = [
            (key, one)
            for key, value in values.items()
            for one in (value if isinstance(value, list) else [value])
        ]
        form = urllib.parse.urlencode([(key, str(one)) for key, one in pairs], errors="replace")
        base = "/api2/extjs" if mood is Mood.CHAOS and self._random.random() < 0.2 else "/api2/json"
        with_query = f"{path}{'&' if '?' in path else '?'}{form}" if form else path
        if path.endswith("/upload") and method.verb == "POST":
            return self._upload(path, values, mood, base)
        if method.verb in ("GET", "DELETE"):
            if mood is Mood.CHAOS and self._random.random() < 0.2:
                return Sent(
                    method=method.verb,
                    path=path,
                    body=form.encode(),
                    headers={"Content-Type": _FORM},
                    base=base,
                )
            return Sent(method=method.verb, path=with_query, base=base)
        style = self._random.random()
        if style < 0.15:
            return Sent(
                method=method.verb,
                path=path,
                body=self._json(values, mood),
                headers={"Content-Type": "application/json"},
                base=base,
            )
        if style < 0.25:
            return Sent(method=method.verb, path=with_query, base=base)
        kind = _FORM
        if mood is Mood.CHAOS and self._random.random() < 0.2:
            kind = self._random.choice(_OTHER_TYPES)
        return Sent(
            method=method.verb, path=path, body=form.encode(), headers={"Content-Type": kind}, base=base
        )

    def _json(self, values: Mapping[str, Any], mood: Mood) -> bytes:
        document: Any = {
            key: self._typed(value) if mood is not Mood.VALID else value for key, value in values.items()
        }
        if mood is Mood.CHAOS:
            document = self._random.choice((document, [document], "text", 1, None, {"a": {"b": [document]}}))
        body = json.dumps(document).encode()
        return (
            body[: self._random.randrange(len(body))]
            if mood is Mood.CHAOS and self._random.random() < 0.3
            else body
        )

    def _typed(self, value: Any) -> Any:
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 300:
            return self._random.choice((value, int(value), float(value[:30])))
        return self._random.choice((value, value, [value], {"a": value}, True, None, 1.5, 10**30, -(2**63)))

    def _upload(self, path: str, values: Mapping[str, Any], mood: Mood, base: str) -> Sent:
        parts = [
            f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'
            for key, value in values.items()
            if key not in ("filename", "tmpfilename")
        ]
        name = str(values.get("filename", "a.iso")).replace('"', "")
        disposition = f'Content-Disposition: form-data; name="filename"; filename="{name}"'
        if mood is Mood.CHAOS:
            disposition = self._random.choice(
                (disposition.replace("; name", "; nome"), "X: y", disposition, "")
            )
        parts.append(f"--{_BOUNDARY}\r\n{disposition}\r\n\r\nsome bytes\r\n--{_BOUNDARY}--\r\n")
        body = "".join(parts).encode("utf-8", "replace")
        if mood is Mood.CHAOS:
            body = body[: self._random.randrange(len(body))]
        return Sent(
            method="POST",
            path=path,
            body=body,
            headers={"Content-Type": f"multipart/form-data; boundary={_BOUNDARY}"},
            base=base,
        )
