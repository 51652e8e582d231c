"""No secret survives in any of its spellings."""

from __future__ import annotations

import base64
import html
import itertools
import json
import os
import shlex
import urllib.parse
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stackyard.base.redaction import MASK, NOTHING_SECRET, Redactor

# Everything that some encoder treats in a way of its own, with line breaks, among ordinary characters.
AWKWARD = "abcXYZ019 \"'\\/<>&%+=~$@:;,!()#?\n\r\t\x00\x1f\x7f\u2028éß€😀"
texts = st.text(st.sampled_from(AWKWARD)) | st.text()
# The mask's own character has a test of its own.
secrets = texts.map(lambda text: text.strip().replace("*", "x")).filter(lambda text: len(text) >= 4)


def go_json(text: str) -> str:
    encoded = json.dumps(text, ensure_ascii=False)[1:-1]
    for character in "<>&\u2028\u2029":
        encoded = encoded.replace(character, f"\\u{ord(character):04x}")
    return encoded


SPELLINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "windows line breaks": lambda text: text.replace("\r\n", "\n").replace("\n", "\r\n"),
    "url": lambda text: urllib.parse.quote(text, safe=""),
    "url path": urllib.parse.quote,
    "url form": urllib.parse.quote_plus,
    "url lower case": lambda text: "%".join(
        part[:2].lower() + part[2:] if at else part
        for at, part in enumerate(urllib.parse.quote(text, safe="").split("%"))
    ),
    "go url user": lambda text: urllib.parse.quote(text, safe="$&+,;="),
    "javascript url": lambda text: urllib.parse.quote(text, safe="!*'()"),
    "json": lambda text: json.dumps(text)[1:-1],
    "json utf-8": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "json of go": go_json,
    "json in json": lambda text: json.dumps(json.dumps(text)[1:-1])[1:-1],
    "json of go, three deep": lambda text: go_json(go_json(go_json(text))),
    "python": lambda text: repr(text)[1:-1],
    "html": html.escape,
    "html of go": lambda text: html.escape(text).replace("&#x27;", "&#39;").replace("&quot;", "&#34;"),
    "shell": shlex.quote,
    "shell trace": lambda text: "'" + text.replace("'", "'\\''") + "'",
}


@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS.keys())
@settings(max_examples=30)
@given(secret=secrets)
@example(secret="p'a\"s<s>&w/o r+d\\")
@example(secret="'\"\\'\"\\'")
@example(secret="a\r\nb\nc")
@example(secret="-----BEGIN KEY-----\nMIIE+/==\n-----END KEY-----")
def test_a_secret_is_masked_whole_in_every_spelling(spell: Callable[[str], str], secret: str) -> None:
    spelling = spell(secret)
    redact = Redactor([secret])
    assert redact.hides(spelling)
    # The outer quotes of a shell are not part of the secret.
    assert redact(spelling).strip("'") == MASK


@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS.keys())
@settings(max_examples=30)
@given(secret=secrets, before=texts, after=texts)
def test_a_secret_is_masked_wherever_it_stands(
    spell: Callable[[str], str], secret: str, before: str, after: str
) -> None:
    spelling = spell(secret)
    assert spelling not in Redactor([secret])(before + spelling + after)


