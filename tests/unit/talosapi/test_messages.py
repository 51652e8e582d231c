"""The messages of the Talos API: their bytes, whatever comes, and the table of methods."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from stackyard.talosapi.messages import ENUMS, MESSAGES, STAGES, pb
from stackyard.talosapi.methods import MACHINE_METHODS_WITHOUT_MESSAGES, METHODS, Role

OUTER = sorted(name for name in MESSAGES if "." not in name)
SCALARS = {
    "bytes": st.binary(max_size=20),
    "string": st.text(max_size=20),
    "bool": st.booleans(),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "uint64": st.integers(0, 2**64 - 1),
}


def find(name: str) -> Any:
    found: Any = pb
    for part in name.split("."):
        found = getattr(found, part)
    return found


def messages(name: str, depth: int = 0) -> st.SearchStrategy[Any]:
    """Return a strategy for a message with some of its fields."""
    fields = {}
    for text in filter(None, MESSAGES[name].split(", ")):
        _, kind, field = text.split()
        mark, kind = (kind[0], kind[1:]) if kind[0] in "*%|" else ("", kind)
        if kind in SCALARS:
            value = SCALARS[kind]
        elif kind in ENUMS:
            value = st.integers(0, len(ENUMS[kind].split()) - 1)
        elif depth > 2:
            continue
        else:
            value = messages(kind, depth + 1)
        if mark == "%":
            value = st.dictionaries(st.text(max_size=5), value, max_size=2)
        elif mark == "*":
            value = st.lists(value, max_size=2)
        fields[field] = value
    return st.fixed_dictionaries({}, optional=fields).map(lambda given: find(name)(**given))


@given(st.data())
def test_a_message_is_read_as_it_was_written(data: st.DataObject) -> None:
    message = data.draw(messages(data.draw(st.sampled_from(OUTER))))
    assert type(message).FromString(message.SerializeToString()) == message


@given(st.sampled_from(OUTER), st.binary(max_size=200))
def test_bytes_that_are_no_message_are_refused_and_nothing_else_happens(name: str, data: bytes) -> None:
    try:
        find(name).FromString(data)
    except DecodeError:
        return


@given(st.data(), st.binary(max_size=50), st.integers(200, 2**28))
def test_fields_that_are_not_known_are_passed_over(data: st.DataObject, more: bytes, number: int) -> None:
    message = data.draw(messages(data.draw(st.sampled_from(OUTER))))
    tag, key = number << 3 | 2, bytearray()
    while tag > 127:
        key.append(tag & 127 | 128)
        tag >>= 7
    key.append(tag)
    unknown = bytes(key) + bytes([len(more)]) + more
    found = type(message).FromString(message.SerializeToString() + unknown)
    found.DiscardUnknownFields()
    assert found == message


def test_bytes_are_those_of_the_protocol() -> None:
    request = pb.ApplyConfigurationRequest(data=b"a", mode=3, dry_run=True)
    assert request.SerializeToString() == b"\x0a\x01a\x20\x03\x28\x01"
    member = pb.EtcdMember(id=1, hostname="n")
    assert member.SerializeToString() == b"\x10\x01\x1a\x01n"
    watch = pb.WatchRequest(namespace="n", type="t", id="")
    # An id that is given although it is empty is not the same as none.
    assert watch.SerializeToString() == b"\x0a\x01n\x12\x01t\x1a\x00"


def test_the_zero_of_a_mode_is_the_one_that_reboots() -> None:
    assert pb.ApplyConfigurationRequest.Mode.Name(pb.ApplyConfigurationRequest().mode) == "REBOOT"


def test_stages_have_the_numbers_of_their_events() -> None:
    numbers = pb.MachineStatusEvent.MachineStage
    assert [numbers.Name(number).lower().replace("_", " ") for number in range(len(STAGES))] == list(STAGES)


@pytest.mark.parametrize("name", ["Version", "Disks", "HealthCheck", "Get"])
def test_a_method_has_the_path_of_its_service(name: str) -> None:
    found = next(method for method in METHODS.values() if method.name == name)
    assert found.path == f"/{found.service}/{name}"
    assert Role.READER in found.roles


def test_only_an_administrator_changes_a_machine() -> None:
    for name in ("ApplyConfiguration", "Bootstrap", "Kubeconfig", "Reset", "Upgrade"):
        assert METHODS[f"/machine.MachineService/{name}"].roles == {Role.ADMIN}
    named = {f"/machine.MachineService/{name}" for name in MACHINE_METHODS_WITHOUT_MESSAGES}
    assert not named & set(METHODS)
