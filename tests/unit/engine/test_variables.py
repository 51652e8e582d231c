from __future__ import annotations

import pytest

from stackyard.engine.variables import Value, VariableError, encode_variables


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain ${as it is} \n", "plain ${as it is} \n"),
        (3, "3"),
        (2.5, "2.5"),
        (True, "true"),
        (["a", None, False], '["a",null,false]'),
        ({"k y": {"n": [1]}}, '{"k y"={"n"=[1]}}'),
        (["${x} %{if} $${y}"], '["$${x} %%{if} $$${y}"]'),
        (['quote " slash \\ tab\t'], r'["quote \" slash \\ tab\t"]'),
        (["\b\f\x01é☃"], r'["\u0008\u000c\u0001é☃"]'),
        ([r"\b"], r'["\\b"]'),
    ],
)
def test_a_value_is_written_as_the_engine_reads_it(value: Value, text: str) -> None:
    assert encode_variables({"v": value}) == {"TF_VAR_v": text}


def test_a_variable_that_is_none_stays_unset() -> None:
    assert encode_variables({"a": None, "b": ""}) == {"TF_VAR_b": ""}


@pytest.mark.parametrize("name", ["", "1st", "a b", "a=b", "a\nb", "é"])
def test_a_name_that_no_variable_can_have_is_refused(name: str) -> None:
    with pytest.raises(VariableError, match="not a name"):
        encode_variables({name: "x"})


@pytest.mark.parametrize(
    ("value", "reason"),
    [("s3cret\0", "NUL"), (["s3cret\0", float("inf")], "finite"), ("s3cret" * 30_000, "too long")],
)
def test_a_value_that_cannot_travel_is_refused_without_showing_it(value: Value, reason: str) -> None:
    with pytest.raises(VariableError, match=reason) as caught:
        encode_variables({"password": value})
    assert "password" in caught.value.detail
    assert "s3cret" not in caught.value.detail


def test_the_longest_value_that_fits_is_passed() -> None:
    longest = "x" * (128 * 1024 - 1 - len("TF_VAR_v="))
    assert encode_variables({"v": longest})["TF_VAR_v"] == longest
    with pytest.raises(VariableError):
        encode_variables({"v": longest + "x"})
