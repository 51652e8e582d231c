"""`stackyard state`: looking at states, going back, dropping, deleting, with the real program."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest
from tests.support.cli import PROGRAM, stackyard
from tests.support.state_documents import encrypted_document, state_document
from tests.support.state_store import NAME, SECRET, Filled, contents, filled

from stackyard.clients.objects.sealed import make_master_key
from stackyard.state import StateConflictError

__all__ = ["filled"]


def test_a_fresh_site_has_no_states_and_no_store_is_made_by_looking(tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text("defaults: {}\n")
    ended = stackyard("state", "list", "--json", cwd=tmp_path)
    assert ended.document == {"store": str(tmp_path / ".stackyard" / "state"), "states": []}
    assert not (tmp_path / ".stackyard").exists()


def test_outside_a_site_the_states_are_the_users(tmp_path: Path, home: Path) -> None:
    ended = stackyard("state", "list", "--json", cwd=tmp_path)
    assert ended.document["store"] == str(home / ".local/share/stackyard/state")


def test_a_store_that_is_named_must_be_there(tmp_path: Path) -> None:
    ended = stackyard("state", "list", "--json", "--data", str(tmp_path / "typo"))
    assert (ended.status, ended.document["error"]["code"]) == (69, "E-STORE")
    assert not (tmp_path / "typo").exists()


def test_two_stores_are_one_too_many(tmp_path: Path) -> None:
    ended = stackyard("state", "list", "--json", "--data", str(tmp_path), "--store", "s3://a/b")
    assert (ended.status, ended.document["error"]["code"]) == (64, "E-USAGE")


def test_list_shows_each_state_with_its_serial_and_status(filled: Filled) -> None:
    filled.write(state_document(7), "other")
    filled.lock()
    [first, second] = filled.run("list", "--json").document["states"]
    assert (first["name"], first["serial"], first["version"], first["instances"]) == (NAME, 3, 3, 2)
    assert first["lock_id"] == "lock-1"
    assert (second["name"], second["serial"], second["instances"]) == ("other", 7, 0)
    assert [one["name"] for one in filled.run("list", "env", "--json").document["states"]] == [NAME]
    assert "locked by bob@laptop" in filled.run("list").stdout


def test_versions_are_shown_the_newest_first(filled: Filled) -> None:
    document = filled.run("versions", NAME, "--json").document
    assert [one["serial"] for one in document["versions"]] == [3, 2, 1]
    assert document["current"] == 3
    assert {one["by"] for one in document["versions"]} == {"alice"}
    assert len(filled.run("versions", NAME, "--limit", "1", "--json").document["versions"]) == 1


def test_a_state_that_is_not_there_is_an_error(filled: Filled) -> None:
    for verb in ("versions", "show", "diff", "restore", "audit"):
        ended = filled.run(verb, "typo", "--json")
        assert (ended.status, ended.document["error"]["code"]) == (1, "E-STATE-UNKNOWN")


def test_show_tells_what_a_state_holds_and_no_secret(filled: Filled) -> None:
    ended = filled.run("show", NAME)
    assert "proxmox_virtual_environment_vm.web" in ended.stdout
    assert 'output address = "10.0.0.7"' in ended.stdout
    machine = filled.run("show", NAME, "--version", "1", "--json")
    assert machine.document["version"]["serial"] == 1
    assert machine.document["outputs"] == {"address": "10.0.0.7", "login": "(sensitive)"}
    assert SECRET not in ended.stdout + machine.stdout


def test_the_state_as_it_is_goes_to_a_file_for_its_owner(filled: Filled, tmp_path: Path) -> None:
    target = tmp_path / "saved.tfstate"
    ended = filled.run("show", NAME, "--raw", str(target), "--json")
    assert ended.document["raw"] == str(target)
    assert target.read_bytes() == contents(3, 8, "added")
    assert target.stat().st_mode & 0o777 == 0o600
    assert SECRET not in ended.stdout


def test_the_state_as_it_is_goes_to_a_pipe_byte_by_byte(filled: Filled) -> None:
    odd = state_document(4).replace(b'"check_results": null', '"odd": "\x85 \x7f ä"'.encode())
    filled.write(odd)
    assert filled.run("show", NAME, "--raw", "-").stdout.encode() == odd


def test_the_state_as_it_is_never_goes_to_a_terminal(filled: Filled) -> None:
    leader, follower = pty.openpty()
    command = [*PROGRAM, "state", "show", NAME, "--raw", "-", "--data", str(filled.folder)]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=follower, stderr=subprocess.PIPE, timeout=60, check=False
    )
    os.close(follower)
    os.close(leader)
    assert done.returncode == 64
    assert b"terminal" in done.stderr
    ended = filled.run("show", NAME, "--raw", "-", "--json")
    assert ended.status == 64


def test_diff_shows_what_the_last_write_changed(filled: Filled) -> None:
    document = filled.run("diff", NAME, "--json").document
    assert (document["before"], document["after"]) == ("version 2", "version 3")
    [change] = document["resources"]
    assert change["attributes"] == [{"name": "cores", "before": 4, "after": 8}]
    since_one = filled.run("diff", NAME, "1").stdout
    assert "+ terraform_data.added" in since_one
    assert "cores: 2 -> 8" in since_one
    assert "1 added, 1 changed, 0 removed" in since_one


def test_diff_with_a_file_compares_it_with_the_current_version(filled: Filled, tmp_path: Path) -> None:
    file = tmp_path / "errored.tfstate"
    file.write_bytes(contents(3, 1, "added").replace(SECRET.encode(), b"another-secret-value"))
    ended = filled.run("diff", NAME, str(file), "--detailed-exitcode")
    assert ended.status == 2
    assert "password: (sensitive) -> (sensitive)" in ended.stdout
    assert SECRET not in ended.stdout
    assert "another-secret-value" not in ended.stdout


def test_diff_of_nothing_is_no_change(filled: Filled) -> None:
    ended = filled.run("diff", NAME, "2", "2", "--detailed-exitcode", "--json")
    assert (ended.status, ended.document["has_changes"]) == (0, False)


@pytest.mark.parametrize(("which", "status"), [("word", 64), ("99", 1), ("./missing.tfstate", 65)])
def test_diff_with_something_that_is_not_there_is_an_error(filled: Filled, which: str, status: int) -> None:
    assert filled.run("diff", NAME, which, "--json").status == status


def test_rollback_makes_an_earlier_version_the_newest(filled: Filled, tmp_path: Path) -> None:
    document = filled.run("rollback", NAME, "1", "--reason", "bad apply", "--json").document
    assert (document["version"]["number"], document["version"]["serial"]) == (4, 4)
    assert "bad apply" in document["version"]["note"]
    filled.run("show", NAME, "--raw", str(tmp_path / "now"))
    now, then = json.loads((tmp_path / "now").read_bytes()), json.loads(contents(1, 2))
    assert now == {**then, "serial": 4}
    assert filled.run("diff", NAME, "1", "4", "--json").document["has_changes"] is False


def test_rollback_of_an_encrypted_state_serves_that_version(filled: Filled, tmp_path: Path) -> None:
    for serial in (1, 2):
        filled.write(encrypted_document(serial), "secret")
    document = filled.run("rollback", "secret", "1", "--json").document
    assert (document["version"]["kind"], document["version"]["serial"]) == ("served", 1)
    filled.run("show", "secret", "--raw", str(tmp_path / "now"))
    assert (tmp_path / "now").read_bytes() == encrypted_document(1)
    assert "encrypted" in filled.run("show", "secret").stdout


def test_a_locked_state_is_neither_rolled_back_nor_deleted(filled: Filled) -> None:
    filled.lock()
    for arguments in (("rollback", NAME, "1"), ("delete", NAME, "--reason", "x")):
        ended = filled.run(*arguments, "--json")
        assert (ended.status, ended.document["error"]["code"]) == (75, "E-STATE-HELD")
        assert "bob@laptop" in ended.document["error"]["detail"]


def test_prune_keeps_the_newest_and_the_young(filled: Filled) -> None:
    kept = filled.run("prune", "--keep", "1", "--json").document
    assert kept["dropped"][NAME]["versions"] == 0
    dropped = filled.run("prune", "--keep", "1", "--older-than", "0s", "--json").document
    assert dropped["dropped"][NAME]["versions"] == 2
    versions = filled.run("versions", NAME, "--json").document["versions"]
    assert [one["number"] for one in versions] == [3]
    assert filled.run("rollback", NAME, "1", "--json").document["error"]["code"] == "E-STATE-VERSION"


@pytest.mark.parametrize("age", ["soon", "12", "-1d", "1y"])
def test_an_age_that_is_none_is_wrong_usage(filled: Filled, age: str) -> None:
    ended = filled.run("prune", f"--older-than={age}", "--json")
    assert ended.status == 64
    assert "12h" in ended.document["error"]["detail"]


def test_a_deleted_state_comes_back_with_all_its_versions(filled: Filled) -> None:
    assert filled.run("delete", NAME, "--reason", "old", "--json").status == 0
    assert filled.run("list", "--json").document["states"] == []
    [gone] = filled.run("list", "--deleted", "--json").document["states"]
    assert gone["deleted"] == "old"
    assert filled.run("restore", NAME, "--json").document == {
        "name": NAME,
        "was_deleted": True,
        "serial": 3,
    }
    assert len(filled.run("versions", NAME, "--json").document["versions"]) == 3


def test_a_refused_write_is_kept_and_can_be_looked_at(filled: Filled, tmp_path: Path) -> None:
    stale = contents(2, 99)
    with pytest.raises(StateConflictError, match="serial 2"):
        filled.write(stale)
    [refused] = filled.run("versions", NAME, "--refused", "--json").document["refused"]
    assert refused["serial"] == 2
    filled.run("show", NAME, "--refused", refused["id"], "--raw", str(tmp_path / "saved"))
    assert (tmp_path / "saved").read_bytes() == stale


def test_a_grant_lets_one_write_through(filled: Filled) -> None:
    document = filled.run("grant", NAME, "--allow", "serial", "--reason", "by hand", "--json").document
    assert document["allow"] == ["serial"]
    filled.write(contents(2, 99))
    with pytest.raises(StateConflictError, match="serial 1"):
        filled.write(contents(1, 5))


def test_a_registered_state_is_known_and_empty(filled: Filled) -> None:
    filled.run("register", "new/state")
    [found] = filled.run("list", "new", "--json").document["states"]
    assert (found["name"], found["serial"]) == ("new/state", None)
    assert filled.run("show", "new/state", "--json").document["error"]["code"] == "E-STATE-VERSION"


def test_a_store_that_is_encrypted_at_rest_needs_its_key(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text(make_master_key())
    store = ("--data", str(tmp_path / "store"))
    assert stackyard("state", "register", "a", *store, "--key-file", str(key)).status == 0
    assert stackyard("state", "list", "--json", *store).status == 69
    by_file = stackyard("state", "list", "--json", *store, "--key-file", str(key))
    by_variable = stackyard("state", "list", "--json", *store, env={"STACKYARD_STATE_KEY": key.read_text()})
    assert [one["name"] for one in by_file.document["states"]] == ["a"]
    assert by_variable.document == by_file.document


@pytest.mark.parametrize("name", ["../x", "a//b", "/a", "a/", "a b", ""])
def test_a_name_with_tricks_is_refused(filled: Filled, name: str) -> None:
    ended = filled.run("versions", name, "--json")
    assert (ended.status, ended.document["error"]["code"]) == (65, "E-STATE-NAME")


def test_a_new_key_takes_over_while_the_store_is_in_use(tmp_path: Path) -> None:
    keys = [make_master_key() for _ in range(2)]
    for name, text in (("old", keys[0]), ("both", "\n".join(reversed(keys))), ("new", keys[1])):
        (tmp_path / name).write_text(text)
    store = ("--data", str(tmp_path / "store"), "--json", "--key-file")
    stackyard("state", "register", "a", *store, str(tmp_path / "old"))
    assert stackyard("state", "list", *store, str(tmp_path / "new")).status == 69
    assert stackyard("state", "reseal", *store, str(tmp_path / "both")).document["resealed"] > 0
    assert stackyard("state", "reseal", *store, str(tmp_path / "both")).document == {"resealed": 0}
    listed = stackyard("state", "list", *store, str(tmp_path / "new"))
    assert [one["name"] for one in listed.document["states"]] == ["a"]
    without = stackyard("state", "reseal", "--data", str(tmp_path / "store"), "--json")
    assert without.status == 64
