"""Reading states and locks as the engines write them, and giving a state another serial."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.state_client import LINEAGE, lock_body, state_body

from stackyard.state import (
    BodyRefusedError,
    LockInfo,
    StateDocument,
    make_lock_info,
    parse_lock_info,
    read_document,
)
from stackyard.state.document import with_serial


def test_a_plain_state_and_an_encrypted_one_tell_what_they_can() -> None:
    assert read_document(state_body(7, resources=3)) == StateDocument(
        serial=7, lineage=LINEAGE, resources=3, instances=3, engine_version="1.12.6"
    )
    envelope = {"serial": 2, "lineage": "x", "meta": {}, "encrypted_data": "AAAA", "encryption_version": "v0"}
    assert read_document(json.dumps(envelope).encode()) == StateDocument(
        serial=2, lineage="x", is_encrypted=True
    )


def test_a_new_serial_leaves_every_other_byte_as_it_was() -> None:
    text = (
        '{ "version" : 4,\n "big": 123456789012345678901234567890, "float": 1.0, "e": 1e400,\n'
        ' "nested": {"serial": 1, "lineage": "no"}, "lineage":\t"old" , "serial":9,"resources":[ ]}\n'
    )
    changed = with_serial(text.encode(), 12, "new")
    assert changed.decode() == text.replace('"old"', '"new"').replace('"serial":9', '"serial":12')


@given(st.integers(0, 2**63 - 1), st.text(min_size=1))
def test_any_serial_and_lineage_can_be_given(serial: int, lineage: str) -> None:
    lineage = lineage.encode("utf-8", "replace").decode()
    changed = with_serial(json.dumps(json.loads(state_body(1)), indent=2).encode(), serial, lineage)
    found = json.loads(changed)
    assert (found["serial"], found["lineage"]) == (serial, lineage)
    assert {**found, "serial": 1, "lineage": LINEAGE} == json.loads(state_body(1))


def test_a_lock_is_kept_byte_by_byte() -> None:
    body = lock_body(who="ä@b").replace(b", ", b" ,  ")
    info = parse_lock_info(body)
    assert (info.body(), info.who, info.is_bare) == (body, "ä@b", False)


@pytest.mark.parametrize("created", ['""', '"yesterday"', '"2026-13-01T00:00:00Z"', '"2026-01-01"'])
def test_a_time_that_go_cannot_read_is_replaced_so_that_others_can_read_the_lock(created: str) -> None:
    info = parse_lock_info(f'{{"ID":"x","Who":"me","Created":{created}}}'.encode())
    shown = json.loads(info.body())
    assert (shown["ID"], shown["Who"], shown["Created"]) == ("x", "me", "0001-01-01T00:00:00Z")


def test_force_unlock_of_opentofu_is_recognised() -> None:
    empty = b'"Operation":"","Info":"","Who":"","Version":"","Created":"0001-01-01T00:00:00Z","Path":""'
    body = b'{"ID":"x",' + empty + b"}"
    assert parse_lock_info(body).is_bare
    assert make_lock_info(LockInfo(id="x")).body() == body


@given(st.binary(max_size=200))
def test_no_body_makes_anything_but_a_value_or_a_refusal(body: bytes) -> None:
    refused = 0
    for read in (read_document, parse_lock_info):
        try:
            read(body)
        except BodyRefusedError:
            refused += 1
    # What is a lock is no state, and the other way round.
    assert refused >= 1
