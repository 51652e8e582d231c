"""What own code declares is read without an engine: both syntaxes, local modules, and what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.site import SEED, codes, findings, write_site

from stackyard.sources.site.load import Site
from stackyard.sources.site.own_code.blocks import read_blocks
from stackyard.sources.site.own_code.folder import read_code_folder

HCL = b"""
variable "guests" {}
variable size {
  default = 3
}
output "secret" {
  value     = "${var.size} }"
  sensitive = true
}
resource "terraform_data" "x" {
  input = <<-EOT
    output "no" {}
  EOT
}
"""
JSON = b"""{
  "variable": {"guests": {}, "size": [{"default": 3}]},
  "output": {"secret": {"value": "v", "sensitive": true}},
  "resource": {"terraform_data": {"x": {"input": "i"}}},
  "terraform": {"required_version": ">= 1.8"}
}"""
ENV = {"envs/dev.yaml": "node: pve\n" + SEED["envs/dev.yaml"]}


@pytest.mark.parametrize(("name", "data"), [("a.tf", HCL), ("a.tofu", HCL), ("a.tf.json", JSON)])
def test_both_syntaxes_declare_the_same(name: str, data: bytes) -> None:
    blocks = {(block.type, *block.labels): block for block in read_blocks(name, data)}
    blocks.pop(("terraform",), None)
    assert list(blocks) == [
        ("variable", "guests"),
        ("variable", "size"),
        ("output", "secret"),
        ("resource", "terraform_data", "x"),
    ]
    assert "default" not in blocks["variable", "guests"].attributes
    assert blocks["variable", "size"].attributes["default"] == "3"
    assert blocks["output", "secret"].attributes["sensitive"] == "true"


@pytest.mark.parametrize(
    "data", [b"", b"{", b'"', b'variable "a', b"[]", b'{"variable": 3}', b"\xff\x00{", b"}{"]
)
def test_code_that_cannot_be_read_is_left_to_the_engine(data: bytes) -> None:
    for name in ("a.tf", "a.tf.json"):
        assert all(block.type for block in read_blocks(name, data))


def test_the_fingerprint_covers_templates_and_local_modules(tmp_path: Path) -> None:
    files = {
        "own/main.tf": 'module "a" {\n  source = "../modules/a"\n}\n',
        "own/deep/x.tpl": "text",
        "modules/a/main.tf": 'module "b" {\n  source = "./b"\n}\nmodule "a" {\n  source = "../a"\n}\n',
        "modules/a/b/main.tf": "",
        "elsewhere/main.tf": "",
    }
    write_site(tmp_path, files)
    code = read_code_folder("own", tmp_path / "own", "own")
    assert [path.name for path in code.modules] == ["own", "a", "b"]
    seen = {code.digest()}
    for number, name in enumerate(("own/deep/x.tpl", "modules/a/b/main.tf", "own/main.tf", "own/new.txt")):
        (tmp_path / name).write_text(f"# {number}\n")
        seen.add(code.digest())
        assert len(seen) == number + 2
    before = code.digest()
    (tmp_path / "elsewhere/main.tf").write_text("# x\n")
    (tmp_path / "own/.terraform").mkdir()
    (tmp_path / "own/.terraform/modules.json").write_text("{}")
    assert code.digest() == before


def test_needs_change_with_providers_and_modules_and_with_nothing_else(tmp_path: Path) -> None:
    def needs(text: str) -> frozenset[str]:
        write_site(tmp_path, {"own/main.tf": text})
        return read_code_folder("own", tmp_path / "own", "own").needs

    plain = 'resource "terraform_data" "a" {}\n'
    assert needs(plain) == needs(plain.replace('"a"', '"b"') + 'output "o" {\n  value = 1\n}\n')
    assert needs(plain) != needs(plain + 'resource "random_id" "a" {}\n')
    assert needs(plain) != needs(plain + 'module "m" {\n  source = "a/b/c"\n}\n')
    assert needs(plain) != needs(plain + 'terraform {\n  required_version = ">= 1"\n}\n')


def test_own_code_without_an_env_or_a_file_in_place_of_a_folder_is_an_error(tmp_path: Path) -> None:
    write_site(tmp_path, {**SEED, **ENV, "envs/dve.tf/main.tf": HCL.decode(), "envs/test.tf.json": "{}"})
    found = {one.kind.code: one for one in findings(tmp_path) if one.kind.code.startswith("E-")}
    assert set(found) == {"E-OWN-CODE-ENV", "E-OWN-CODE-FILE"}
    assert "Did you mean `dev`?" in found["E-OWN-CODE-ENV"].detail
    assert "envs/test.tf/main.tf" in found["E-OWN-CODE-FILE"].detail


def test_outputs_that_an_env_would_have_twice_are_an_error(tmp_path: Path) -> None:
    output = 'output "%s" {\n  value = 1\n}\n'
    files = {"envs/dev.tf/a.tf": output % "guests" + output % "same", "extra/b.tf": output % "same"}
    write_site(tmp_path, {**SEED, **ENV, **files})
    assert codes(tmp_path) == ["E-OWN-CODE-OUTPUT", "E-OWN-CODE-OUTPUT"]


def test_a_variable_gets_its_value_from_the_env_its_default_or_the_secrets(tmp_path: Path) -> None:
    code = (
        'variable "guests" {}\nvariable "env" {}\nvariable "a" {\n  default = null\n}\nvariable "token" {}\n'
    )
    write_site(tmp_path, {**SEED, **ENV, "envs/dev.tf/main.tf": code})
    (missing,) = Site.open(tmp_path).found.errors
    assert missing.kind.code == "E-OWN-CODE-VARIABLE"
    assert missing.where is not None
    assert missing.where.line == 6
    secrets = {"secrets.yaml": SEED["secrets.yaml"] + "variables:\n  token: |\n    two\n    lines\n"}
    write_site(tmp_path, {**SEED, **ENV, **secrets})
    site = Site.open(tmp_path)
    assert site.found.errors == ()
    assert dict(site.secrets.values())["variables.token"] == "two\nlines\n"


def test_a_folder_without_code_and_a_file_of_variables_are_reported(tmp_path: Path) -> None:
    files = {"envs/dev.tf/README.md": "x", "extra/a.tf": "", "extra/terraform.tfvars": "a = 1\n"}
    write_site(tmp_path, {**SEED, **ENV, **files})
    found = [one.kind.code for one in findings(tmp_path) if "OWN-CODE" in one.kind.code]
    assert found == ["E-OWN-CODE-EMPTY", "W-OWN-CODE-TFVARS"]
