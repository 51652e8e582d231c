"""Every reader of YAML in the program meets every text that crashed libyaml or grew without end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.bombs import DEEP_YAML, FULL_YAML

from pvelab.machines.clouddata import _mapping, _take_config
from pvelab.seeds.check import SeedError
from pvelab.seeds.read import decode_seed
from pvelab.ssh.accounts import _cloud_config
from stackyard.base.diagnostics import Diagnostics
from stackyard.base.yamledit import Set, YamlEditError, edit_text
from stackyard.controller.guest import SpecInvalidError, load_spec
from stackyard.sources.site.read_yaml import compose, plain

BOMBS = {**DEEP_YAML, **FULL_YAML}


def read_site_file(text: str) -> bool:
    found = Diagnostics()
    node = compose(text, "site.yaml", found)
    if node is not None:
        plain(node, "site.yaml", found)
    return not found


def edit(text: str) -> bool:
    try:
        edit_text(text, [Set(("new",), 1)], "site.yaml")
    except YamlEditError as err:
        return err.where is None
    return True


def read_seed(text: str) -> bool:
    try:
        decode_seed(text, "seed.yaml")
    except SeedError as err:
        return err.where is None
    return True


def read_users(text: str) -> bool:
    return _cloud_config(f"#cloud-config\n{text}") != {}


def read_drive(text: str) -> bool:
    return _mapping(text.encode()) != {}


def read_user_data(text: str) -> bool:
    problems: list[str] = []
    _take_config(text, [], problems)
    return not problems


# What a reader that looks at each key for itself need not fear: it has no such numbers, or writes them out.
HARMLESS: dict[Callable[[str], bool], set[str]] = {
    read_site_file: {
        "a number in sixties",
        "a long number",
        "numbers that look the same to a dictionary",
    },
    edit: {
        "a number in sixties",
        "a long number",
        "numbers that look the same to a dictionary",
        "merge keys in one mapping",
    },
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("read", [read_site_file, edit, read_seed, read_users, read_drive, read_user_data])
def test_a_bomb_is_refused(read: Callable[[str], bool], name: str) -> None:
    if name not in HARMLESS.get(read, ()):
        assert read(BOMBS[name]) is False


@pytest.mark.parametrize("name", BOMBS)
def test_a_saved_spec_that_is_a_bomb_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(BOMBS[name])
    with pytest.raises(SpecInvalidError):
        load_spec(path)
