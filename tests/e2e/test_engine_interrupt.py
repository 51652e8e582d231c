"""An interrupt in the middle of an apply: the engine hears it, stores its state, and the next run goes on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.support.engine import engine, workdir_in, write_root

from stackyard.base import events
from stackyard.engine import statefile, tofu
from stackyard.engine.version import Engine

__all__ = ["engine"]

ROOT = """
resource "terraform_data" "made" {}

resource "terraform_data" "slow" {
  depends_on = [terraform_data.made]
  provisioner "local-exec" {
    command = "echo ${self.id} has begun; exec sleep ${var.delay_s}"
  }
}

resource "terraform_data" "never" {
  depends_on = [terraform_data.slow]
}

variable "delay_s" {
  type = number
}
"""


def test_a_cancelled_apply_stores_its_state_and_the_next_run_goes_on(engine: Engine, tmp_path: Path) -> None:
    folder, plan = tmp_path / "root", tmp_path / "plan"
    write_root(folder, ROOT)
    workdir = workdir_in(engine, folder, variables={"delay_s": 600})

    async def interrupt() -> None:
        await tofu.plan(workdir, plan)
        begun = asyncio.Event()

        def watch(event: events.Event) -> None:
            if isinstance(event, events.LogLine) and event.text.endswith("has begun"):
                begun.set()

        task = asyncio.create_task(tofu.apply(workdir, plan, emit=watch))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def go_on() -> list[tuple[str, str, str | None]]:
        seen: list[events.Event] = []
        brief = workdir_in(engine, folder, variables={"delay_s": 0})
        await tofu.plan(brief, plan, emit=seen.append)
        await tofu.apply(brief, plan)
        changes = [event for event in seen if isinstance(event, events.ResourcePlanned)]
        return [(change.address, change.action, change.reason) for change in changes]

    asyncio.run(interrupt())
    stored = asyncio.run(statefile.state_pull(workdir))
    assert stored is not None
    status = {item["name"]: item["instances"][0].get("status") for item in stored.document["resources"]}
    assert status == {"made": None, "slow": "tainted"}
    assert not (folder / ".terraform.tfstate.lock.info").exists()

    assert asyncio.run(go_on()) == [
        ("terraform_data.slow", "replace", "tainted"),
        ("terraform_data.never", "create", None),
    ]
    assert len(asyncio.run(statefile.state_list(workdir))) == 3
