"""The project's own files agree with each other."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

from stackyard.base.extras import EXTRAS

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCK = (ROOT / "requirements.lock").read_text()
# What a distribution is called where that is not what it is imported as.
IMPORTED_AS = {
    "grpcio": "grpc",
    "protobuf": "google",
    "jsonschema-rs": "jsonschema_rs",
    "pydantic-core": "pydantic_core",
    "pyyaml": "yaml",
    "requests-toolbelt": "requests_toolbelt",
    "ruamel-yaml": "ruamel",
    "tree-sitter": "tree_sitter",
    "tree-sitter-hcl": "tree_sitter_hcl",
}


def distributions(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=~! \[]", requirement)[0] for requirement in requirements}


def test_every_library_that_is_imported_is_declared() -> None:
    wanted = [
        *PROJECT["dependencies"],
        *(one for name in EXTRAS for one in PROJECT["optional-dependencies"][name]),
    ]
    declared = {IMPORTED_AS.get(name, name) for name in distributions(wanted)}
    used = set()
    for path in (ROOT / "src").rglob("*.py"):
        if path.name == "testing.py":
            # Only pytest loads its plugin, so it is there.
            declared.add("pytest")
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                used |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                used.add(node.module.split(".")[0])
    assert used - declared - sys.stdlib_module_names - {"stackyard", "pvelab"} == set()


def test_every_extra_that_an_error_can_name_exists_and_all_of_them_are_in_all() -> None:
    extras = PROJECT["optional-dependencies"]
    assert extras.keys() - {"all", "dev"} == EXTRAS.keys()
    assert extras["all"] == [f"stackyard[{','.join(EXTRAS)}]"]


def test_no_archive_is_unpacked_by_python() -> None:
    # What keeps a hostile archive in its folder, `filter`, came with 3.11.4, and Debian 12 has 3.11.2. The
    # tar of the system refuses such members by itself.
    found = [
        f"{path}:{node.lineno}"
        for folder in ("src", "tests", "scripts", "bench")
        for path in (ROOT / folder).rglob("*.py")
        if "tarfile" in (text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr in {"extractall", "extract"}
    ]
    assert found == []


def test_the_lock_has_every_dependency_with_hashes_and_no_index_address() -> None:
    extras = [one for name in (*EXTRAS, "dev") for one in PROJECT["optional-dependencies"][name]]
    wanted = distributions([*PROJECT["dependencies"], *extras])
    locked = set(re.findall(r"^([a-z0-9-]+)==", LOCK, re.MULTILINE))
    assert wanted - locked == set()
    assert LOCK.count("--hash=sha256:") >= len(locked)
    assert "://" not in LOCK
    assert "--index" not in LOCK
