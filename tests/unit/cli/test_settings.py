"""The options that every command takes are seen before the line is parsed, wherever they stand."""

from __future__ import annotations

import pytest

from stackyard.cli.settings import Settings, read_settings


@pytest.mark.parametrize(
    ("line", "settings"),
    [
        ("", Settings()),
        ("tools list", Settings()),
        ("tools list --json", Settings(is_json=True)),
        ("--events tools list", Settings(is_events=True)),
        ("tools -v list --no-color", Settings(is_verbose=True, no_color=True)),
        ("tools list --verbose", Settings(is_verbose=True)),
        ("tools list -vvv", Settings(is_verbose=True)),
        ("tools list -- --json -v", Settings()),
        ("--json tools -- --events", Settings(is_json=True)),
        ("tools --jsonx -vx", Settings()),
    ],
)
def test_what_a_line_asks_for(line: str, settings: Settings) -> None:
    assert read_settings(line.split()) == settings
