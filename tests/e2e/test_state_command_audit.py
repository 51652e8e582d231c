"""`stackyard state audit|token`: tampering is found at the exact entry; tokens are shown once."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable

import orjson
import pytest
from tests.support.state_store import NAME, Filled, contents, filled

from stackyard.clients.objects import open_objects
from stackyard.state import StateService
from stackyard.state.principals import find_by_password, hash_token

__all__ = ["filled"]


def tamper(store: Filled, key: str, change: Callable[[bytes], bytes]) -> None:
    """Change an object behind the back of the service."""
    with sqlite3.connect(store.folder / "objects.sqlite") as database:
        [[data]] = database.execute("SELECT data FROM objects WHERE key = ?", (key,)).fetchall()
        database.execute("UPDATE objects SET data = ? WHERE key = ?", (change(bytes(data)), key))
    database.close()


def test_whole_logs_are_called_whole(filled: Filled) -> None:
    filled.run("freeze", NAME, "--reason", "x")
    filled.run("token", "create", "ci", "--allow", "read")
    document = filled.run("audit", "--json").document
    assert document["is_whole"] is True
    assert [(log["name"], log["entries"]) for log in document["logs"]] == [(None, 1), (NAME, 4)]


def test_the_entries_say_who_did_what(filled: Filled) -> None:
    filled.run("rollback", NAME, "1", "--reason", "bad apply")
    entries = filled.run("audit", NAME, "--json").document["entries"]
    assert [(one["seq"], one["action"]) for one in entries] == [
        (1, "written"),
        (2, "written"),
        (3, "written"),
        (4, "rolled-back"),
    ]
    assert [one["serial"] for one in entries] == [1, 2, 3, 4]
    assert entries[0]["by"] == "alice"
    assert "bad apply" in entries[3]["detail"]
    [newest] = filled.run("audit", NAME, "--limit", "1", "--json").document["entries"]
    assert newest["seq"] == 4


@pytest.mark.parametrize("entry", [1, 2, 3])
def test_a_changed_entry_is_named(filled: Filled, entry: int) -> None:
    def change(data: bytes) -> bytes:
        head = orjson.loads(data)
        head["head"]["audit"]["tail"][entry - 1]["principal"] = "mallory"
        return orjson.dumps(head)

    tamper(filled, "heads/env!dev!pve1", change)
    ended = filled.run("audit", NAME, "--json")
    [log] = ended.document["logs"]
    assert (ended.status, log["is_whole"], log["broken_at"]) == (1, False, entry)
    assert f"Entry {entry} was changed" in log["problem"]
    text = filled.run("audit")
    assert text.status == 1
    assert f"{NAME}: TAMPERED WITH. Entry {entry} was changed." in text.stdout


def test_a_removed_entry_is_named(filled: Filled) -> None:
    def remove(data: bytes) -> bytes:
        head = orjson.loads(data)
        del head["head"]["audit"]["tail"][1]
        return orjson.dumps(head)

    tamper(filled, "heads/env!dev!pve1", remove)
    [log] = filled.run("audit", NAME, "--json").document["logs"]
    assert log["problem"] == "Entry 2 is missing."


def test_an_entry_in_an_old_segment_is_named(filled: Filled) -> None:
    for serial in range(4, 80):
        filled.write(contents(serial, serial))

    def change(data: bytes) -> bytes:
        segment = orjson.loads(zlib.decompress(data))
        segment["records"][9]["detail"] = "nothing to see here"
        return zlib.compress(orjson.dumps(segment))

    tamper(filled, "data/env!dev!pve1/audit/00000001", change)
    [log] = filled.run("audit", NAME, "--json").document["logs"]
    assert log["broken_at"] == 42


def test_a_log_that_was_made_anew_does_not_have_the_hash_that_was_noted(filled: Filled) -> None:
    noted = filled.run("audit", NAME, "--json").document["logs"][0]["last"]
    filled.write(contents(4, 4))
    assert filled.run("audit", NAME, "--expect", noted, "--json").status == 0
    other = Filled(filled.folder.with_name("forged"))
    for serial in range(1, 5):
        other.write(contents(serial, serial))
    ended = other.run("audit", NAME, "--expect", noted, "--json")
    assert (ended.status, ended.document["is_whole"]) == (1, False)
    assert "replaced" in ended.document["logs"][0]["problem"]
    missing = filled.run("audit", NAME, "--expect", f"99:{noted.partition(':')[2]}", "--json")
    assert "Entry 99 is missing" in missing.document["logs"][0]["problem"]


@pytest.mark.parametrize(
    "arguments", [("--expect", "1:ab"), (NAME, "--expect", "nonsense"), (NAME, "--service")]
)
def test_what_makes_no_sense_is_wrong_usage(filled: Filled, arguments: tuple[str, ...]) -> None:
    assert filled.run("audit", *arguments, "--json").status == 64


def test_a_token_is_shown_once_and_kept_as_a_hash(filled: Filled) -> None:
    made = filled.run(
        *("token", "create", "ci", "--allow", "env=read,write,lock", "--allow", "shared=read"),
        *("--expires", "30d", "--note", "pipeline", "--json"),
    ).document
    token = made["token"]
    listed = filled.run("token", "list", "--json")
    [principal] = listed.document["principals"]
    assert principal["access"] == [
        {"prefix": "env", "rights": ["read", "write", "lock"]},
        {"prefix": "shared", "rights": ["read"]},
    ]
    assert principal["note"] == "pipeline"
    assert token not in listed.stdout
    everything = b"".join(path.read_bytes() for path in filled.folder.iterdir())
    assert token.encode() not in everything
    assert hash_token(token).encode() in everything
    with filled.service() as service:
        found = find_by_password(service.principals.all(), "ci", token, 0.0)
    assert found is not None
    assert found.name == "ci"


def test_a_revoked_token_is_good_for_nothing(filled: Filled) -> None:
    token = filled.run("token", "create", "ci", "--allow", "admin", "--json").document["token"]
    assert filled.run("token", "revoke", "ci", "--json").document == {"revoked": "ci"}
    objects = open_objects(filled.folder)
    assert find_by_password(StateService(objects).principals.all(), "ci", token, 0.0) is None
    objects.close()
    actions = [one["action"] for one in filled.run("audit", "--service", "--json").document["entries"]]
    assert actions == ["principal-set", "principal-removed"]
    assert filled.run("token", "revoke", "ci", "--json").document["error"]["code"] == "E-STATE-PRINCIPAL"


def test_a_principal_that_is_there_is_replaced_only_on_demand(filled: Filled) -> None:
    first = filled.run("token", "create", "ci", "--allow", "read", "--json").document["token"]
    assert filled.run("token", "create", "ci", "--allow", "admin", "--json").status == 64
    second = filled.run("token", "create", "ci", "--allow", "lock", "--replace", "--json").document["token"]
    assert first != second
    [principal] = filled.run("token", "list", "--json").document["principals"]
    assert principal["access"] == [{"prefix": "", "rights": ["lock"]}]


@pytest.mark.parametrize("allow", ["fly", "env=", "env=read,fly", ""])
def test_a_right_that_is_none_is_wrong_usage(filled: Filled, allow: str) -> None:
    ended = filled.run("token", "create", "ci", "--allow", allow, "--json")
    assert ended.status == 64
    assert "admin" in ended.document["error"]["detail"]
