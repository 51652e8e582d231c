"""The options that every command takes are seen before the line is parsed, wherever they stand."""

from __future__ import annotations

import pytest

from stackyard.cli.settings import CliSettings, read_settings


@pytest.mark.parametrize(
    ("line", "settings"),
    [
        ("", CliSettings()),
        ("tools list", CliSettings()),
        ("tools list --json", CliSettings(is_json=True)),
        ("--events tools list", CliSettings(is_events=True)),
        ("tools -v list --no-color", CliSettings(is_verbose=True, no_color=True)),
        ("tools list --verbose", CliSettings(is_verbose=True)),
        ("tools list -vvv", CliSettings(is_verbose=True)),
        ("tools list -- --json -v", CliSettings()),
        ("--json tools -- --events", CliSettings(is_json=True)),
        ("tools --jsonx -vx", CliSettings()),
    ],
)
def test_what_a_line_asks_for(line: str, settings: CliSettings) -> None:
    assert read_settings(line.split()) == settings
