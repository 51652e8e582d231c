"""Guests of another configuration change their owner: never two, and no side ever destroys one."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli import Ended
from tests.support.engine import real_engine
from tests.support.forking import fork_program
from tests.support.import_seed import SEED
from tests.support.pages import blocks_of
from tests.support.path import Yard, lasting_home, make_yard
from tests.support.path_kills import children_of
from tests.support.provider import Stack, driven, require_bpg

from stackyard import lab
from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "import.md").read_text()
SECTION = PAGE.partition("## Guests of another OpenTofu")[2].partition("\n## ")[0]
HANDOVER, BACKEND = re.findall(r"```sh\n(.*?)```", SECTION, re.DOTALL)
# The page for those who come with a configuration of their own shows the same commands.
[COMING_FROM] = blocks_of("docs/coming-from/plain-bpg.md")

VMS = """
resource "proxmox_virtual_environment_vm" "web" {
  for_each  = toset(%s)
  node_name = "pve1"
  vm_id     = 300 + tonumber(each.key)
  name      = "web${each.key}"
  started   = false
  disk {
    interface = "scsi0"
    size      = 1
  }
}
"""
CONTAINER = """
resource "proxmox_virtual_environment_container" "dns" {
  node_name = "pve1"
  vm_id     = 310
  started   = false
  operating_system {
    template_file_id = "local:vztmpl/debian-12.tar.zst"
  }
  disk {
    datastore_id = "local-lvm"
    size         = 4
  }
  initialization { hostname = "dns" }
}
"""
POOL = """
resource "proxmox_virtual_environment_pool" "it" {
  pool_id = "kept"
}
"""


@dataclass(kw_only=True)
class Old:
    """A configuration of somebody's own, its state, and a site beside it for the same lab."""

    yard: Yard
    folder: Path

    @property
    def state(self) -> Path:
        return self.folder / "terraform.tfstate"

    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.state.read_bytes())
        return found

    def addresses(self) -> list[str]:
        rows = self.document()["resources"]
        return [f"{row['name']}.{one.get('index_key', '')}" for row in rows for one in row["instances"]]

    def take(self, *arguments: str, status: int = 0) -> dict[str, Any]:
        given = ("import", "env:home", "-H", "lab", "--from-state", "../old/terraform.tfstate")
        return self.yard.json(*given, *arguments, status=status)

    def plan(self, configuration: str, *, bpg: bool = False) -> str:
        """Plan the old configuration, which is changed before; return what the engine says."""
        said = []

        async def scenario(stack: Stack) -> None:
            stack.write(configuration)
            said.append(await stack.plan(status=0, bpg=bpg))

        # Laid out anew by each run of a stack, where the real provider is there.
        shutil.rmtree(self.folder / "plugins", ignore_errors=True)
        driven(real_engine(Flavour.TOFU), self.yard.running, self.folder, scenario)
        return said[0]


@contextlib.contextmanager
def applied_in(folder: Path, *, bpg: bool = False) -> Iterator[Old]:
    """Run a lab whose guests another configuration made, and give that configuration and an empty site."""
    (folder / "old").mkdir()
    engine = real_engine(Flavour.TOFU)

    async def scenario(stack: Stack) -> None:
        stack.write(VMS % '["1", "2"]' + CONTAINER + POOL)
        await stack.init()
        await stack.apply(bpg=bpg)

    seed = replace(SEED, calls=())
    with lasting_home(folder) as env, lab.running(nodes=("pve1", "pve2"), ssh_port=0, seed=seed) as running:
        driven(engine, running, folder / "old", scenario)
        yard = make_yard(running, folder / "site", STACKYARD_TOFU=str(engine.path), **env)
        yield Old(yard=yard, folder=folder / "old")


@pytest.fixture(scope="module")
def applied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Old]:
    """Give such a lab: to copy both folders, because an import changes no guest."""
    with applied_in(tmp_path_factory.mktemp("handover")) as made:
        yield made


@pytest.fixture
def old(applied: Old, tmp_path: Path) -> Old:
    """Give a copy of both folders that is this test's own."""
    source = applied.folder.parent
    for name in ("old", "site"):
        shutil.copytree(source / name, tmp_path / name, symlinks=True)
    yard = Yard(folder=tmp_path / "site", running=applied.yard.running, env=applied.yard.env)
    return Old(yard=yard, folder=tmp_path / "old")


def run_block(old: Old, text: str, **env: str) -> list[Ended]:
    """Run the lines of a block of the page in the site, one after the other."""
    ended = []
    for line in text.replace("-H pve1", "-H lab").splitlines():
        words = line.split()
        if words[0] == "stackyard":
            ended.append(old.yard.run(*words[1:]))
        else:
            command = line.replace("tofu", old.yard.env["STACKYARD_TOFU"], 1)
            subprocess.run(command, shell=True, cwd=old.yard.folder, check=True, env={**os.environ, **env})
    return ended


