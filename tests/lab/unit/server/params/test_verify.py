"""Parameters against the declared schema, in Proxmox's words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pvelab.server import facts
from pvelab.server.params.formats import format_size, is_known_format, parse_size
from pvelab.server.params.property_formats import PROPERTY_FORMATS
from pvelab.server.params.values import check_value
from pvelab.server.params.verify import Verifier
from pvelab.server.problems import PveError

FACTS = facts.load()
CREATE = "POST /nodes/{node}/qemu"
REQUIRED = {"node": "pve", "vmid": "100"}
UNDEFINED = "property is not defined in schema and the schema does not allow additional properties"


def verify(route: str, given: dict[str, Any]) -> dict[str, Any]:
    return Verifier(FACTS[route].parameters).verify(given)


def errors(route: str, given: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(PveError) as caught:
        verify(route, given)
    assert (caught.value.status, caught.value.text) == (400, "Parameter verification failed.")
    return caught.value.errors or {}


def problem(**given: Any) -> str:
    found = errors(CREATE, {**REQUIRED, **given})
    assert list(found) == list(given)
    return found[next(iter(given))]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"vmid": "x"}, "type check ('integer') failed - got 'x'"),
        ({"vmid": "\uff11\uff12\uff13"}, "type check ('integer') failed - got '\uff11\uff12\uff13'"),
        ({"vmid": "99"}, "invalid format - value does not look like a valid VM ID\n"),
        ({"cores": "0"}, "value must have a minimum value of 1"),
        ({"cpulimit": "129"}, "value must have a maximum value of 128"),
        ({"onboot": "True"}, "type check ('boolean') failed - got 'True'"),
        ({"onboot": ""}, "type check ('boolean') failed - got ''"),
        ({"bios": "efi"}, "value 'efi' does not have a value in the enumeration 'seabios, ovmf'"),
        ({"archive": "x" * 256}, "value may only be 255 characters long"),
        ({"name": "a_b"}, "invalid format - value does not look like a valid DNS name\n"),
        ({"startdate": "yesterday"}, "value does not match the regex pattern"),
        ({"zz": "1"}, UNDEFINED),
        ({"net32": "virtio"}, UNDEFINED),
        ({"net00": "virtio"}, UNDEFINED),
        ({"cores": ["1", "2"]}, "type check ('integer') failed - got ARRAY"),
        (
            {"net0": "model=virtio,foo=1"},
            "invalid format - invalid key in comma-separated list property: foo\n",
        ),
        (
            {"scsi0": "size=1G"},
            "invalid format - format error\nscsi0.file: property is missing and it is not optional\n",
        ),
        (
            {"scsi0": "local:1,iothread=2"},
            "invalid format - format error\nscsi0.iothread: type check ('boolean') failed - got '2'\n",
        ),
        (
            {"ipconfig0": "gw=10.0.0.1"},
            "invalid format - format error\nipconfig0.ip: missing property required by 'ipconfig0.gw'\n",
        ),
        (
            {"boot": "order=floppy0"},
            "invalid format - format error\nboot.order: invalid format - invalid boot device 'floppy0'\n\n",
        ),
        ({"tags": "ok;not ok;ä"}, "invalid format - invalid characters in tag\n"),
        ({"cpuunits": "9" * 5000}, f"type check ('integer') failed - got '{'9' * 5000}'"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_a_bad_value_gets_the_text_that_proxmox_gives(given: dict[str, Any], text: str) -> None:
    assert problem(**given) == text


def test_everything_that_is_wrong_is_reported_at_once() -> None:
    found = errors(CREATE, {"node": "-", "cores": "x", "bios": "z", "nope": "1"})
    assert sorted(found) == ["bios", "cores", "node", "nope", "vmid"]
    assert found["vmid"] == "property is missing and it is not optional"


def test_values_come_out_in_their_declared_types() -> None:
    given = {**REQUIRED, "cores": "2", "onboot": "1", "cpulimit": "1.5", "memory": "1024", "description": ""}
    assert verify(CREATE, given) == {
        "node": "pve",
        "vmid": 100,
        "cores": 2,
        "onboot": 1,
        "cpulimit": 1.5,
        "memory": "1024",
        "description": "",
    }


def test_json_bodies_may_hold_numbers_and_booleans() -> None:
    assert verify(CREATE, {"node": "pve", "vmid": 100, "cores": 2, "onboot": True})["onboot"] == 1
    assert problem(name=True) == "type check ('string') failed - got JSON::PP::Boolean"
    assert problem(name={"a": 1}) == "type check ('string') failed - got HASH"


def test_a_repeated_key_becomes_the_list_that_the_schema_wants() -> None:
    update = "PUT /nodes/{node}/lxc/{vmid}/config"
    assert verify(update, {**REQUIRED, "delete": ["net1", "net2"]})["delete"] == "net1,net2"


def test_a_parameter_that_needs_another_says_so() -> None:
    found = errors(CREATE, {**REQUIRED, "force": "1"})
    assert found == {"archive": "missing property required by 'force'"}


def test_every_schema_can_be_checked() -> None:
    """No pattern of any method fails to compile, and no format is unknown."""
    schemas = [item for method in FACTS.methods.values() for item in method.parameters.items()]
    unknown = set()
    for name, schema in schemas:
        check_value(name, schema, "zz", {})
        unknown |= {part for part in _formats(schema) if not is_known_format(part)}
    assert unknown <= set(PROPERTY_FORMATS)


def _formats(schema: Any) -> list[str]:
    declared = schema.get("format")
    nested = [schema["items"]] if isinstance(schema.get("items"), dict) else []
    if isinstance(declared, dict):
        nested += [part for part in declared.values() if isinstance(part, dict)]
    own = [declared] if isinstance(declared, str) else []
    return own + [name for part in nested for name in _formats(part)]


@given(st.integers(min_value=0, max_value=2**60))
def test_a_size_that_is_printed_reads_back_the_same(size: int) -> None:
    assert parse_size(format_size(size)) == size


@pytest.mark.parametrize(
    ("size", "text"),
    [(8 * 2**30, "8G"), (528 * 2**10, "528K"), (4 * 2**20, "4M"), (2**40, "1T"), (1000, "1000")],
)
def test_sizes_are_printed_in_the_largest_whole_unit(size: int, text: str) -> None:
    assert format_size(size) == text


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=40), st.sampled_from(sorted(FACTS[CREATE].parameters)))
def test_no_text_breaks_the_check_of_a_parameter(text: str, name: str) -> None:
    found: dict[str, str] = {}
    check_value(name, FACTS[CREATE].parameters[name], text, found)
    assert all(isinstance(value, str) for value in found.values())
