"""A value that the engine reports by its address is shown at its line in the variables file."""

from __future__ import annotations

from pathlib import Path

from stackyard.base.diagnostics import Severity
from stackyard.base.errors import Location
from stackyard.engine.failures import Finding
from stackyard.path.stacks.input_addresses import InputAddresses
from stackyard.sources.stacks.var_files import StackVarFiles

_FOLDER = Path("/repo/stacks/a")
_FILE = "/repo/stacks/a/vms.tfvars"
_DATA = b"""\
name = "x"
resources = {
  k3s = {
    nodes = {
      "w-1" = { vm_id = 1, disks = [
        { size = 1 },
      ] }
    }
  }
}
"""
_CODE = Location("/repo/modules/m/outputs.tf", 6)


def _refine(detail: str) -> list[tuple[str, str]]:
    places = (("resources", Location(_FILE, 2)), ("name", Location(_FILE, 1)))
    values = StackVarFiles(places=places, contents=(("vms.tfvars", _DATA),))
    finding = Finding(severity=Severity.ERROR, summary="precondition failed", detail=detail, where=_CODE)
    found = InputAddresses(values, _FOLDER).refine(finding)
    return [(f"{Path(one.where.path).name}:{one.where.line}", one.detail) for one in found if one.where]


def test_each_line_with_an_address_is_a_finding_at_its_value() -> None:
    lines = [
        '`resources["k3s"].nodes["w-1"].vm_id` is 1.',
        '`resources["k3s"].nodes["w-1"].disks[0].size` is small.',
        '`resources["k3s"].vm_config` is missing.',
        "`name` is short.",
    ]
    places = ["vms.tfvars:5", "vms.tfvars:6", "vms.tfvars:3", "vms.tfvars:1"]
    assert _refine("\n".join(lines)) == list(zip(places, lines, strict=True))


def test_lines_without_an_address_stay_with_those_that_have_one() -> None:
    text = "Two things are wrong.\n`name` is short.\nMake it longer.\n\n`resources` is empty."
    assert _refine(text) == [
        ("vms.tfvars:1", "Two things are wrong.\n`name` is short.\nMake it longer."),
        ("vms.tfvars:2", "`resources` is empty."),
    ]


def test_the_engines_note_on_its_rule_is_left_out() -> None:
    text = "`name` is short.\n\nThis was checked by the validation rule at variables.tf:3,3-13."
    assert _refine(text) == [("vms.tfvars:1", "`name` is short.")]


def test_a_message_without_an_address_of_an_input_is_left_as_it_is() -> None:
    text = "The `other` value\nand `resources[` are no addresses."
    assert _refine(text) == [("outputs.tf:6", text)]
