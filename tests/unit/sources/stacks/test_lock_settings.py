"""The locks in the code of an S3 backend: read wherever they stand, and edited without a byte more."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.stacks import repository

from stackyard.path.stacks.lock_table import find_table_stacks
from stackyard.sources.stacks.backend_block import BackendEditError
from stackyard.sources.stacks.backend_secrets import show_settings
from stackyard.sources.stacks.facts import read_facts
from stackyard.sources.stacks.lock_settings import LockSettings, add_lockfile, drop_table, read_lock_settings

BLOCK = b"""# dynamodb_table = "a comment"
terraform {
  backend "s3" {
    bucket = "b"
\tdynamodb_table = "locks"   # until all have both
    key    = "k"
  }
}

variable "dynamodb_table" {
  default = "use_lockfile"
}
"""
CONFIG = b'bucket = "b"\r\ndynamodb_table = "locks"\r\n'


@pytest.mark.parametrize("data", [BLOCK, CONFIG, b'dynamodb_table = "locks"'])
def test_a_lock_is_added_behind_the_table_and_the_table_is_dropped_alone(data: bytes) -> None:
    assert read_lock_settings(data) == LockSettings(table="locks")
    both = add_lockfile(data, "backend.tf")
    assert read_lock_settings(both) == LockSettings(table="locks", has_lockfile=True)
    assert add_lockfile(both, "backend.tf") == both
    added = set(both.splitlines(keepends=True)) - set(data.splitlines(keepends=True))
    assert {line.strip() for line in added} <= {b"use_lockfile = true", b'dynamodb_table = "locks"'}
    one = drop_table(both, "backend.tf")
    assert read_lock_settings(one) == LockSettings(has_lockfile=True)
    assert [line for line in one.splitlines() if b"use_lockfile = true" not in line] == [
        line for line in data.splitlines() if not line.strip().startswith(b'dynamodb_table = "locks"')
    ]


def test_a_lockfile_that_is_off_is_turned_on_in_its_place() -> None:
    data = b"dynamodb_table = var.table\nuse_lockfile   = false # why\n"
    assert read_lock_settings(data) == LockSettings(table="")
    assert add_lockfile(data, "f") == b"dynamodb_table = var.table\nuse_lockfile   = true # why\n"


@pytest.mark.parametrize(
    "data", [b'terraform {\n  backend "gcs" {\n    dynamodb_table = "x"\n  }\n}\n', b"", b'bucket = "b"\n']
)
def test_code_without_a_table_is_not_edited(data: bytes) -> None:
    for edit in (add_lockfile, drop_table):
        with pytest.raises(BackendEditError):
            edit(data, "backend.tf")


def test_a_table_that_shares_its_line_is_left_to_a_person() -> None:
    data = b'terraform {\n  backend "s3" { dynamodb_table = "x" }\n}\n'
    for edit in (add_lockfile, drop_table):
        with pytest.raises(BackendEditError):
            edit(data, "backend.tf")


def test_endpoints_in_an_object_are_settings_and_headers_are_never_shown(tmp_path: Path) -> None:
    found = repository(
        tmp_path,
        {
            "stacks/a/main.tf": 'terraform {\n  backend "s3" {\n    key = "k"\n    dynamodb_table = "t"\n'
            '    endpoints = { s3 = "http://h:1", dynamodb = "http://h:2" }\n  }\n}\n',
            "stacks/b/main.tf": 'terraform {\n  backend "http" {\n    address = "https://h/x"\n'
            '    headers = { Authorization = "Basic c2VjcmV0" }\n  }\n}\n',
            "stacks/c/main.tf.json": '{"terraform": {"backend": {"s3": {"key": "c", '
            '"dynamodb_table": "t"}}}}',
        },
    )
    tables = {one.stack.name: one for one in find_table_stacks(found)}
    assert sorted(tables) == ["a", "c"]
    assert tables["a"].settings["endpoints.dynamodb"] == "http://h:2"
    with pytest.raises(BackendEditError):
        tables["c"].require_file()
    backend = read_facts(found, found.find("b")).backend
    assert backend is not None
    assert show_settings(backend.settings)["headers.Authorization"] == "(hidden)"


def test_settings_that_only_an_engine_can_compute_are_named(tmp_path: Path) -> None:
    text = (
        'terraform {\n  backend "s3" {\n    bucket = "b"\n    key = "k"\n    dynamodb_table = "t"\n'
        "    workspace_key_prefix = var.prefix\n    use_path_style = true\n"
        '    endpoints = { s3 = "http://h:1" }\n  }\n}\n'
    )
    [found] = find_table_stacks(repository(tmp_path, {"stacks/a/main.tf": text}))
    assert found.computed == ("workspace_key_prefix",)
