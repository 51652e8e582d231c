"""What the code of a stack says, in both syntaxes, and whatever its files hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.stacks import repository

from stackyard.sources.stacks.code_file import CodeFile
from stackyard.sources.stacks.facts import StackFacts, read_facts
from stackyard.sources.stacks.globs import compile_glob
from stackyard.sources.stacks.hcl import parse_hcl, parse_values
from stackyard.sources.stacks.json_code import parse_json_code, parse_json_values

NATIVE = """terraform {
  required_providers {
    proxmox = { source = "bpg/proxmox" }
  }
  backend "s3" {
    bucket = "states"
    key    = "onprem/${local.name}.tfstate"
    secret = var.secret
  }
}
locals { name = "a" }
variable "secret" {
  type      = string
  sensitive = true
}
variable "size" { default = 3 }
output "id" { value = 1 }
module "near" { source = "../../modules/m" }
module "far" { source = "terraform-aws-modules/vpc/aws" }
resource "random_pet" "x" {}
data "terraform_remote_state" "net" {
  backend = "s3"
  config = { bucket = "states", key = "net.tfstate" }
}
"""
JSON = """{
  "terraform": {
    "required_providers": {"proxmox": {"source": "bpg/proxmox"}},
    "backend": {"s3": {"bucket": "states", "key": "onprem/${local.name}.tfstate", "secret": "${var.secret}"}}
  },
  "locals": {"name": "a"},
  "variable": {"secret": {"type": "string", "sensitive": true}, "size": {"default": 3}},
  "output": {"id": {"value": 1}},
  "module": {"near": {"source": "../../modules/m"}, "far": [{"source": "terraform-aws-modules/vpc/aws"}]},
  "resource": {"random_pet": {"x": {}}},
  "data": {"terraform_remote_state": {"net": {
    "backend": "s3", "config": {"bucket": "states", "key": "net.tfstate"}}}}
}
"""


def facts_of(root: Path, files: dict[str, str]) -> StackFacts:
    found = repository(root, {f"stacks/a/{name}": text for name, text in files.items()})
    return read_facts(found, found.stacks["a"])


@pytest.mark.parametrize(("name", "text"), [("main.tf", NATIVE), ("main.tf.json", JSON)])
def test_both_syntaxes_say_the_same(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "modules/m").mkdir(parents=True)
    (tmp_path / "modules/m/main.tf").write_text('resource "tls_key" "k" {}\n')
    facts = facts_of(tmp_path, {name: text})
    assert facts.backend is not None
    assert facts.backend.type == "s3"
    assert facts.backend.settings == {"bucket": "states", "key": "onprem/a.tfstate"}
    assert facts.backend.where.path == f"stacks/a/{name}"
    assert {key: (one.type, one.has_default, one.sensitive) for key, one in facts.variables.items()} == {
        "secret": ("string", False, True),
        "size": (None, True, False),
    }
    assert facts.outputs == ("id",)
    assert facts.providers == {"proxmox": "bpg/proxmox", "random": "hashicorp/random", "tls": "hashicorp/tls"}
    assert facts.modules == ("modules/m",)
    [state] = facts.remote_states
    assert (state.name, state.type, state.settings["key"]) == ("net", "s3", "net.tfstate")
    assert (facts.unresolved, facts.problems) == ((), ())


@pytest.mark.parametrize(
    ("expression", "read"),
    [
        ('file("x.txt")', "stacks/a/x.txt"),
        ('filebase64("./x.txt")', "stacks/a/x.txt"),
        ('fileexists("${path.module}/x.txt")', "stacks/a/x.txt"),
        ('templatefile("${path.root}/x.tftpl", { a = 1 })', "stacks/a/x.tftpl"),
        ('filemd5(abspath("../x"))', "stacks/x"),
        ('filesha1(join("/", [path.module, "x"]))', "stacks/a/x"),
        ('filesha256(format("%s/x", path.cwd))', "stacks/a/x"),
        ('filesha512("${dirname(path.module)}/x")', "stacks/x"),
        ('filebase64sha256(true ? "one" : "two")', "stacks/a/two"),
        ("filebase64sha512(local.paths.key)", "stacks/a/key.pub"),
        ('core::file("x.txt")', "stacks/a/x.txt"),
        ('fileset("${path.module}/vms", "**/*.{yaml,yml}")', "stacks/a/vms/**/*.{yaml,yml}"),
        ('[for f in fileset(path.module, "*.json") : file("${path.module}/${f}")]', "stacks/a/*.json"),
        ('[for k in ["a", "b"] : file("${k}.txt")]', "stacks/a/b.txt"),
        ('jsondecode(file("${path.module}/a b.json"))', "stacks/a/a b.json"),
    ],
)
def test_every_function_of_files_is_understood(tmp_path: Path, expression: str, read: str) -> None:
    text = f'locals {{\n  paths = {{ key = "key.pub" }}\n  x = {expression}\n}}\n'
    facts = facts_of(tmp_path, {"main.tf": text})
    assert read in facts.reads
    assert facts.unresolved == ()


@pytest.mark.parametrize(
    "expression",
    [
        "file(var.unset)",
        "file(each.value)",
        "file(data.x.y.path)",
        'file("${terraform.workspace}.txt")',
        "file()",
    ],
)
def test_what_only_an_engine_knows_is_unresolved_with_its_line(tmp_path: Path, expression: str) -> None:
    facts = facts_of(tmp_path, {"main.tf": f'variable "unset" {{}}\nlocals {{\n  x = {expression}\n}}\n'})
    [one] = facts.unresolved
    assert (str(one.where), one.text) == ("stacks/a/main.tf:3", expression)


def test_paths_that_resources_take_are_read_too(tmp_path: Path) -> None:
    text = 'data "archive_file" "x" {\n  source_dir = "${path.module}/../../lambda"\n}\n'
    assert "lambda" in facts_of(tmp_path, {"main.tf": text}).reads


def test_files_outside_of_the_repository_are_listed_apart(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, {"main.tf": 'locals { k = file(pathexpand("~/.ssh/id.pub")) }\n'})
    assert facts.outside == ("~/.ssh/id.pub",)
    assert facts.unresolved == ()


def test_a_module_that_calls_itself_ends(tmp_path: Path) -> None:
    facts = facts_of(
        tmp_path,
        {
            "main.tf": 'module "m" { source = "./m" }\nmodule "self" { source = "./." }\n',
            "m/main.tf": (
                'module "m" {\n  source = "../m"\n  x = "${var.x}a"\n}\nvariable "x" { default = "" }\n'
            ),
        },
    )
    assert facts.modules == ("stacks/a/m",)


@given(st.binary(max_size=400))
def test_no_bytes_crash_a_reader(data: bytes) -> None:
    for parse in (parse_hcl, parse_json_code):
        assert isinstance(CodeFile.from_json(parse(data).to_json()), CodeFile)
    parse_values(data)
    parse_json_values(data)


PIECES = st.sampled_from(
    'terraform { } backend "s3" locals = variable "x" module source file( fileset( , ) ${ %{ for a in : => "'
    " path.module each.value [ ] <<EOT EOT \n ? : .. [*] null true 1e9 \\ # // /* */ resource data dynamic"
    " default type sensitive config required_providers for_each".split(" ")
)


@given(st.lists(PIECES, max_size=60))
def test_no_pieces_of_code_crash_the_reader(pieces: list[str]) -> None:
    text = " ".join(pieces)
    found = parse_hcl(text.encode())
    assert CodeFile.from_json(found.to_json()) == CodeFile.from_json(found.to_json())


def test_deep_nesting_does_not_overflow() -> None:
    parse_hcl(b"locals {\n  x = " + b"[" * 20_000 + b"]" * 20_000 + b"\n}\n")
    parse_hcl(b"locals {\n  x = " + b"file(" * 5_000 + b'"a"' + b")" * 5_000 + b"\n}\n")


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("a/*.yaml", "a/b.yaml", True),
        ("a/*.yaml", "a/b/c.yaml", False),
        ("a/**/*.yaml", "a/c.yaml", True),
        ("a/**/*.yaml", "a/b/c/d.yaml", True),
        ("a/**", "a/b/c", True),
        ("a/{b,c}?.tf", "a/c1.tf", True),
        ("a/[!x]", "a/x", False),
        (r"a/\*", "a/*", True),
        ("a/[", "a/[", True),
    ],
)
def test_globs_match_as_in_opentofu(pattern: str, path: str, matches: bool) -> None:
    assert (compile_glob(pattern).fullmatch(path) is not None) is matches


@pytest.mark.parametrize("name", ["override.tf", "variables_override.tf"])
def test_an_override_changes_a_part_of_a_variable(tmp_path: Path, name: str) -> None:
    code = """variable "a" {
  type      = object({ x = string })
  sensitive = true
}
variable "b" { type = string }
"""
    override = 'variable "a" { default = null }\nvariable "b" { type = object({ y = string }) }\n'
    found = facts_of(tmp_path, {"variables.tf": code, name: override}).variables
    assert found["a"].sensitive
    assert found["a"].has_default
    assert found["a"].shape is not None
    assert found["b"].type == "object({ y = string })"
