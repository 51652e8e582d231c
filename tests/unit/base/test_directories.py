from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.repositories import git, new_repository

from stackyard.base import directories
from stackyard.base.errors import FileError

FOLDERS = (
    (directories.cache_folder, "XDG_CACHE_HOME", ".cache"),
    (directories.data_folder, "XDG_DATA_HOME", ".local/share"),
    (directories.state_folder, "XDG_STATE_HOME", ".local/state"),
)


@pytest.mark.parametrize(("folder", "variable", "default"), FOLDERS)
def test_the_xdg_variable_names_the_base_and_without_it_home_does(
    folder: Callable[[], Path], variable: str, default: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/anna")
    monkeypatch.setenv(variable, "/mnt/base")
    assert folder() == Path("/mnt/base/stackyard")
    monkeypatch.delenv(variable)
    assert folder() == Path("/home/anna", default, "stackyard")


def test_a_relative_or_empty_xdg_variable_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/anna")
    for value in ("", "cache", "./cache"):
        monkeypatch.setenv("XDG_CACHE_HOME", value)
        assert directories.cache_folder() == Path("/home/anna/.cache/stackyard")


@pytest.mark.parametrize("home_value", [None, "", "home/anna"])
def test_without_a_usable_home_the_user_database_is_asked(
    home_value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    if home_value is not None:
        monkeypatch.setenv("HOME", home_value)
    expected = Path(pwd.getpwuid(os.getuid()).pw_dir, ".cache", "stackyard")
    assert directories.cache_folder() == expected


def test_naming_a_folder_does_not_make_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert not directories.state_folder().exists()


def test_every_folder_that_is_made_is_for_its_owner_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    made = directories.ensure_private(tmp_path / "a" / "b")
    assert made == tmp_path / "a" / "b"
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path, tmp_path / "a", made)]
    assert modes == [0o755, 0o700, 0o700]


def test_a_folder_that_is_there_keeps_its_permissions(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    directories.ensure_private(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o750


def test_a_file_in_the_place_of_a_folder_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(FileError, match="Cannot make the folder") as caught:
            directories.ensure_private(folder)
        assert str(folder) in caught.value.detail


# --- The folder beside a site


def test_git_leaves_a_project_folder_alone_whoever_makes_it(tmp_path: Path) -> None:
    root = new_repository(tmp_path / "repository")
    project = root / "sites" / "home" / directories.PROJECT_FOLDER
    directories.ensure_private(project / "controller" / "certificate")
    (project / "controller" / "certificate" / "server.key").write_text("key")
    (root / "site.yaml").write_text("defaults: {}\n")
    git(root, "add", "--all")
    assert git(root, "ls-files").stdout.splitlines() == ["site.yaml"]


def test_a_project_folder_of_an_older_version_is_hidden_at_its_next_use(tmp_path: Path) -> None:
    root = new_repository(tmp_path / "repository")
    (root / ".stackyard" / "state").mkdir(parents=True)
    (root / ".stackyard" / "known_hosts").write_text("keys")
    directories.ensure_private(root / ".stackyard" / "state")
    git(root, "add", "--all")
    assert git(root, "ls-files").stdout == ""


def test_a_gitignore_that_is_there_is_left_alone(tmp_path: Path) -> None:
    ignore = tmp_path / ".stackyard" / ".gitignore"
    ignore.parent.mkdir()
    ignore.write_text("state/\n")
    directories.ensure_private(ignore.parent)
    assert ignore.read_text() == "state/\n"


def test_a_project_folder_that_cannot_be_written_can_still_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ".stackyard"
    folder.mkdir()

    def full(*_: object) -> None:
        raise FileError("No space left on device.")

    monkeypatch.setattr("stackyard.base.files.make_file", full)
    assert directories.ensure_private(folder) == folder


def test_folders_of_the_user_get_no_gitignore(tmp_path: Path) -> None:
    directories.ensure_private(tmp_path / ".cache" / "stackyard")
    assert not list(tmp_path.rglob(".gitignore"))
