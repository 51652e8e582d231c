"""What changed between two contents of a state, and that no secret is shown while it is said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.state_documents import (
    attribute_step,
    encrypted_document,
    index_step,
    resource,
    state_document,
)

from stackyard.engine.changes import SENSITIVE
from stackyard.state.difference import StateChangeKind, compare_states
from stackyard.state.inside import EncryptedStateError
from stackyard.state.refusals import BodyRefusedError

SECRET = "correct-horse-battery"


def test_the_same_content_with_another_serial_is_no_difference() -> None:
    found = compare_states(state_document(1, resource("vm", "a")), state_document(9, resource("vm", "a")))
    assert found.is_empty


def test_resources_are_added_changed_and_removed() -> None:
    before = state_document(1, resource("vm", "gone"), resource("vm", "kept", {"id": "1", "cores": 2}))
    after = state_document(2, resource("vm", "kept", {"id": "1", "cores": 4}), resource("vm", "new"))
    found = compare_states(before, after)
    assert [(one.address, one.kind) for one in found.resources] == [
        ("vm.gone", StateChangeKind.REMOVED),
        ("vm.kept", StateChangeKind.CHANGED),
        ("vm.new", StateChangeKind.ADDED),
    ]
    [change] = found.resources[1].attributes
    assert (change.name, change.before, change.after) == ("cores", 2, 4)


def test_addresses_are_written_as_the_engine_writes_them() -> None:
    after = state_document(
        2,
        resource("vm", "a", index_key=0),
        resource("vm", "b", index_key='we"b', module='module.site["x"]'),
        resource("image", "c", mode="data"),
        resource("vm", "d", deposed="00aa11bb"),
    )
    found = compare_states(state_document(1), after)
    assert sorted(one.address for one in found.resources) == [
        "data.image.c",
        r'module.site["x"].vm.b["we\"b"]',
        "vm.a[0]",
        "vm.d (deposed 00aa11bb)",
    ]


def test_an_attribute_deep_inside_is_named_by_its_path() -> None:
    before = state_document(1, resource("vm", "a", {"disk": [{"size": 8}, {"size": 10}]}))
    after = state_document(2, resource("vm", "a", {"disk": [{"size": 8}, {"size": 12}, {"size": 1}]}))
    [change] = compare_states(before, after).resources
    assert [(one.name, one.before, one.after) for one in change.attributes] == [
        ("disk[1].size", 10, 12),
        ("disk[2].size", None, 1),
    ]


def test_what_the_state_calls_sensitive_is_compared_but_not_shown() -> None:
    paths = [[attribute_step("user"), index_step(0), attribute_step("key")]]
    before = state_document(
        1, resource("vm", "a", {"user": [{"key": SECRET, "name": "x"}]}, sensitive_attributes=paths)
    )
    after = state_document(
        2, resource("vm", "a", {"user": [{"key": "another-secret", "name": "y"}]}, sensitive_attributes=paths)
    )
    [change] = compare_states(before, after).resources
    shown = {one.name: (one.before, one.after) for one in change.attributes}
    assert shown == {"user[0].key": (SENSITIVE, SENSITIVE), "user[0].name": ("x", "y")}


def test_a_value_that_is_sensitive_on_one_side_is_hidden_on_both() -> None:
    before = state_document(1, resource("vm", "a", {"pin": SECRET}))
    after = state_document(
        2, resource("vm", "a", {"pin": "other-value"}, sensitive_attributes=[[attribute_step("pin")]])
    )
    assert SECRET not in repr(compare_states(before, after))


@pytest.mark.parametrize(
    "name",
    "password root_password api_token client_key private_key_pem secret kubeconfig vault_passphrase".split(),
)
def test_a_name_that_says_secret_is_hidden_without_being_marked(name: str) -> None:
    before, after = (state_document(n, resource("vm", "a", {name: f"{SECRET}-{n}"})) for n in (1, 2))
    [change] = compare_states(before, after).resources
    assert [one.before for one in change.attributes] == [SENSITIVE]


@pytest.mark.parametrize("name", ["token_id", "public_key", "secret_name", "password_length", "description"])
def test_a_name_that_only_sounds_secret_is_shown(name: str) -> None:
    before, after = (state_document(n, resource("vm", "a", {name: f"value-{n}"})) for n in (1, 2))
    [change] = compare_states(before, after).resources
    assert [(one.before, one.after) for one in change.attributes] == [("value-1", "value-2")]


def test_a_secret_inside_another_text_is_masked_there_too() -> None:
    before = state_document(1, resource("vm", "a", {"password": SECRET, "user_data": "x"}))
    after = state_document(
        2, resource("vm", "a", {"password": SECRET, "user_data": f"#cloud-config\npassword: {SECRET}\n"})
    )
    [change] = compare_states(before, after).resources
    assert [one.name for one in change.attributes] == ["user_data"]
    assert SECRET not in repr(change)
    assert "#cloud-config" in repr(change)


def test_a_private_key_is_hidden_whatever_its_name() -> None:
    pem = "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----"
    after = state_document(2, resource("tls", "a", {"content": pem}))
    found = compare_states(state_document(1), after)
    assert "abc" not in repr(found)


def test_outputs_are_compared_and_sensitive_ones_hidden() -> None:
    before = state_document(
        1,
        outputs={
            "address": {"value": "10.0.0.1", "type": "string"},
            "login": {"value": SECRET, "type": "string", "sensitive": True},
        },
    )
    after = state_document(
        2,
        outputs={
            "address": {"value": "10.0.0.2", "type": "string"},
            "login": {"value": "something-else", "type": "string", "sensitive": True},
            "names": {"value": ["a"], "type": ["list", "string"]},
        },
    )
    found = compare_states(before, after)
    assert [(one.name, one.kind, one.before, one.after) for one in found.outputs] == [
        ("address", StateChangeKind.CHANGED, "10.0.0.1", "10.0.0.2"),
        ("login", StateChangeKind.CHANGED, SENSITIVE, SENSITIVE),
        ("names", StateChangeKind.ADDED, None, ["a"]),
    ]


def test_a_resource_that_becomes_tainted_is_a_change() -> None:
    before = state_document(1, resource("vm", "a"))
    after = state_document(2, resource("vm", "a", status="tainted"))
    [change] = compare_states(before, after).resources
    assert change.notes == ("is tainted now",)
    [back] = compare_states(after, before).resources
    assert back.notes == ("is no longer tainted",)


def test_another_lineage_is_said() -> None:
    found = compare_states(state_document(1), state_document(1, lineage="another"))
    assert found.is_other_lineage


def test_an_encrypted_state_cannot_be_compared() -> None:
    with pytest.raises(EncryptedStateError, match="Serial 2"):
        compare_states(state_document(1), encrypted_document(2))


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"version":4,"serial":1,"lineage":"x","resources":[{"mode":"managed"}]}']
)
def test_garbage_is_refused(data: bytes) -> None:
    with pytest.raises(BodyRefusedError):
        compare_states(state_document(1), data)


values = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
attributes = st.dictionaries(st.sampled_from(["id", "name", "disk", "tags", "password"]), values, max_size=5)


@given(attributes, attributes)
def test_comparing_backwards_shows_the_same_the_other_way_round(
    one: dict[str, object], other: dict[str, object]
) -> None:
    first, second = (
        state_document(serial, resource("vm", "a", side)) for serial, side in ((1, one), (2, other))
    )
    there = [d for change in compare_states(first, second).resources for d in change.attributes]
    back = [d for change in compare_states(second, first).resources for d in change.attributes]
    assert [(d.path, d.before, d.after) for d in there] == [(d.path, d.after, d.before) for d in back]


@given(attributes)
def test_nothing_differs_from_itself(one: dict[str, object]) -> None:
    state = state_document(1, resource("vm", "a", one))
    assert compare_states(state, state).is_empty


@given(st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=12, max_size=24), attributes)
def test_no_secret_is_ever_shown(secret: str, one: dict[str, object]) -> None:
    before = state_document(1, resource("vm", "a", one))
    after = state_document(
        2, resource("vm", "a", {**one, "password": secret, "name": f"x{secret}y", "tags": [{"x": secret}]})
    )
    assert secret not in repr(compare_states(before, after))
