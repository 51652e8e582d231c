"""Files that are made to crash a check for secrets, or to keep it busy for ever."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.bombs import DEEP_JSON, DEEP_YAML, FULL_YAML

from stackyard.base.errors import InvalidInputError, Location
from stackyard.secrets.check.patterns import find_secrets
from stackyard.secrets.check.scan import check_texts
from stackyard.secrets.formats.json_layout import parse_json
from stackyard.secrets.formats.yaml_layout import parse_yaml
from stackyard.secrets.layout import SecretsSyntaxError
from stackyard.secrets.protected_file import detect
from stackyard.secrets.sops.config import SopsConfigError, parse_config

TOKEN = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3hJ5"


def test_brackets_in_a_sops_config_are_an_error_and_no_crash() -> None:
    # In a process of its own: it crashed, and would take the tests with it.
    code = (
        "from pathlib import Path\n"
        "from stackyard.secrets.sops.config import SopsConfigError, parse_config\n"
        "try:\n    parse_config('[' * 50_000, Path('.sops.yaml'))\n"
        "except SopsConfigError as err:\n    print(err.where, err.detail)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert (
        ended.stdout
        == ".sops.yaml:1:101 .sops.yaml is not valid YAML: it is nested deeper than 100 levels.\n"
    )


@pytest.mark.parametrize("name", [*DEEP_YAML, *FULL_YAML])
def test_a_sops_config_that_is_a_bomb_is_refused(name: str) -> None:
    with pytest.raises(SopsConfigError):
        parse_config({**DEEP_YAML, **FULL_YAML}[name], Path(".sops.yaml"))


@pytest.mark.parametrize("name", [*DEEP_YAML, *FULL_YAML])
def test_a_secrets_file_that_is_a_bomb_is_refused_or_read(name: str) -> None:
    text = {**DEEP_YAML, **FULL_YAML}[name]
    with contextlib.suppress(SecretsSyntaxError):
        parse_yaml(text, "secrets.yaml")
    # What cannot be read may hold anything, and its name says that it holds secrets.
    assert check_texts({"secrets.yaml": text}, {}) != ()


@pytest.mark.parametrize("name", DEEP_JSON)
def test_json_that_is_nested_too_deeply_is_refused(name: str) -> None:
    with pytest.raises(SecretsSyntaxError):
        parse_json(DEEP_JSON[name], "secrets.json")


def test_aliases_that_nest_deeper_than_the_text_are_refused_where_they_do() -> None:
    text = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 2_000))
    with pytest.raises(SecretsSyntaxError, match="its aliases are nested deeper than 100 levels") as caught:
        parse_yaml(text, "secrets.yaml")
    assert caught.value.where == Location("secrets.yaml", 100, 12)


@pytest.mark.parametrize("number", ["9" * 5_000, "-" + "9" * 5_000, "0x" + "f" * 5_000, "0." + "9" * 5_000])
def test_a_number_of_any_length_is_read(number: str) -> None:
    layout = parse_yaml(f"a: {number}\n", "secrets.yaml")
    assert len(layout.documents) == 1


def test_a_number_of_json_that_no_float_holds_is_refused_with_its_place() -> None:
    with pytest.raises(SecretsSyntaxError, match="a number is too large") as caught:
        parse_json('{\n "a": ' + "9" * 400 + "}", "secrets.json")
    assert caught.value.where == Location("secrets.json", 2, 7)


def lines(line: str, size: int) -> str:
    return line * (size // len(line))


# What each makes of a number of characters: a path, and a text that took a time of their square.
BOMBS: dict[str, Callable[[int], tuple[str, str]]] = {
    "tokens": lambda size: ("a.txt", lines(f"token = {TOKEN}\n", size)),
    "tokens in one line": lambda size: ("a.txt", lines(f"{TOKEN} ", size)),
    "tokens that are allowed": lambda size: (
        "a.txt",
        "\n" * 9 + lines(f"{TOKEN} stackyard:allow-secret\n", size),
    ),
    "starts of keys": lambda size: ("a.txt", lines("-----BEGIN PRIVATE KEY-----\n \n", size)),
    "addresses": lambda size: ("a.txt", lines("a.a.a.a.https://a:b", size)),
    "empty lines": lambda size: ("a.secret.txt", "\n" * size + "#"),
    "words like vault": lambda size: ("a.yaml", "a: !" + lines("vault", size)),
    "comments": lambda size: ("secrets.yaml", "a: 1\n" + lines("# a\n", size)),
    "comments behind values": lambda size: (
        "secrets.yaml",
        "".join(f"k{number}: # a\n" for number in range(size // 40)),
    ),
    "comments below values": lambda size: (
        "secrets.yaml",
        "".join(f"k{number}:\n\n# a\n\n" for number in range(size // 48)),
    ),
    "a long text of json": lambda size: ("secrets.json", '{"a": "' + "a" * size + '"}'),
    "escapes of json": lambda size: ("secrets.json", '{"a": "' + "\\n" * (size // 2) + '"}'),
}


def spent_s(path: str, text: str) -> float:
    began_s = time.process_time()
    check_texts({path: text}, {})
    return time.process_time() - began_s


@pytest.mark.parametrize("name", BOMBS)
def test_the_time_of_a_check_grows_with_the_size_of_a_text_and_not_with_its_square(name: str) -> None:
    small, large = BOMBS[name](40_000), BOMBS[name](640_000)
    ratio = min(spent_s(*large) / max(spent_s(*small), 1e-4) for _ in range(2))
    # Sixteen times as much text: the square is 256.
    assert ratio < 100, f"{ratio:.0f} times as long for 16 times as much"


@pytest.mark.parametrize("size", [820_000, 8_000_000])
def test_as_many_lines_like_tokens_as_anybody_writes_are_looked_through(size: int) -> None:
    text = lines(f"token = {TOKEN}\n", size)
    found = list(find_secrets(text))
    assert len(found) == 1_000
    assert [one.line for one in found] == list(range(1, 1_001))


def test_two_secrets_of_a_kind_in_a_line_are_one_finding_and_others_are_others() -> None:
    found = list(find_secrets(f"{TOKEN} {TOKEN}\nAKIA1234567890QWERTY {TOKEN}\n"))
    assert [(one.name, one.line) for one in found] == [
        ("a token of GitHub", 1),
        ("a token of GitHub", 2),
        ("an access key of AWS", 2),
    ]


@pytest.mark.parametrize("name", [*DEEP_YAML, *FULL_YAML])
def test_telling_how_a_file_is_protected_ends(name: str) -> None:
    text = "sops: 1\n---\n" + {**DEEP_YAML, **FULL_YAML}[name]
    with contextlib.suppress(InvalidInputError):
        detect(text.encode(), "a.yaml")