def test_the_page_moves_guests_and_neither_side_destroys_one(old: Old) -> None:
    guests, before, raw = old.yard.guests(), old.document(), old.state.read_bytes()
    assert COMING_FROM.script == HANDOVER
    shown, done, _ = run_block(old, HANDOVER)
    assert "Would remove from" in shown.stdout
    assert 'proxmox_virtual_environment_vm.web["1"]  (web1 301 on pve1)' in shown.stdout
    assert "  from = proxmox_virtual_environment_container.dns" in shown.stdout
    assert "Imported 3 guests" in done.stdout
    assert old.addresses() == ["it."]
    after = old.document()
    assert (after["serial"], after["lineage"]) == (before["serial"] + 1, before["lineage"])
    (backup,) = old.folder.glob("terraform.tfstate.*.backup")
    assert backup.read_bytes() == raw
    assert not list(old.folder.glob(".*.lock.info"))
    assert "No changes" in old.plan(POOL)
    assert old.yard.guests() == guests
    assert old.yard.json("plan", "home")["has_changes"] is False
    # Nothing is left to take; a file without these guests is said to be one.
    error = old.take(status=65)["error"]
    assert (error["code"], "nothing left to do" in error["remedy"]) == ("E-IMPORT-STATE", True)


def test_a_state_of_a_backend_comes_and_goes_through_the_engine(old: Old) -> None:
    run_block(old, BACKEND)
    assert old.addresses() == ["it."]
    assert old.yard.json("plan", "home")["has_changes"] is False


def test_a_filter_takes_some_and_leaves_the_rest_to_the_other_configuration(old: Old) -> None:
    again = old.folder / "copy.tfstate"
    shutil.copy(old.state, again)
    done = old.take("--filter", "web1", "--from-state", "../old/copy.tfstate")
    assert [one["vm_id"] for one in done["imported"]] == [301]
    assert [[row["vm_id"] for row in one["removed"]] for one in done["from_states"]] == [[301], [301]]
    assert json.loads(again.read_bytes())["serial"] == old.document()["serial"]
    assert old.addresses() == ["dns.", "it.", "web.2"]
    assert "No changes" in old.plan(VMS % '["2"]' + CONTAINER + POOL)
    assert old.yard.json("plan", "home")["has_changes"] is False


def test_an_import_that_is_killed_before_the_guests_left_their_state_is_finished_by_the_next(
    old: Old,
) -> None:
    guests, raw = old.yard.guests(), old.state.read_bytes()
    err, err_end = os.pipe()
    with open(os.devnull, "r+b") as nothing, open(err_end, "wb"):
        program = fork_program(
            ("import", "env:home", "-H", "lab", "--from-state", "../old/terraform.tfstate"),
            streams=(nothing.fileno(), nothing.fileno(), err_end),
            cwd=old.yard.folder,
            env={**os.environ, **old.yard.env},
        )
    with open(err) as said:
        # The last plan is made; what is left is to remove the guests from the file.
        assert any(line.startswith("Planning") for line in said)
        for pid in (*children_of(program.pid, "tofu"), program.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        program.wait()
    assert old.state.read_bytes() == raw
    assert old.yard.json("state", "list")["states"]
    # Two states have them now, and an import that does not say so is warned.
    (old.yard.folder / "terraform.tfstate").symlink_to(old.state)
    warned = old.yard.run("import", "home", "--lock-wait", "60")
    assert "web1 (301)" in warned.stderr
    assert "--from-state" in warned.stderr
    done = old.take("--lock-wait", "60")
    assert (done["imported"], len(done["from_states"][0]["removed"])) == ([], 3)
    assert old.addresses() == ["it."]
    assert old.yard.guests() == guests
    assert old.yard.json("plan", "home")["has_changes"] is False


def test_a_state_that_cannot_be_written_or_read_leaves_everything_as_it_is(old: Old) -> None:
    raw = old.state.read_bytes()
    with old.state.open("r+b") as held:
        fcntl.lockf(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert old.take(status=75)["error"]["code"] == "E-STATE-MOVE-LOCKED"
    document = old.document()
    encrypted = {key: document[key] for key in ("serial", "lineage")} | {"encrypted_data": "c2VjcmV0"}
    for content, wanted in (
        (raw[:-200], "not JSON, or cut off"),
        (json.dumps(encrypted).encode(), "encrypted by OpenTofu"),
        (json.dumps({**document, "version": 5}).encode(), "not of format 4"),
        (raw.replace(b'"web1"', b'"other"'), "the guest 301 of the cluster is web1"),
        (raw.replace(b'"pve1"', b'"elsewhere"'), "has no guest of this cluster (pve1, pve2)"),
    ):
        old.state.write_bytes(content)
        error = old.take(status=65)["error"]
        assert wanted in error["detail"] + " ".join(found["detail"] for found in error["diagnostics"])
        assert old.state.read_bytes() == content
    assert not (old.yard.folder / "envs" / "home.yaml").exists()
    assert old.yard.json("state", "list")["states"] == []


@pytest.mark.bpg
def test_guests_of_the_real_provider_are_handed_over_too(tmp_path: Path) -> None:
    require_bpg()
    with applied_in(tmp_path, bpg=True) as old:
        guests = old.yard.guests()
        old.take()
        assert old.addresses() == ["it."]
        assert "No changes" in old.plan(POOL, bpg=True)
        assert old.yard.json("plan", "home")["has_changes"] is False
        assert old.yard.guests() == guests
