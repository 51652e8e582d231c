"""The folder that the engine works in: exactly the rendered configuration, and no secret."""

from __future__ import annotations

from pathlib import Path

from stackyard.desired import Secret
from stackyard.path.planfile import read_key
from stackyard.path.target import Target
from stackyard.path.workspace import Workspace, input_digest
from stackyard.render import Rendered, Variable

TARGET = Target(kind="env", name="dev", node="pve1")
RENDERED = Rendered(
    files={"main.tf.json": b"{}\n"}, variables=(Variable(name="secret_p", secret=Secret(secret="p")),)
)


def test_what_is_left_of_another_configuration_goes_and_the_engines_own_files_stay(tmp_path: Path) -> None:
    workspace = Workspace.of(tmp_path, TARGET)
    workspace.write(RENDERED)
    for name in ("old.tf.json", "old.tf", "errored.tfstate", ".terraform.lock.hcl"):
        (workspace.folder / name).write_text("x")
    workspace.write(RENDERED)
    assert sorted(path.name for path in workspace.folder.iterdir()) == [
        ".terraform.lock.hcl",
        "backend.tf.json",
        "errored.tfstate",
        "main.tf.json",
    ]


def test_an_unchanged_file_is_not_written_again(tmp_path: Path) -> None:
    workspace = Workspace.of(tmp_path, TARGET)
    workspace.write(RENDERED)
    before = (workspace.folder / "main.tf.json").stat().st_ino
    workspace.write(RENDERED)
    assert (workspace.folder / "main.tf.json").stat().st_ino == before


def test_a_folder_is_prepared_again_when_anything_about_it_changes(tmp_path: Path) -> None:
    workspace = Workspace.of(tmp_path, TARGET)
    workspace.write(RENDERED)
    assert not workspace.is_initialised("a")
    (workspace.folder / ".terraform").mkdir()
    workspace.mark_initialised("a")
    assert workspace.is_initialised("a")
    assert not workspace.is_initialised("b")


def test_two_targets_have_two_folders(tmp_path: Path) -> None:
    other = Target(kind="env", name="dev", node="pve2")
    assert Workspace.of(tmp_path, TARGET).folder != Workspace.of(tmp_path, other).folder


def test_the_fingerprint_changes_with_a_file_or_a_secret_and_tells_nothing_of_it(tmp_path: Path) -> None:
    key = read_key(tmp_path)
    first = input_digest(RENDERED, {"secret_p": "one"}, key)
    assert first == input_digest(RENDERED, {"secret_p": "one"}, key)
    assert first != input_digest(RENDERED, {"secret_p": "two"}, key)
    changed = Rendered(files={"main.tf.json": b"{ }\n"}, variables=())
    assert first != input_digest(changed, {"secret_p": "one"}, key)
    assert first != input_digest(RENDERED, {"secret_p": "one"}, read_key(tmp_path / "other"))
