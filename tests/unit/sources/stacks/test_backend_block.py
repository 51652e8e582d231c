"""The backend block of a stack is changed, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackyard.sources.stacks.backend_block import BackendEditError, write_backend

OURS = 'backend "http" {}'


def test_a_block_is_replaced_in_place(tmp_path: Path) -> None:
    block = 'backend "s3" {\n    bucket = "b"\n    key = "a/b" # }\n  }'
    text = f'terraform {{\n  # why\n  {block}\n  required_version = "~> 1.10"\n}}\n'
    (tmp_path / "backend.tf").write_text(text)
    assert write_backend(tmp_path, OURS) == tmp_path / "backend.tf"
    assert (tmp_path / "backend.tf").read_text() == (
        'terraform {\n  # why\n  backend "http" {}\n  required_version = "~> 1.10"\n}\n'
    )
    # The same once more changes nothing.
    write_backend(tmp_path, OURS)
    assert (tmp_path / "backend.tf").read_text().count("backend") == 1


def test_a_stack_without_a_block_gets_one_and_loses_it_again(tmp_path: Path) -> None:
    (tmp_path / "main.tf").write_text('resource "terraform_data" "x" {}\n')
    path = write_backend(tmp_path, OURS)
    assert path.read_text() == 'terraform {\n  backend "http" {}\n}\n'
    write_backend(tmp_path, "")
    assert path.read_text() == ""
    assert (tmp_path / "main.tf").read_text() == 'resource "terraform_data" "x" {}\n'


def test_two_blocks_and_json_are_left_to_the_user(tmp_path: Path) -> None:
    for name in ("a.tf", "b.tf"):
        (tmp_path / name).write_text('terraform {\n  backend "local" {}\n}\n')
    with pytest.raises(BackendEditError, match="more than one"):
        write_backend(tmp_path, OURS)
    for name in ("a.tf", "b.tf"):
        (tmp_path / name).unlink()
    (tmp_path / "b.tf.json").write_text('{"terraform": {"backend": {"s3": {}}}}')
    with pytest.raises(BackendEditError, match="JSON"):
        write_backend(tmp_path, OURS)
