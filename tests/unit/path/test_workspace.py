"""The folder that the engine works in: exactly the rendered configuration, and no secret."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from stackyard.desired import Secret
from stackyard.path.planfile import PlanKey
from stackyard.path.target import Target
from stackyard.path.workspace import Workspace, input_digest, list_unstored_states
from stackyard.render import Rendered, Variable

TARGET = Target(kind="env", name="dev", node="pve1")
RENDERED = Rendered(
    files={"main.tf.json": b"{}\n"}, variables=(Variable(name="secret_p", secret=Secret(secret="p")),)
)


def test_what_is_left_of_another_configuration_goes_and_the_engines_own_files_stay(tmp_path: Path) -> None:
    workspace = Workspace.of(tmp_path, TARGET)
    workspace.write(RENDERED)
    # The engine would also read variables and files of its own language that somebody left here.
    unasked = (
        "terraform.tfvars",
        "terraform.tfvars.json",
        "a.auto.tfvars",
        "b.auto.tfvars.json",
        "main.tofu",
    )
    for name in ("old.tf.json", "old.tf", *unasked, "errored.tfstate", ".terraform.lock.hcl"):
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


LOCK = ".terraform.lock.hcl"
LINK = ".terraform/providers/registry.opentofu.org/bpg/proxmox/0.111.1/linux_amd64"


def prepared(base: Path) -> Workspace:
    """Return a folder as the engine leaves it, with a provider that is a link into a cache."""
    workspace = Workspace.of(base, TARGET)
    workspace.write(RENDERED)
    (base / "cache").mkdir()
    link = workspace.folder / LINK
    link.parent.mkdir(parents=True)
    link.symlink_to(base / "cache")
    (workspace.folder / ".terraform" / "terraform.tfstate").write_text('{"backend": {"type": "http"}}')
    (workspace.folder / LOCK).write_text('provider "bpg/proxmox" {}')
    workspace.mark_initialised("a")
    assert workspace.is_initialised("a")
    return workspace


def test_a_folder_is_prepared_again_when_what_the_engine_left_is_gone(tmp_path: Path) -> None:
    workspace = prepared(tmp_path)
    shutil.rmtree(workspace.folder / ".terraform")
    assert not workspace.is_initialised("a")


@pytest.mark.parametrize("name", [LOCK, ".terraform/terraform.tfstate", "backend.tf.json"])
@pytest.mark.parametrize("is_gone", [True, False])
def test_a_folder_is_prepared_again_when_the_lock_or_the_backend_changed(
    name: str, is_gone: bool, tmp_path: Path
) -> None:
    workspace = prepared(tmp_path)
    path = workspace.folder / name
    if is_gone:
        path.unlink()
    else:
        path.write_text(path.read_text() + " ")
    assert not workspace.is_initialised("a")


def test_a_folder_is_prepared_again_when_the_cache_of_its_providers_is_gone(tmp_path: Path) -> None:
    workspace = prepared(tmp_path)
    (tmp_path / "cache").rmdir()
    assert not workspace.is_initialised("a")


def test_a_folder_is_prepared_again_when_a_provider_is_gone(tmp_path: Path) -> None:
    workspace = prepared(tmp_path)
    (workspace.folder / LINK).unlink()
    assert not workspace.is_initialised("a")


def test_a_new_configuration_alone_does_not_prepare_a_folder_again(tmp_path: Path) -> None:
    workspace = prepared(tmp_path)
    workspace.write(Rendered(files={"main.tf.json": b'{"output": {}}\n'}, variables=()))
    assert workspace.is_initialised("a")


def test_two_targets_have_two_folders(tmp_path: Path) -> None:
    other = Target(kind="env", name="dev", node="pve2")
    assert Workspace.of(tmp_path, TARGET).folder != Workspace.of(tmp_path, other).folder


def test_the_fingerprint_changes_with_a_file_or_a_secret_and_tells_nothing_of_it(tmp_path: Path) -> None:
    key = PlanKey(b"k" * 32)
    first = input_digest(RENDERED, {"secret_p": "one"}, key)
    assert first == input_digest(RENDERED, {"secret_p": "one"}, key)
    assert first != input_digest(RENDERED, {"secret_p": "two"}, key)
    changed = Rendered(files={"main.tf.json": b"{ }\n"}, variables=())
    assert first != input_digest(changed, {"secret_p": "one"}, key)
    assert first != input_digest(RENDERED, {"secret_p": "one"}, PlanKey(b"o" * 32))


CHOSEN = """\
provider "registry.example/bpg/proxmox" {
  version     = "VERSION"
  constraints = "~> 0.50"
  hashes = ["h1:abc="]
}
"""


@pytest.mark.parametrize(
    ("version", "is_stale"),
    [("0.111.1", False), ("0.112.0", False), ("0.110.9", True), ("1.0.0", True), ("odd", True)],
)
def test_a_choice_of_providers_that_no_longer_fits_is_made_again(
    tmp_path: Path, version: str, is_stale: bool
) -> None:
    workspace = Workspace(folder=tmp_path)
    lock = tmp_path / ".terraform.lock.hcl"
    assert not workspace.drop_stale_lock("bpg/proxmox", "~> 0.111")
    lock.write_text(CHOSEN.replace("VERSION", version))
    assert workspace.drop_stale_lock("bpg/proxmox", "~> 0.111") is is_stale
    assert lock.exists() is not is_stale


def test_states_that_wait_in_a_file_are_listed_until_they_are_stored(tmp_path: Path) -> None:
    assert list_unstored_states(tmp_path) == {}
    workspace = Workspace.of(tmp_path, TARGET)
    workspace.write(RENDERED)
    assert list_unstored_states(tmp_path) == {}
    left = workspace.folder / "errored.tfstate"
    left.write_text("{}")
    elsewhere = tmp_path / "work" / "env--other--pve1" / ".terraform" / "errored.tfstate"
    elsewhere.parent.mkdir(parents=True)
    elsewhere.write_text("{}")
    assert list_unstored_states(tmp_path) == {"env/dev/pve1": left, "env/other/pve1": elsewhere}
    left.rename(left.with_name("errored.tfstate.stored-1"))
    assert list(list_unstored_states(tmp_path)) == ["env/other/pve1"]
