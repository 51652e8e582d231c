"""What earlier versions kept in files is in the store once it is opened, and nothing is lost on the way."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from tests.support.site_store import keys_in, read_sealed

from stackyard.clients.objects import ABSENT, Expect, MemoryObjects, StoreError, Tag, open_objects
from stackyard.sources.store import ChosenStore, earlier_files


@pytest.fixture
def base(tmp_path: Path) -> Path:
    base = tmp_path / ".stackyard"
    for name, text in {
        "journal/t1.json": json.dumps({"state": "env/a/lab", "x": 1}),
        "journal/broken.json": "{",
        "operator/a/record.json": json.dumps({"manifest": "m 1", "host": "lab"}),
        "operator/a/lock": "",
        "guests/env--a--lab.json": "{}",
        "controller/certificate/server.pem": "KEY",
        "controller/tokens.json": "[]",
        "controller/tokens.last-change": "5",
    }.items():
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(text)
    return base


def test_each_file_becomes_an_object_and_secrets_are_sealed(base: Path) -> None:
    ChosenStore(base=base).open().close()
    assert keys_in(base, "journal/") == ["journal/env!a!lab/t1"]
    assert len(keys_in(base, "operator/")) == 1
    assert keys_in(base, "guests/") == ["guests/env!a!lab"]
    assert read_sealed(base, "controller/certificate-key") == b"KEY"
    with contextlib.closing(open_objects(base / "state")) as objects:
        sealed, plain = objects.get("controller/certificate-key"), objects.get("controller/tokens-changed")
    assert sealed is not None
    assert plain is not None
    assert b"KEY" not in sealed.data
    assert plain.data == b"5"
    assert not earlier_files.are_there(base)
    # What cannot be read is put aside, and not removed.
    assert (base / "journal.old" / "broken.json").exists()


def test_what_the_store_has_already_is_not_replaced(base: Path) -> None:
    with contextlib.closing(open_objects(base / "state")) as objects:
        objects.put("journal/env!a!lab/t1", b"newer", expect=ABSENT)
    ChosenStore(base=base).open().close()
    with contextlib.closing(open_objects(base / "state")) as objects:
        found = objects.get("journal/env!a!lab/t1")
    assert found is not None
    assert found.data == b"newer"


class Full(MemoryObjects):
    """A store without room."""

    def put(self, key: str, data: bytes, *, expect: Expect, before: object = None) -> Tag:
        del key, data, expect, before
        raise StoreError("no room")


def test_a_file_stays_until_its_content_is_stored(base: Path) -> None:
    before = {path for path in base.rglob("*") if path.is_file()}
    with pytest.raises(StoreError):
        earlier_files.take_over(ChosenStore(base=base), Full())
    assert before <= {path for path in base.rglob("*") if path.is_file()}


def test_a_site_without_such_files_is_left_alone(tmp_path: Path) -> None:
    assert not earlier_files.are_there(tmp_path / ".stackyard")
