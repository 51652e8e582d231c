"""What was made for the first boots of guests: once, kept, and forgotten with them."""

from __future__ import annotations

import contextlib
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import asyncssh
import pytest
from tests.support.site_store import keys_in, put_sealed, read_sealed

from stackyard.clients.objects import StoreDamagedError, open_objects
from stackyard.path.first_boots import FirstBoots, Pull, own_boots
from stackyard.path.target import Target
from stackyard.sources.store import ChosenStore

TARGET = Target(kind="manifest", name="n1", node="lab")


def test_keys_are_made_once_and_are_for_their_owner_alone(tmp_path: Path) -> None:
    boots = FirstBoots(ChosenStore(base=tmp_path), TARGET)
    first = boots.ensure(["edge", "leaf"])
    assert boots.ensure(["leaf", "edge"]) == first
    assert FirstBoots(ChosenStore(base=tmp_path), TARGET).ensure(["edge", "new"])["edge"] == first["edge"]
    private = asyncssh.import_private_key(first["edge"].private_key)
    assert private.export_public_key().decode().split()[:2] == first["edge"].public_key.split()
    assert first["edge"].private_key not in repr(first)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in files if stat.S_IMODE(path.stat().st_mode) & 0o077] == []
    assert (
        FirstBoots(ChosenStore(base=tmp_path), Target(kind="manifest", name="n1", node="other")).read() == {}
    )


def test_a_guest_that_has_fetched_its_spec_keeps_what_it_fetched_it_with(tmp_path: Path) -> None:
    boots = FirstBoots(ChosenStore(base=tmp_path), TARGET)
    old = Pull(server="https://a:1", pin="sha256//a", token="token-of-the-first-run")
    new = Pull(server="https://a:2", pin="sha256//a", token="token-of-the-second-run")
    boots.give({"done": old, "late": old})
    boots.settle(["done", "nobody"])
    boots.settle([])
    boots.give({"done": new, "late": new})
    records = boots.read()
    pulls = {name: record.pull.server for name, record in records.items() if record.pull is not None}
    assert pulls == {"done": "https://a:1", "late": "https://a:2"}
    assert "token-of" not in repr(records)


def test_what_is_forgotten_is_made_anew(tmp_path: Path) -> None:
    boots = FirstBoots(ChosenStore(base=tmp_path), TARGET)
    before = boots.ensure(["edge", "leaf"])
    boots.forget(["edge", "nobody"])
    after = boots.ensure(["edge", "leaf"])
    assert after["leaf"] == before["leaf"]
    assert after["edge"].public_key != before["edge"].public_key


def test_many_at_once_see_the_same_keys(tmp_path: Path) -> None:
    names = [f"guest{number}" for number in range(8)]

    def make(_number: int) -> str:
        return repr(sorted(FirstBoots(ChosenStore(base=tmp_path), TARGET).ensure(names).items()))

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(make, range(16)))) == 1


def test_an_object_that_is_something_else_is_not_replaced(tmp_path: Path) -> None:
    boots = FirstBoots(ChosenStore(base=tmp_path), TARGET)
    boots.ensure(["edge"])
    (key,) = keys_in(tmp_path, "guests/")
    put_sealed(tmp_path, key, b"[]")
    with pytest.raises(StoreDamagedError, match="does not hold the keys of guests"):
        boots.ensure(["edge"])
    assert read_sealed(tmp_path, key) == b"[]"


def test_the_store_holds_no_key_in_clear(tmp_path: Path) -> None:
    made = FirstBoots(ChosenStore(base=tmp_path), TARGET).ensure(["edge"])
    (key,) = keys_in(tmp_path, "guests/")
    with contextlib.closing(open_objects(tmp_path / "state")) as objects:
        stored = objects.get(key)
    assert stored is not None
    assert b"PRIVATE" not in stored.data
    assert made["edge"].private_key.encode() in read_sealed(tmp_path, key).replace(b"\\n", b"\n")


def test_what_a_guest_is_given_names_its_secrets_and_holds_none(tmp_path: Path) -> None:
    boots = FirstBoots(ChosenStore(base=tmp_path), TARGET)
    boots.give({"edge": Pull(server="https://a:1", pin="sha256//a", token="token-of-edge")})
    records = boots.ensure(["edge", "leaf"])
    own, values = own_boots(records)
    assert values == {
        "guests.edge.host_key": records["edge"].private_key,
        "guests.edge.token": "token-of-edge",
        "guests.leaf.host_key": records["leaf"].private_key,
    }
    assert own["leaf"].pull is None
    assert own["edge"].host_key is not None
    assert own["edge"].host_key.public == records["edge"].public_key
    assert "token-of-edge" not in repr(own)
    assert "PRIVATE" not in repr(own)
