"""A large env: the work grows with the number of its guests, not with its square."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.site import SEED, write_site

from stackyard.base.errors import Location
from stackyard.path.environment import EnvironmentSource
from stackyard.path.run_input import render_target
from stackyard.path.source_locations import SourceLocations
from stackyard.sources.site.load import Site

FEW, MANY = 60, 240
# Four times the guests are about four times the work, and sixteen times if each looks at all others.
MOST = 6.0


def write_env(folder: Path, count: int, more: str = "") -> Path:
    guests = "".join(
        f"  - {{name: guest-{number}, vmid: {1000 + number}, preset: xsmall, image: debian-12{more}}}\n"
        for number in range(count)
    )
    write_site(folder, {**SEED, "envs/large.yaml": f"node: father\nvms:\n{guests}"})
    return folder


def count_calls(action: Callable[[], Any]) -> int:
    """Return how many functions were called: the same on every machine, however busy."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        del frame, argument
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "mistake", ["", ", memroy: 1", ", memory: much", ", ip: 10.0.12.61/24", ", template: nope"]
)
def test_the_checks_of_an_env_grow_with_its_guests(tmp_path: Path, mistake: str) -> None:
    def check(folder: Path) -> int:
        return count_calls(lambda: Site.open(str(folder)))

    few, many = (write_env(tmp_path / str(count), count, mistake) for count in (FEW, MANY))
    assert bool(Site.open(str(few)).found.errors) is bool(mistake)
    assert check(many) < MOST * check(few)


def test_to_resolve_and_render_an_env_grows_with_its_guests(tmp_path: Path) -> None:
    def render(folder: Path) -> int:
        def work() -> None:
            resolved = EnvironmentSource.find(str(folder)).resolve("large", None)
            render_target(resolved, resolved.desired)

        return count_calls(work)

    few, many = (write_env(tmp_path / str(count), count) for count in (FEW, MANY))
    render(few)
    assert render(many) < MOST * render(few)


def test_the_places_of_all_errors_of_an_engine_are_found_in_one_reading(tmp_path: Path) -> None:
    def locate(folder: Path) -> int:
        resolved = EnvironmentSource.find(str(folder)).resolve("large", None)
        files = render_target(resolved, resolved.desired).files
        (name,) = (name for name, data in files.items() if b"guest-0" in data)
        path = folder / "generated" / name
        path.parent.mkdir()
        path.write_bytes(files[name])
        lines = path.read_text().splitlines()
        find = SourceLocations(resolved, path.parent)
        named = [number for number, line in enumerate(lines, start=1) if '"vm_id":' in line]
        found = [find(Location(str(path), number), None) for number in named]
        count = len(tuple(resolved.desired.guests))
        assert sorted({place.line or 0 for place in found if place}) == list(range(3, 3 + count))
        return count_calls(lambda: [find(Location(str(path), number), None) for number in named])

    few, many = (write_env(tmp_path / str(count), count) for count in (FEW, MANY))
    assert locate(many) < MOST * locate(few)
