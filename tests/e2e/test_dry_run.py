"""`--dry-run` changes nothing, whatever kind the target is."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.path import SMALL_GUEST, make_yard

from stackyard import lab

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]


def test_a_dry_run_of_apply_and_destroy_shows_the_plan_alone(tmp_path: Path) -> None:
    with lab.running(nodes=("pve1",)) as running:
        yard = make_yard(running, tmp_path)
        yard.write_env("one", [SMALL_GUEST])
        planned = yard.json("apply", "one", "--dry-run")
        assert [change["action"] for change in planned["changes"]] == ["create", "create"]
        assert yard.guests() == {}
        yard.run("apply", "one", "--no-verify")
        refused = yard.json("destroy", "one", "--dry-run", status=3)
        assert refused["guard"]["refused"]
        permitted = yard.json("destroy", "one", "--dry-run", "--allow-destroy", "web")
        assert "delete" in [change["action"] for change in permitted["changes"]]
        assert list(yard.guests()) == [101]
        # What only a manifest has is refused, and not ignored.
        error = yard.json("destroy", "one", "--depth", "1", "--allow-destroy", "web", status=64)["error"]
        assert "--depth" in error["detail"]
        assert list(yard.guests()) == [101]
