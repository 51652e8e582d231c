"""The archive of a plan, read here, says exactly what `tofu show` does: the guard sees no difference."""

from __future__ import annotations

import asyncio
import dataclasses
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from tests.support.engine import real_engine
from tests.support.path import Yard, make_yard

from stackyard import lab
from stackyard.engine import tofu
from stackyard.engine.changes import Action, Changes, read_changes
from stackyard.engine.plan_archive import read_archive
from stackyard.engine.version import Flavour
from stackyard.path.environment import EnvironmentSource
from stackyard.path.planfile import open_encrypted
from stackyard.path.run import Run, RunSettings, open_run
from stackyard.sources.store import ChosenStore

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

WEB: dict[str, Any] = {
    "name": "web",
    "vmid": 500,
    "preset": "vm-xsmall",
    "image": "debian-12",
    "spec": "base",
    "tags": ["a", "b"],
    "disks": [{}, {"size_gib": 4}],
    "nics": [{"bridge": "vmbr0", "ipv4": "10.0.0.5/24", "gateway4": "10.0.0.1"}, {"bridge": "vmbr0"}],
}
DNS: dict[str, Any] = {
    "name": "dns",
    "type": "ct",
    "vmid": 501,
    "image": "debian-13-ct",
    "cores": 1,
    "memory": 512,
    "disk": 4,
}
AUTO: dict[str, Any] = {"name": "auto", "cores": 1, "memory": 64, "disks": [{"size_gib": 1}]}


class Compared:
    """Plans an env, and reads the plan both ways."""

    def __init__(self, yard: Yard, folder: Path) -> None:
        self._yard = yard
        self._base = folder / "base"
        self._plan = folder / "plan"

    def changes(self, guests: list[dict[str, Any]], *, mode: tofu.PlanMode, **more: Any) -> Changes:
        """Plan, compare, apply; return what was planned."""
        self._yard.write_env("t", guests, **more)
        return asyncio.run(self._changes(mode))

    async def _changes(self, mode: tofu.PlanMode) -> Changes:
        resolved = EnvironmentSource.find(str(self._yard.folder)).resolve("t", None)
        async with open_run(resolved, RunSettings(store=ChosenStore(base=self._base))) as run:
            await tofu.plan(run.workdir, self._plan, options=tofu.PlanOptions(mode=mode))
            document = self.archived(run)
            shown = read_changes(await tofu.show_plan(run.workdir, self._plan))
            read = read_changes(document)
            for one, other in zip(read.planned, shown.planned, strict=True):
                assert dataclasses.asdict(one) == dataclasses.asdict(other)
            assert read == shown
            await tofu.apply(run.workdir, self._plan)
            return shown

    def archived(self, run: Run) -> Mapping[str, Any]:
        assert run.served is not None
        data = open_encrypted(self._plan.read_bytes(), run.key)
        assert data is not None
        document = read_archive(data, run.served.schemas)
        assert document is not None
        return document


def test_every_kind_of_change_is_read_as_the_engine_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STACKYARD_TOFU", str(real_engine(Flavour.TOFU).path))
    with lab.running(nodes=("pve1", "pve2"), ssh_port=0) as running:
        compared = Compared(make_yard(running, tmp_path / "site"), tmp_path)
        seen: set[Action] = set()
        normal, destroy = tofu.PlanMode.NORMAL, tofu.PlanMode.DESTROY
        pool, pooled = {"p": {"comment": "of the test"}}, {**WEB, "pool": "p"}
        steps: list[tuple[list[dict[str, Any]], tofu.PlanMode, dict[str, Any]]] = [
            ([WEB, DNS, AUTO], normal, {"pools": pool}),
            ([WEB, DNS, AUTO], normal, {"pools": pool}),
            ([{**pooled, "memory": 2048, "tags": ["c"]}, DNS], normal, {"pools": {"p": None}}),
            ([{**pooled, "disks": [{}]}, {**DNS, "unprivileged": False}], normal, {"pools": pool}),
            ([{**pooled, "cores": 2}], normal, {"pools": pool}),
            ([pooled], destroy, {"pools": pool}),
        ]
        for guests, mode, more in steps:
            changes = compared.changes(guests, mode=mode, **more)
            seen.update(change.action for change in changes.planned)
        assert {Action.CREATE, Action.UPDATE, Action.DELETE, Action.REPLACE, Action.NOTHING} <= seen


def archive(**entries: bytes) -> bytes:
    written = BytesIO()
    with zipfile.ZipFile(written, "w") as file:
        for name, data in entries.items():
            file.writestr(name, data)
    return written.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        archive(),
        archive(tfplan=b""),
        # A version of the format, and of an engine, that are not known here.
        archive(tfplan=b"\x08\x04\x72\x061.12.6"),
        archive(tfplan=b"\x08\x03\x72\x052.0.0"),
        archive(tfplan=b"\x08\x03\x72\x061.12.6\x1a\xff\xff"),
        # A resource that the provider does not have.
        archive(tfplan=b"\x08\x03\x72\x061.12.6\x1a\x06\x6a\x04\x78\x2e\x79\x7a"),
    ],
)
def test_what_is_not_known_is_left_to_the_engine(data: bytes) -> None:
    assert read_archive(data, {}) is None


def test_an_empty_plan_of_a_known_engine_is_read() -> None:
    assert read_archive(archive(tfplan=b"\x08\x03\x72\x061.12.6"), {}) == {
        "resource_changes": [],
        "resource_drift": [],
        "output_changes": {},
    }
