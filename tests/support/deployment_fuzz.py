"""Mutations of a valid object, and what must hold of whatever they are read as."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

from tests.support.deployment import WHOLE, text_of
from tests.support.site_fuzz import mutated as mutated_text

from stackyard.base.errors import InvalidInputError
from stackyard.desired import problems
from stackyard.render import render
from stackyard.sources.deployment.difference import compare
from stackyard.sources.deployment.explain import explain
from stackyard.sources.deployment.schema import load_shipped_schema
from stackyard.sources.deployment.text import parse, same, strip_comments
from stackyard.sources.deployment.validate import ValidatedObject, check

__all__ = ["fuzz", "mutate"]

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 99, 100, 2**63, 10**30, 1.5, "", "x", "100", "ü🦊", "a" * 300),
    *([], {}, [[]], {"_c": 1}, {"a": {}}, ["a", "a"], "dhcp", "10.0.10.5/24", "10.0.10.1", "::1/64"),
    *("pve2", "compute", "local-lvm", "${path.module}", "%{ if true }", "../../etc/passwd", "\n", "\u0000"),
)
NAMES = (
    "x",
    "_x",
    "",
    "vm_id",
    "web 1",
    "a.b",
    "openbao-11",
    "cpu_core",
    "ü",
    "${a}",
    "a" * 200,
    "__proto__",
)


def _places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found = [path]
    if isinstance(value, dict):
        for key, part in value.items():
            found += _places(part, (*path, key))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            found += _places(part, (*path, index))
    return found


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def mutate(rng: random.Random) -> str:
    """Return the text of an object that differs from a valid one by an accident or a slip."""
    if rng.random() < 0.35:
        return mutated_text(text_of(WHOLE), rng)
    data = copy.deepcopy(WHOLE)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = [path for path in _places(data) if path]
        path = rng.choice(places)
        parent, key = _at(data, path[:-1]), path[-1]
        action = rng.choice(("value", "value", "drop", "rename", "copy", "add", "swap"))
        if action == "value":
            parent[key] = rng.choice(VALUES)
        elif action == "drop":
            del parent[key]
        elif action == "swap":
            parent[key] = copy.deepcopy(_at(data, rng.choice(places)))
        elif isinstance(parent, list):
            parent.append(copy.deepcopy(parent[int(key)]))
        elif action == "rename":
            parent[_slip(str(key), rng)] = parent.pop(key)
        elif action == "copy":
            parent[f"{key}2"] = copy.deepcopy(parent[key])
        else:
            parent[rng.choice(NAMES)] = rng.choice(VALUES)
    return json.dumps(data, indent=2, ensure_ascii=rng.random() < 0.5)


def _slip(key: str, rng: random.Random) -> str:
    at = rng.randrange(len(key) + 1)
    return rng.choice((key[:at] + key[at + 1 :], key[:at] + "x" + key[at:], key.upper(), f"_{key}", "other"))


def check_one(text: str) -> bool:
    """Check what must hold of a mutation, and tell whether it was still a valid object."""
    try:
        document = parse(text.encode(errors="surrogatepass"), "o")
    except InvalidInputError:
        return False
    result = check(document)
    for found in result.found:
        assert found.detail, text
        assert found.where is not None, text
        assert found.where.line is not None, text
    if result.found.errors:
        return False
    _check_accepted(result, text)
    return True


def _check_accepted(result: ValidatedObject, text: str) -> None:
    data = result.document.data
    # Whatever means something else than the original is shown by guest and field.
    if not same(_said(WHOLE), _said(data)):
        assert not compare(WHOLE, data).is_empty, text
    else:
        assert compare(WHOLE, data).is_empty, text
    understood, desired = result.understood, result.desired
    assert understood is not None, text
    assert desired is not None, text
    assert problems(desired) == (), text
    assert [guest.key for guest in understood.guests if not guest.is_container] == [
        vm.key for vm in desired.vms
    ], text
    assert {guest.key for guest in understood.guests} == {guest.key for guest in desired.guests}, text
    ids = [guest.vm_id for guest in desired.guests]
    assert len(ids) == len(set(ids)), text
    written = {*strip_comments(data)["containers"], *(strip_comments(data).get("vms") or {})}
    assert written <= {guest.key for guest in desired.guests}, text
    render(desired)
    known = {
        name: set(load_shipped_schema()["definitions"][name]["properties"]) for name in ("container", "vm")
    }
    for guest in understood.guests:
        shown = {value.key: value.value for value in explain(guest, result.document)}
        names = known["container" if guest.is_container else "vm"]
        for path, value in _leaves(guest.entry):
            if path.partition(".")[0] not in names:
                # What nobody acts on is said.
                assert len(result.found.warnings), text
            elif path != "tags":
                assert path in shown, (path, text)
                assert same(shown[path], value) or value is None, (path, text)


def _said(value: Any) -> Any:
    """Return an object without comments and without what is null, which counts as not written."""
    if isinstance(value, dict):
        return {key: _said(part) for key, part in strip_comments(value).items() if part is not None}
    return value


def _leaves(entry: Any, path: str = "") -> list[tuple[str, Any]]:
    if isinstance(entry, dict) and entry:
        inner = [(f"{path}.{key}" if path else key, part) for key, part in entry.items() if part is not None]
        return [leaf for name, part in inner for leaf in _leaves(part, name)]
    if isinstance(entry, list | dict) and path:
        # Lists of objects are completed item by item, and shown as a whole.
        return [] if any(isinstance(one, dict) for one in entry) or not entry else [(path, entry)]
    return [(path, entry)] if path else []


def fuzz(*, count: int, seed: int) -> tuple[int, int]:
    """Check many mutations, and return how many objects were still valid and how many were not."""
    rng = random.Random(seed)
    valid = sum(check_one(mutate(rng)) for _ in range(count))
    return valid, count - valid
