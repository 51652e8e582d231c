"""The schema gate: the contract of the seed, extended by users and never weakened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from tests.support.deployment import CONTAINER, SMALL, WHOLE, checked, codes, edited

from stackyard.sources.deployment.schema import OwnSchema, SchemaFileError, load_shipped_schema
from stackyard.sources.deployment.validate import Rules


def test_the_container_of_the_seed_is_valid_as_it_is_written() -> None:
    assert codes(SMALL) == []
    assert codes(WHOLE) == []


@pytest.mark.parametrize("key", ["containers", "nodes", "pools", "proxmox_node"])
def test_what_the_contract_requires_must_be_there(key: str) -> None:
    assert codes(edited(SMALL, **{key: None})) == ["E-DEPLOYMENT-SCHEMA"]


@pytest.mark.parametrize("key", ["containers", "nodes", "pools"])
@pytest.mark.parametrize("value", [{}, {"_comment": "x"}, {"_a": {"vm_id": 100}, "_b": 1}])
def test_a_map_of_comments_alone_is_an_empty_map(key: str, value: dict[str, Any]) -> None:
    assert codes(edited(SMALL, **{key: value})) == ["E-DEPLOYMENT-NO-ENTRY"]
    # Also for those who use the schema alone, comments and all.
    assert not jsonschema_rs.is_valid(load_shipped_schema(), edited(SMALL, **{key: value}))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("vm_id", 99),
        ("vm_id", "123"),
        ("vm_id", 1_000_000_000),
        ("vm_id", True),
        ("hostname", ""),
        ("hostname", "a b"),
        ("vlan", ""),
        ("vlan", 10),
        ("cpu_cores", 33),
        ("cpu_cores", 0),
        ("memory_dedicated", 63),
        ("memory_swap", -1),
        ("tags", "web"),
        ("tags", ["Web"]),
        ("dhcp", "yes"),
        ("root_disk", {"size": 0}),
        ("root_disk", 16),
        ("os_type", "windows"),
        ("network_interfaces", []),
    ],
)
def test_a_field_with_a_wrong_value_is_refused_with_its_place(field: str, value: Any) -> None:
    found = checked(edited(SMALL, **{f"containers__my-container__{field}": value})).found.errors
    assert [finding.kind.code for finding in found] == ["E-DEPLOYMENT-SCHEMA"]
    assert all(finding.where is not None and finding.where.line for finding in found)
    assert f"my-container.{field}" in found[0].detail


@pytest.mark.parametrize("field", ["vm_id", "hostname", "vlan"])
def test_what_a_container_requires_must_be_there(field: str) -> None:
    found = checked(edited(SMALL, **{f"containers__my-container__{field}": None})).found.errors
    assert [finding.kind.code for finding in found] == ["E-DEPLOYMENT-SCHEMA"]


def test_every_violation_is_reported_at_once() -> None:
    wrong = edited(
        SMALL,
        containers__a={**CONTAINER, "vm_id": 1},
        containers__b={**CONTAINER, "hostname": ""},
        nodes__pve1__rolle="x",
    )
    assert codes(wrong).count("E-DEPLOYMENT-SCHEMA") == 3


def test_a_node_is_closed_because_a_misspelt_logical_id_would_opt_it_out() -> None:
    assert "E-DEPLOYMENT-SCHEMA" in codes(edited(SMALL, nodes__pve1__logicalid=1))
    assert codes(edited(SMALL, nodes__pve1___note="fine")) == []


@pytest.mark.parametrize("value", [{"_c": "x"}, {}])
def test_comments_may_stand_in_every_map(value: dict[str, Any]) -> None:
    assert codes(edited(SMALL, **{"containers__my-container___why": value, "_top": value})) == []


def test_a_schema_of_ones_own_asks_for_more(tmp_path: Path) -> None:
    path = tmp_path / "deployment.schema.json"
    path.write_text(json.dumps({"required": ["domain"], "properties": {"domain": {"pattern": "lan$"}}}))
    rules = Rules(own=OwnSchema(path))
    assert codes(SMALL, rules) == ["E-DEPLOYMENT-OWN-SCHEMA"]
    assert codes(edited(SMALL, domain="x.com"), rules) == ["E-DEPLOYMENT-OWN-SCHEMA"]
    assert codes(edited(SMALL, domain="x.lan"), rules) == []


def test_a_schema_of_ones_own_cannot_ask_for_less(tmp_path: Path) -> None:
    path = tmp_path / "deployment.schema.json"
    path.write_text(json.dumps({"type": "object", "properties": {"containers": True}}))
    assert codes(edited(SMALL, containers={}), Rules(own=OwnSchema(path))) == ["E-DEPLOYMENT-NO-ENTRY"]


@pytest.mark.parametrize(
    "text", ['{"type": "nope"}', '{"$ref": "https://example.invalid/schema.json"}', '{"properties": 3}']
)
def test_a_schema_of_ones_own_that_is_none_is_an_error_of_its_own(tmp_path: Path, text: str) -> None:
    path = tmp_path / "deployment.schema.json"
    path.write_text(text)
    with pytest.raises(SchemaFileError):
        OwnSchema(path)
