"""Values that do not fit the types of their variables are named with their line."""

from __future__ import annotations

import json
import time

import pytest

from stackyard.base.diagnostics import Diagnostic
from stackyard.sources.stacks.hcl import parse_hcl
from stackyard.sources.stacks.json_code import parse_json_code
from stackyard.sources.stacks.tfvars import read_tfvars
from stackyard.sources.stacks.value_check import check_values
from stackyard.sources.stacks.value_types import ValueType, read_types

_CODE = """
variable "resources" {
  type = map(object({
    type    = string # vm or lxc
    enabled = optional(bool, true)
    tags    = optional(list(string), [])
    config = optional(object({
      cpu_cores = optional(number, 1)
      disks = optional(list(object({
        size = number
      })), [])
    }))
    nodes = optional(map(object({ vm_id = number })), {})
  }))
}
variable "plain" { type = map(string) }
variable "anything" { type = any }
variable "pair" { type = tuple([string, object({ a = number })]) }
"""


def _types(code: str = _CODE) -> dict[str, ValueType]:
    found = parse_hcl(code.encode()).variables
    return read_types({name: one.shape for name, one in found.items() if one.shape is not None})


def _check(text: str, path: str = "vms.tfvars") -> list[Diagnostic]:
    data = text.encode()
    return check_values(read_tfvars(data, path), data, _types())


def _found(text: str, path: str = "vms.tfvars") -> list[tuple[str, int | None, str]]:
    return [(one.kind.code, one.where.line if one.where else None, one.detail) for one in _check(text, path)]


def test_only_types_with_an_object_are_compared() -> None:
    assert sorted(_types()) == ["pair", "resources"]


def test_everything_that_does_not_fit_is_named_at_once_with_its_line() -> None:
    text = """\
resources = {
  k3s = {
    type = "vm"
    config = {
      cpu_core = 2
      disks = [
        { size = 1 },
        { sice = 2 },
      ]
    }
    nodes = {
      w1 = { vm_id = [1] }
      w2 = {}
    }
  }
  "odd.name" = { tags = "web" }
}
"""
    assert _found(text) == [
        (
            "E-STACK-VALUE-UNKNOWN",
            5,
            '`resources["k3s"].config.cpu_core` is not in the type of the variable. '
            "Did you mean `cpu_cores`?",
        ),
        (
            "E-STACK-VALUE-UNKNOWN",
            8,
            '`resources["k3s"].config.disks[1].sice` is not in the type of the variable. '
            "Did you mean `size`?",
        ),
        ("E-STACK-VALUE-MISSING", 8, '`resources["k3s"].config.disks[1]` has no `size`.'),
        (
            "E-STACK-VALUE-TYPE",
            12,
            '`resources["k3s"].nodes["w1"].vm_id` is a list, and it has to be a number.',
        ),
        ("E-STACK-VALUE-MISSING", 13, '`resources["k3s"].nodes["w2"]` has no `vm_id`.'),
        ("E-STACK-VALUE-TYPE", 16, '`resources["odd.name"].tags` is a text, and it has to be a list.'),
        ("E-STACK-VALUE-MISSING", 16, '`resources["odd.name"]` has no `type`.'),
    ]


@pytest.mark.parametrize(
    "value",
    [
        '{ a = { type = "vm", nodes = { b = { vm_id = "12" } } } }',
        '{ a = { type = 5, enabled = "true", tags = [1, true] } }',
        "{ a = { type = null, config = null, nodes = null } }",
        '{ a = { type = "x", config = { cpu_cores = "Inf" } } }',
        '{ a = { type = "x", config = { cpu_cores = "-inf" } } }',
        '{ a = { type = "x", config = { cpu_cores = 1 + 1 } } }',
        "{}",
        "null",
        '{ for name in ["a"] : name => {} }',
    ],
)
def test_what_opentofu_takes_is_no_finding(value: str) -> None:
    assert _found(f"resources = {value}\n") == []


def test_truth_and_numbers_are_not_converted_into_each_other() -> None:
    found = _found('resources = { a = { type = "x", enabled = 1, config = { cpu_cores = true } } }\n')
    assert [detail for _, _, detail in found] == [
        '`resources["a"].enabled` is a number, and it has to be `true` or `false`.',
        '`resources["a"].config.cpu_cores` is true or false, and it has to be a number.',
    ]


def test_items_of_a_tuple_are_compared_one_by_one() -> None:
    assert [code for code, _, _ in _found('pair = ["a", { b = 1 }]\n')] == [
        "E-STACK-VALUE-UNKNOWN",
        "E-STACK-VALUE-MISSING",
    ]
    assert _found('pair = ["a"]\n') == [
        ("E-STACK-VALUE-TYPE", 1, "`pair` is a list, and it has to be a list of 2.")
    ]


def test_values_in_json_have_their_lines_too() -> None:
    text = json.dumps({"resources": {"a": {"type": "vm", "typ": "x"}}}, indent=1)
    (finding,) = _found(text, "vms.tfvars.json")
    assert finding[:2] == ("E-STACK-VALUE-UNKNOWN", 5)


def test_a_message_never_has_a_value() -> None:
    text = 'resources = { a = { type = "vm", tags = "hunter2-secret", hidden = "s3cret-of-mine" } }\n'
    said = " ".join(detail for _, _, detail in _found(text))
    assert "hunter2" not in said
    assert "s3cret" not in said


def test_types_of_json_code_are_compared_too() -> None:
    code = {"variable": {"x": {"type": "object({ a = number, b = optional(string) })"}}}
    found = parse_json_code(json.dumps(code).encode()).variables["x"]
    assert found.shape is not None
    data = b"x = { c = 1 }\n"
    findings = check_values(read_tfvars(data, "x.tfvars"), data, read_types({"x": found.shape}))
    assert [one.kind.code for one in findings] == ["E-STACK-VALUE-UNKNOWN", "E-STACK-VALUE-MISSING"]


def test_a_large_file_is_compared_in_a_fraction_of_the_time_that_reading_takes() -> None:
    entry = '  "app%d" = { type = "vm", tags = ["a", "b"], nodes = { "h%d" = { vm_id = %d } } }\n'
    data = ("resources = {\n" + "".join(entry % (n, n, n) for n in range(20_000)) + "}\n").encode()
    start = time.process_time()
    read = read_tfvars(data, "vms.tfvars")
    reading = time.process_time() - start
    types = _types()
    start = time.process_time()
    assert check_values(read, data, types) == []
    assert time.process_time() - start < reading
