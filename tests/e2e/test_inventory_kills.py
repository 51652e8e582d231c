"""kill -9 at each step of publishing: the old inventory or the new one, whole, and the next try succeeds."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.engine import real_engine
from tests.support.forking import run_forked
from tests.support.path import Yard, make_yard
from tests.support.processes import PATIENCE_S
from tests.support.seaweed import Seaweed, new_prefix, seaweed

from stackyard import lab
from stackyard.engine.version import Flavour
from stackyard.inventory import open_inventory_target
from stackyard.inventory.ansible import as_yaml

__all__ = ["seaweed"]

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(600)]

WEB: dict[str, Any] = {"name": "web", "vmid": 500, "preset": "vm-xsmall", "image": "debian-12"}
ENTRY = "tests.support.inventory_killed:run"
# More steps than publishing ever has.
ALL = NEVER = 1000


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """A site with a guest that was applied, so that there is something to publish."""
    engine = real_engine(Flavour.TOFU)
    home = tmp_path_factory.mktemp("inventory-kills")
    config = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}
    with pytest.MonkeyPatch.context() as patch, lab.running(nodes=("pve1",), ssh_port=0) as running:
        for name, value in config.items():
            patch.setenv(name, value)
        made = make_yard(running, home / "site", STACKYARD_TOFU=str(engine.path), **config)
        made.write_env("t", [{**WEB, "tags": ["v0"]}])
        made.run("apply", "t")
        yield made


def tags_of(place: Path | str) -> list[str]:
    """Return the tags of the one guest in what is published; it is whole, or this fails."""
    found = open_inventory_target(place).read()
    assert found is not None
    if isinstance(place, Path):
        assert (place / "current" / "inventory.yml").read_text() == as_yaml(found)
    tags: list[str] = found.document["vms"]["web"]["tags"]
    return tags


def publish(yard: Yard, place: Path | str, nth: int) -> int | None:
    """Publish, and be killed at a step; return how many steps there are where it did not come so far."""
    folder = str(place) if isinstance(place, Path) else ""
    arguments = (str(nth), folder, "inventory", "publish", "t", "--to", str(place))
    env = {**os.environ, **yard.env}
    status, _, said = run_forked(arguments, cwd=yard.folder, env=env, entry=ENTRY, timeout_s=PATIENCE_S)
    assert status in (0, -signal.SIGKILL), said.decode()
    return None if status == -signal.SIGKILL else int(said.split()[-1])


def kill_at_the_last(steps: int, yard: Yard, place: Path | str) -> tuple[int, int]:
    """Kill at each of the last steps in turn; return how often, and how often the new one was there."""
    new = 0
    yard.run("inventory", "publish", "t", "--to", str(place))
    yard.write_env("t", [{**WEB, "tags": ["w"]}])
    count = publish(yard, place, NEVER) or 0
    first = max(1, count + 1 - steps)
    for nth in range(first, count + 1):
        (old,) = tags_of(place)
        wanted = f"v{nth}"
        yard.write_env("t", [{**WEB, "tags": [wanted]}])
        assert publish(yard, place, nth) is None
        (found,) = tags_of(place)
        assert found in (old, wanted), "neither the old one nor the new one"
        new += found == wanted
    # Nothing was in the way of any of them, and nothing has to be cleared away by hand.
    yard.write_env("t", [{**WEB, "tags": ["last"]}])
    assert publish(yard, place, NEVER) is not None
    assert tags_of(place) == ["last"]
    return count + 1 - first, new


def test_a_folder_has_the_old_inventory_or_the_new_one_wherever_publishing_is_killed(
    yard: Yard, tmp_path: Path
) -> None:
    killed, new = kill_at_the_last(ALL, yard, tmp_path / "shelf")
    assert killed >= 6
    assert new < killed, "some were killed before the new one was there"


def test_a_bucket_has_the_old_inventory_or_the_new_one_when_the_write_is_cut_off_anywhere(
    yard: Yard, seaweed: Seaweed
) -> None:
    # The head of the request, its body, the wait for its answer, and what comes after that.
    killed, new = kill_at_the_last(4, yard, seaweed.address(new_prefix()))
    assert killed == 4
    assert 0 < new < killed, "one is killed after the request was answered, others before"


@pytest.mark.soak
def test_publishers_that_are_killed_over_and_over_never_tear_an_inventory(
    yard: Yard, seaweed: Seaweed, tmp_path: Path
) -> None:
    places = (tmp_path / "shelf", seaweed.address(new_prefix()))
    killed = 0
    for _ in range(5):
        for place in places:
            count, _ = kill_at_the_last(ALL, yard, place)
            killed += count
    kept = [name for name in os.listdir(places[0]) if name.isdigit()]
    assert len(kept) <= 60, "what is no longer current goes away, also behind publishers that were killed"
    print(f"{killed} publishers were killed; no inventory was torn, {len(kept)} versions are kept.")  # noqa: T201 - the count of a soak
