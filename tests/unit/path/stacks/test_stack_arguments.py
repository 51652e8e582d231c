"""What is passed on to the engine of a stack, in whichever way it is spelled."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackyard.path.stacks.arguments import RefusedArgumentError, read_arguments

REFUSED = (
    "lock lock-timeout state state-out backup out auto-approve destroy chdir input json refresh-only".split()
)


def test_flags_are_passed_on_in_one_spelling() -> None:
    passed = read_arguments(["-target", "a.b", "--replace=c.d", "-refresh=false", "-compact-warnings"])
    assert passed.words == ("-target=a.b", "-replace=c.d", "-refresh=false", "-compact-warnings")
    assert len(passed.notes) == 2


def test_the_value_of_a_variable_is_not_shown() -> None:
    passed = read_arguments(["-var", "password=hunter2", "-var=other=1"])
    assert passed.words == ("-var=password=hunter2", "-var=other=1")
    assert passed.shown == ("-var=password=…", "-var=other=…")


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("form", ["-{}", "--{}", "-{}=false", "--{}=x"])
def test_what_gets_round_lock_store_or_guard_is_refused(name: str, form: str) -> None:
    with pytest.raises(RefusedArgumentError, match=f"-{name}`"):
        read_arguments([form.format(name)])


def test_everything_that_is_refused_is_named_at_once() -> None:
    with pytest.raises(RefusedArgumentError) as caught:
        read_arguments(["-lock=false", "-target=x.y", "-state=z", "-wholly-new"])
    for name in ("-lock", "-state", "-wholly-new"):
        assert f"`{name}`" in caught.value.detail


@pytest.mark.parametrize("words", [["apply"], ["-target=x", "plan.bin"], ["-"], ["--"], ["-var"]])
def test_a_word_that_is_no_flag_is_refused(words: list[str]) -> None:
    with pytest.raises(RefusedArgumentError):
        read_arguments(words)


@given(st.lists(st.text(max_size=12), max_size=6))
def test_no_words_reach_the_engine_that_are_not_known(words: list[str]) -> None:
    try:
        passed = read_arguments(words)
    except RefusedArgumentError:
        return
    assert all(word.startswith("-") and not word.startswith("--") for word in passed.words)
