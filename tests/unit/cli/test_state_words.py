"""How times, sizes and values are spelled."""

from __future__ import annotations

import click
import pytest

from stackyard.cli.commands.state.words import PERIOD, brief, instant, period, plain, size
from stackyard.engine.changes import SENSITIVE


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (59, "59 s"),
        (61, "1 min"),
        (3600, "1 h"),
        (3720, "1 h 2 min"),
        (90000, "1 d 1 h"),
        (-3, "0 s"),
    ],
)
def test_a_length_of_time_is_told_in_its_largest_units(seconds: float, text: str) -> None:
    assert period(seconds) == text


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("30m", 1800), ("1.5h", 5400), ("30d", 2592000), ("2w", 1209600)]
)
def test_a_length_of_time_is_read(text: str, seconds: float) -> None:
    assert PERIOD.convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "1", "d", "1y", "-1d", "1 month"])
def test_what_is_no_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="30d"):
        PERIOD.convert(text, None, None)


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (20 * 1024**2, "20.0 MiB")]
)
def test_a_size_is_told_in_a_unit_that_fits(count: int, text: str) -> None:
    assert size(count) == text


def test_a_time_is_told_in_utc_for_programs() -> None:
    assert instant(0.25) == "1970-01-01T00:00:00.250Z"
    assert instant(None) is None


def test_what_stands_for_a_hidden_value_becomes_text() -> None:
    assert plain({"a": [SENSITIVE, 1]}) == {"a": ["(sensitive)", 1]}
    assert brief(SENSITIVE) == "(sensitive)"
    assert brief("(sensitive)") == '"(sensitive)"'
    assert len(brief("x" * 1000)) < 120
