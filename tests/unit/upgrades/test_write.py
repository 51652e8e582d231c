"""Files that belong together are written together, or not."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.engine import real_engine
from tests.support.registries import fill_mirror
from tests.support.stacks import repository

from stackyard.base.documents.constraints import parse_constraint
from stackyard.engine.version import Engine, Flavour, Version
from stackyard.sources.stacks.lock_file import read_lock
from stackyard.upgrades.addresses import ProviderAddress
from stackyard.upgrades.cli_config import CliConfig, Method
from stackyard.upgrades.fetch import open_fetcher
from stackyard.upgrades.locking import Locker
from stackyard.upgrades.plan_writes import plan_writes
from stackyard.upgrades.report import build_report
from stackyard.upgrades.sources import Offer, Sources
from stackyard.upgrades.write import Outcome, write_units

ADDRESS = "registry.opentofu.org/acme/thing"
CODE = """\
terraform {
  required_providers {
    thing = {
      source  = "acme/thing"
      version = "~> 1.0"
    }
  }
}
"""


class SlowLocker(Locker):
    """An engine that does not end."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = asyncio.Event()

    async def hashes(
        self, engine: Engine, address: ProviderAddress, version: Version, offer: Offer
    ) -> tuple[str, ...]:
        self.begun.set()
        await asyncio.Event().wait()
        return ()


async def upgrade(folder: Path, locker: Locker, change: str | None = None) -> tuple[Outcome, ...]:
    config = CliConfig(methods=(Method(kind="filesystem_mirror", place=str(folder / "mirror")),))
    found = repository(folder / "repo", {})
    async with open_fetcher() as fetcher:
        sources = dict.fromkeys(found.stacks, Sources(fetcher, config))
        rows = await build_report(found, found.stacks.values(), sources)
        plan = plan_writes(found, rows)
        if change is not None:
            (folder / "repo/stacks/a/main.tf").write_text(change)
        # It has an event loop of its own the first time.
        engines = dict.fromkeys(found.stacks, await asyncio.to_thread(real_engine, Flavour.TOFU))
        return await write_units(plan.units, found, engines, locker, parallel=2)


def prepare(folder: Path, lock: str | None = None) -> Path:
    fill_mirror(folder / "mirror", ADDRESS, ["1.0.0", "1.1.0"])
    root = folder / "repo"
    repository(root, {"stacks/a/main.tf": CODE, "stacks/b/main.tf": CODE})
    (root / "stacks/a/main.tf").chmod(0o600)
    if lock is not None:
        (root / "stacks/a/.terraform.lock.hcl").write_text(lock)
    return root


def files(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in root.glob("stacks/*/*")}


async def test_an_interrupt_puts_every_file_back(tmp_path: Path) -> None:
    root = prepare(tmp_path)
    before, locker = files(root), SlowLocker()
    task = asyncio.create_task(upgrade(tmp_path, locker))
    await locker.begun.wait()
    # Packages are downloaded before anything is written.
    assert files(root) == before
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert files(root) == before
    assert (root / "stacks/a/main.tf").stat().st_mode & 0o777 == 0o600


@pytest.mark.tofu
async def test_a_platform_that_no_package_is_for_fails_and_changes_nothing(tmp_path: Path) -> None:
    root = prepare(tmp_path)
    before = files(root)
    outcomes = await upgrade(tmp_path, Locker(platforms=("plan9_arm64",)))
    assert all("for none of plan9_arm64" in str(one.error) for one in outcomes)
    assert len(outcomes) == 2
    assert files(root) == before


@pytest.mark.tofu
async def test_a_lock_file_that_cannot_be_read_is_left_and_the_other_stack_is_written(tmp_path: Path) -> None:
    lock = "<<<<<<< HEAD\n"
    root = prepare(tmp_path, lock)
    outcomes = {one.unit.stacks: one.error for one in await upgrade(tmp_path, Locker())}
    assert "is not valid" in str(outcomes["a",])
    assert outcomes["b",] is None
    now = files(root)
    assert (now["stacks/a/main.tf"], now["stacks/a/.terraform.lock.hcl"]) == (CODE, lock)
    assert now["stacks/b/main.tf"] == CODE.replace("~> 1.0", "~> 1.1")


@pytest.mark.tofu
async def test_a_file_that_was_changed_meanwhile_is_left(tmp_path: Path) -> None:
    root = prepare(tmp_path)
    changed = f"# a line of the user\n{CODE}"
    outcomes = {one.unit.stacks: one.error for one in await upgrade(tmp_path, Locker(), changed)}
    assert "was changed while versions were looked up" in str(outcomes["a",])
    assert outcomes["b",] is None
    assert files(root)["stacks/a/main.tf"] == changed


_KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from stackyard.base import files
from stackyard.upgrades.locking import Locker
from tests.unit.upgrades.test_write import upgrade

replace, left = files.replace_file, [int(sys.argv[2])]

def replace_or_die(path, data, **options):
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    left[0] -= 1
    replace(path, data, **options)

files.replace_file = replace_or_die
asyncio.run(upgrade(Path(sys.argv[1]), Locker()))
"""


@pytest.mark.tofu
@pytest.mark.parametrize("written", [0, 1, 2, 3])
async def test_a_killed_run_leaves_no_lock_that_the_code_refuses_and_the_next_one_ends_it(
    tmp_path: Path, written: int
) -> None:
    root = prepare(tmp_path, lock_of("1.0.0"))
    top = Path(__file__).parents[3]
    words = (sys.executable, "-c", _KILLED, str(tmp_path), str(written))
    ended = subprocess.run(words, cwd=top, env={**os.environ, "PYTHONPATH": str(top)}, check=False)
    assert ended.returncode == -signal.SIGKILL
    now = files(root)
    for name in ("a", "b"):
        lock = read_lock(now.get(f"stacks/{name}/.terraform.lock.hcl", "").encode())
        said = "~> 1.1" if "~> 1.1" in now[f"stacks/{name}/main.tf"] else "~> 1.0"
        assert all(parse_constraint(said).allows(one.version) for one in lock.values())
    outcomes = await upgrade(tmp_path, Locker())
    assert [one.error for one in outcomes if one.error is not None] == []
    now = files(root)
    for name in ("a", "b"):
        assert now[f"stacks/{name}/main.tf"] == CODE.replace("~> 1.0", "~> 1.1")
        lock = read_lock(now[f"stacks/{name}/.terraform.lock.hcl"].encode())
        assert [(str(one.version), one.constraints) for one in lock.values()] == [("1.1.0", "~> 1.1")]


def lock_of(version: str) -> str:
    return (
        f'provider "{ADDRESS}" {{\n  version     = "{version}"\n  constraints = "~> 1.0"\n'
        '  hashes = [\n    "h1:bm90aGluZyBhdCBhbGwsIG5vdCBldmVuIGEgaGFzaCE=",\n  ]\n}\n'
    )
