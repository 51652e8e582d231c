from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stackyard.base.documents.byte_edits import Edit, apply_edits
from stackyard.upgrades.declarations import Declaration, DeclarationKind, read_declarations

CODE = b"""\
terraform {
  required_version = ">= 1.10" # stays
  required_providers {
    null = {
      source  = "hashicorp/null" # where
      version = "~> 3.2"         // why
    }
    old = "~> 1.0"
    "any" = {}
    chosen = { source = "acme/${var.which}", version = var.version }
  }
}

module "vm" {
  source  = "acme/vm/proxmox//modules/small"
  version = "1.2.3"
}

module "local" { source = "../modules/x" }

module "packed" {
  source = "oci://registry.test/modules/vm//small?tag=2.0.1"
}
"""


def by_name(data: bytes, *, is_json: bool = False) -> dict[str, Declaration]:
    return {one.name: one for one in read_declarations(data, is_json=is_json)}


def test_constraints_are_read_with_their_line_and_bytes() -> None:
    found = by_name(CODE)
    null = found["null"]
    assert (null.kind, null.source, null.constraint, null.line) == (
        DeclarationKind.PROVIDER,
        "hashicorp/null",
        "~> 3.2",
        6,
    )
    assert null.span is not None
    assert CODE[slice(*null.span)] == b"~> 3.2"
    assert (found["vm"].source, found["vm"].constraint, found["vm"].line) == (
        "acme/vm/proxmox//modules/small",
        "1.2.3",
        16,
    )
    assert found["local"].constraint is None
    packed = found["packed"]
    assert packed.constraint == "2.0.1"
    assert packed.span is not None
    assert CODE[slice(*packed.span)] == b"2.0.1"


def test_the_short_form_of_a_provider_is_read() -> None:
    code = b'terraform {\n  required_providers {\n    old = "~> 1.0"\n  }\n}\n'
    assert by_name(code)["old"].constraint == "~> 1.0"
    assert by_name(code)["old"].source == ""


def test_what_only_an_engine_can_compute_is_said() -> None:
    code = (
        b'terraform {\n  required_providers {\n    x = { source = "a/${var.y}", version = var.v }\n  }\n}\n'
    )
    found = by_name(code)["x"]
    assert (found.source, found.constraint, found.is_computed, found.span) == (None, None, True, None)


def test_an_edit_changes_nothing_but_the_constraint() -> None:
    found = by_name(CODE)
    edits = [Edit(*one.span, "~> 9.9") for one in (found["null"], found["vm"]) if one.span is not None]
    edited = apply_edits(CODE, edits)
    assert edited == CODE.replace(b"~> 3.2", b"~> 9.9").replace(b'"1.2.3"', b'"~> 9.9"')


def test_edits_that_overlap_are_refused() -> None:
    with pytest.raises(ValueError, match="overlap"):
        apply_edits(b"abcdef", [Edit(0, 3, "x"), Edit(2, 4, "y")])


def test_an_escape_in_a_constraint_is_read_and_not_edited() -> None:
    code = b'module "m" {\n  source  = "a/b/c"\n  version = "\\u007e> 1.0"\n}\n'
    assert by_name(code)["m"].constraint == "~> 1.0"
    assert by_name(code)["m"].span is None


words = st.text(st.characters(min_codepoint=32, exclude_characters='"\\${%'), min_size=1, max_size=12)


@settings(max_examples=50)
@given(
    st.dictionaries(st.sampled_from("abcdef"), st.tuples(words, words), min_size=1),
    st.sampled_from([None, 1, 4]),
    st.booleans(),
    words,
)
def test_json_code_is_edited_in_place(
    modules: dict[str, tuple[str, str]], indent: int | None, is_listed: bool, new: str
) -> None:
    body = {name: {"source": source, "version": version} for name, (source, version) in modules.items()}
    code = {"//": "é", "module": {name: [one] for name, one in body.items()} if is_listed else body}
    data = json.dumps(code, indent=indent, ensure_ascii=False).encode()
    found = by_name(data, is_json=True)
    assert {name: (one.source, one.constraint) for name, one in found.items()} == modules
    edits = [Edit(*one.span, new) for one in found.values() if one.span is not None]
    assert len(edits) == len(modules)
    again = by_name(apply_edits(data, edits), is_json=True)
    assert {one.constraint for one in again.values()} == {new}
    assert {name: one.source for name, one in again.items()} == {
        name: one[0] for name, one in modules.items()
    }


@settings(max_examples=50)
@given(st.dictionaries(st.sampled_from("abcdef"), st.tuples(words, words), min_size=1), words, words)
def test_native_code_is_edited_in_place(modules: dict[str, tuple[str, str]], comment: str, new: str) -> None:
    blocks = [
        f'module "{name}" {{\n  source = "{source}" # {comment}\n  version   =   "{version}"\n}}\n'
        for name, (source, version) in modules.items()
    ]
    data = "\n".join(blocks).encode()
    found = by_name(data)
    edits = [Edit(*one.span, new) for one in found.values() if one.span is not None]
    edited = apply_edits(data, edits)
    expected = data
    assert len(edits) == len(modules)
    for name, (source, version) in modules.items():
        expected = expected.replace(
            f'"{name}" {{\n  source = "{source}" # {comment}\n  version   =   "{version}"'.encode(),
            f'"{name}" {{\n  source = "{source}" # {comment}\n  version   =   "{new}"'.encode(),
        )
    assert edited == expected


@settings(max_examples=50)
@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_read_without_an_error(data: bytes, is_json: bool) -> None:
    for one in read_declarations(data, is_json=is_json):
        assert one.line >= 1