@given(
    encode=st.sampled_from([base64.b64encode, base64.urlsafe_b64encode]),
    before=st.sampled_from(["", "k", "k=", "root@pam:"]),
    after=st.sampled_from(["", "\n", "!!"]),
    secret=secrets,
)
def test_a_secret_is_masked_inside_base64(
    encode: Callable[[bytes], bytes], before: str, after: str, secret: str
) -> None:
    encoded = encode(f"{before}{secret}{after}".encode()).decode()
    masked = Redactor([secret])(encoded)
    # All goes but the characters that hold bits of what stands around the secret.
    around = len(encoded) - (len(secret.encode()) * 8 // 6 - 1)
    assert MASK in masked
    assert len(masked) - len(MASK) <= around


@given(values=st.lists(st.text("ab", min_size=4, max_size=8), max_size=4), text=st.text("ab", max_size=60))
def test_where_secrets_overlap_all_of_it_is_masked(values: list[str], text: str) -> None:
    covered = [False] * len(text)
    for value in values:
        for start in range(len(text)):
            if text.startswith(value, start):
                covered[start : start + len(value)] = [True] * len(value)
    expected = "".join(
        MASK if is_covered else "".join(character for character, _ in run)
        for is_covered, run in itertools.groupby(zip(text, covered, strict=True), key=lambda pair: pair[1])
    )
    assert Redactor(values)(text) == expected


def test_a_long_secret_that_begins_inside_another_leaves_nothing() -> None:
    assert Redactor(["abcd", "bcdefghijklmnop"])("<abcdefghijklmnop>") == f"<{MASK}>"
    assert Redactor(["hunter2", "hunter22-and-more"])("hunter22-and-more") == MASK


@given(
    values=st.lists(st.text("ab*", min_size=4, max_size=9) | secrets, max_size=4),
    text=st.text("ab* ", max_size=60) | texts,
)
@example(values=["*abc", "xxxx"], text="xxxxabc")
@example(values=["****", "*****"], text="*" * 21)
def test_masking_twice_changes_nothing_more(values: list[str], text: str) -> None:
    redact = Redactor(values)
    assert redact(redact(text)) == redact(text)


@given(values=st.lists(secrets, max_size=4), text=texts)
def test_masked_text_holds_no_secret_and_other_text_stays(values: list[str], text: str) -> None:
    redact = Redactor(values)
    assert not redact.hides(redact(text))
    assert redact.hides(text) == (redact(text) != text)


def test_each_line_of_a_secret_is_one() -> None:
    redact = Redactor(["-----BEGIN KEY-----\n  bGluZSBvbmU=\r\nbGluZSB0d28=\nend\n"])
    assert redact("read bGluZSBvbmU= and bGluZSB0d28=, at the end") == f"read {MASK} and {MASK}, at the end"


@pytest.mark.parametrize("value", ["", "a", "abc", "  abc\n", "\n\n\n\n", "    ", "a\n"])
def test_a_value_too_short_to_be_a_secret_is_left_alone(value: str) -> None:
    redact = Redactor([value])
    assert not redact.hides(f"x{value}x")
    assert redact(f"x{value}x") == f"x{value}x"


def test_space_around_a_secret_does_not_count() -> None:
    assert Redactor(["  hunter2\n"])("password=hunter2;") == f"password={MASK};"


@pytest.mark.parametrize("value", ["pass\udc80word", "\ud800word", "word\udfff"])
def test_a_secret_of_half_a_surrogate_pair_is_masked(value: str) -> None:
    assert Redactor([value])(f"<{value}>") == f"<{MASK}>"


def test_a_secret_of_bytes_that_are_not_utf8_is_masked_in_what_programs_print() -> None:
    printed = b"<pass\x80word>"
    from_environment = os.fsdecode(printed[1:-1])
    assert Redactor([from_environment])(printed.decode(errors="replace")) == f"<{MASK}>"


def test_secrets_can_be_added_and_the_first_redactor_stays_as_it_was() -> None:
    first = Redactor(["hunter2"])
    both = first.with_secrets(["pa/ss"]).with_secrets(["third-one"])
    assert first("hunter2 pa/ss") == f"{MASK} pa/ss"
    assert both("hunter2 pa%2Fss third-one") == f"{MASK} {MASK} {MASK}"


@given(text=texts)
def test_with_no_secrets_text_stays(text: str) -> None:
    assert NOTHING_SECRET(text) == text
    assert not NOTHING_SECRET.hides(text)


def test_long_text_and_many_secrets_are_no_trouble() -> None:
    values = [f"secret/{number}\\" for number in range(100)]
    text = "\\" * 100_000 + "".join(values) + "a" * 100_000
    assert Redactor(values)(text) == "\\" * 100_000 + MASK + "a" * 100_000
