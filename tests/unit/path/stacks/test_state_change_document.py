"""The document of a change of a state: read back as written, and everything strange in it is refused."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support.bombs import alias_bomb, merge_bomb

from stackyard.base.errors import FileError, UsageError
from stackyard.path.stacks.state_change.approval import SamePersonError, approve
from stackyard.path.stacks.state_change.content import EncryptedCopyError, find_differences, version_of
from stackyard.path.stacks.state_change.document import (
    PlanAfter,
    StateChange,
    StateChangeFileError,
    StateVersion,
    parse_change,
    read_change_file,
)
from stackyard.path.stacks.state_change.operation import StateVerb, make_operation, operation_of
from stackyard.path.stacks.state_change.records import ChangeRecord

QUOTED = 'module.a["x y"].terraform_data.k["say \\"hi\\""]'
CHANGE = StateChange(
    id="20261118T010203Z-abcdef",
    stack="onprem/a",
    operation=make_operation(StateVerb.MOVE, ("terraform_data.x", QUOTED)),
    state=StateVersion(lineage="l", serial=4, digest="0" * 64),
    result="1" * 64,
    moved=(("terraform_data.x", QUOTED),),
    added=("a.b",),
    removed=("c.d",),
    plan=PlanAfter(counts={"add": 1}, changes=(("a.b", "create"),), outputs=("o",), refused=("no",)),
    proposed_by="ann@desk",
    proposed_at="2026-11-18T01:02:03Z",
    commit="abc",
)


@pytest.mark.parametrize("name", ["change.yaml", "change.json"])
def test_a_document_is_read_as_it_was_written(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(CHANGE.encode(is_json=name.endswith(".json")))
    assert read_change_file(path) == (CHANGE, path.read_bytes())


@pytest.mark.parametrize(
    "edit",
    [
        lambda said: said.pop("state"),
        lambda said: said.update(extra=1),
        lambda said: said.update(form="state-change/2"),
        lambda said: said.update(id="../../heads/x"),
        lambda said: said.update(id="20261118T010203Z-abcdef\n"),
        lambda said: said.update(stack=["a"]),
        lambda said: said["state"].update(serial=True),
        lambda said: said["state"].update(serial=-1),
        lambda said: said["state"].update(digest="xyz"),
        lambda said: said["operation"].update(verb="push"),
        lambda said: said["operation"].update(verb=["mv"]),
        lambda said: said["operation"].update(to="-state=/etc/passwd"),
        lambda said: said["operation"].update(to="terraform_data.x; rm -rf /"),
        lambda said: said["operation"].update(to=5),
        lambda said: said["operation"].update(flags="-lock=false"),
        lambda said: said.update(operation={"verb": "rm", "addresses": []}),
        lambda said: said.update(operation={"verb": "rm", "addresses": "terraform_data.x"}),
        lambda said: said.update(operation={"verb": "import", "address": "a.b", "id": "--help"}),
        lambda said: said.update(operation={"verb": "import", "address": "a.b", "id": "x\n-force"}),
        lambda said: said.update(operation={"verb": "rollback", "version": "../1"}),
        lambda said: said.update(operation={"verb": "rollback", "version": 12}),
        lambda said: said.update(operation={"verb": "replace-provider", "from": "-/aws", "to": "a/b"}),
        lambda said: said.update(operation=None),
        lambda said: said["plan"]["changes"].append({"address": "a.b", "action": "explode"}),
        lambda said: said.update(moved=[["a", "b"]]),
    ],
)
def test_an_edited_document_is_refused(edit: Callable[[dict[str, Any]], object]) -> None:
    said = copy.deepcopy(CHANGE.document())
    edit(said)
    with pytest.raises(StateChangeFileError):
        parse_change(said)


def test_files_that_are_huge_or_grow_when_read_are_refused(tmp_path: Path) -> None:
    for number, data in enumerate(
        (
            alias_bomb().encode(),
            merge_bomb().encode(),
            b"form: " + b"x" * (3 * 2**20),
            b"[" * 100_000,
            b"{" + b'"a":{' * 5000,
            b"\xff\xfe",
            b"!!python/object/apply:os.system [id]\n",
            b"",
        )
    ):
        path = tmp_path / str(number)
        path.write_bytes(data)
        with pytest.raises(StateChangeFileError):
            read_change_file(path)
    for missing in (tmp_path, tmp_path / "none", Path("a\0b")):
        with pytest.raises(FileError):
            read_change_file(missing)


def test_a_state_that_the_engine_encrypts_is_refused() -> None:
    encrypted = orjson.dumps({"serial": 1, "lineage": "l", "meta": {}, "encrypted_data": "AAAA"})
    with pytest.raises(EncryptedCopyError):
        version_of(encrypted)


def test_every_verb_is_written_and_read_alike() -> None:
    for verb, words in (
        (StateVerb.REMOVE, ("data.a.b", "module.m[0]", QUOTED)),
        (StateVerb.IMPORT, ("a.b", "pve1/100")),
        (StateVerb.PROVIDER, ("registry.terraform.io/-/aws", "example.org:8443/a/b")),
        (StateVerb.ROLLBACK, ("20261118T010203Z-abcdef",)),
    ):
        made = make_operation(verb, words)
        assert operation_of(made.document()) == made
    with pytest.raises(UsageError):
        make_operation(StateVerb.REMOVE, ())


def test_an_approval_is_for_one_document_and_by_another_user() -> None:
    record = ChangeRecord(change=CHANGE, state="stack/x")
    for same in ("ann@desk", "ANN@laptop"):
        with pytest.raises(SamePersonError):
            approve(record, same, is_alone=False, is_protected=False)
        with pytest.raises(SamePersonError):
            approve(record, same, is_alone=True, is_protected=True)
    given = approve(record, "bob@desk", is_alone=False, is_protected=True)
    assert given.is_approved
    assert given.approval is not None
    assert not given.approval.is_alone
    alone = approve(record, "ann@desk", is_alone=True, is_protected=False)
    assert alone.approval is not None
    assert alone.approval.is_alone
    other = replace(CHANGE, operation=make_operation(StateVerb.REMOVE, ("terraform_data.x",)))
    assert not replace(given, change=other).is_approved


def _state(*names: str) -> bytes:
    rows = [
        {"mode": "managed", "type": "t", "name": name, "provider": "p", "instances": [{"attributes": {}}]}
        for name in names
    ]
    return orjson.dumps({"version": 4, "serial": 1, "lineage": "l", "outputs": {}, "resources": rows})


def test_only_what_a_move_names_counts_as_moved() -> None:
    move = make_operation(StateVerb.MOVE, ("t.a", "t.b"))
    assert find_differences(_state("a", "c"), _state("b", "c"), move) == ((("t.a", "t.b"),), (), ())
    rollback = make_operation(StateVerb.ROLLBACK, ("1",))
    assert find_differences(_state("a"), _state("b"), rollback) == ((), ("t.b",), ("t.a",))
    assert find_differences(None, _state("b"), rollback) == ((), ("t.b",), ())
