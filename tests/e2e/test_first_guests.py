"""The tutorial of the first guests does what it says: its commands are taken from the page and run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cli import Ended, fresh
from tests.support.engine import real_engine

from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "first-guests.md"
BLOCK = re.compile(r"```sh\n(.*?)```", re.DOTALL)


def steps() -> list[list[str]]:
    return [block.strip().splitlines() for block in BLOCK.findall(PAGE.read_text())]


class Reader:
    """Somebody who types what the page shows."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.folder = folder
        self.env = env

    def type(self, line: str, status: int = 0) -> Ended:
        words = shlex.split(line, comments=True)
        if words[0] == "cd":
            self.folder /= words[1]
            return Ended(0, "", "")
        assert words[0] == "stackyard", line
        # Tests run side by side, each with a lab of its own.
        more = ["--port", "0"] if words[1:3] == ["lab", "up"] else []
        ended = fresh(*words[1:], *more, cwd=self.folder, env=self.env)
        assert ended.status == status, f"{line}\n{ended.stdout}\n{ended.stderr}"
        return ended


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    made = Reader(tmp_path, {"STACKYARD_TOFU": str(real_engine(Flavour.TOFU).path)})
    yield made
    fresh("lab", "down", cwd=tmp_path)


def test_the_page_can_be_followed_from_its_start_to_its_end(reader: Reader) -> None:
    cluster, site, look, plan, apply, accident, drift, clean = steps()
    for line in (*cluster, *site, *look, *plan):
        reader.type(line)
    made = [reader.type(line) for line in apply]
    assert "web" in made[0].stdout
    assert all(name in made[1].stdout for name in ("web", "db", "dns"))

    env = reader.folder / "envs" / "dev.yaml"
    whole = env.read_text()
    env.write_text(whole[: whole.index("  - name: web")] + whole[whole.index("  - name: db") :])
    refused = reader.type(accident[0], status=1)
    assert "VM web (10000 on pve1)" in refused.stderr
    assert "--allow-destroy" in refused.stderr
    env.write_text(whole)

    assert "Nothing to change" in reader.type(drift[0]).stdout
    for line in clean:
        reader.type(line)
