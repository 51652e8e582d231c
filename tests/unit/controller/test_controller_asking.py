"""A path is taken apart once, and nothing that leads elsewhere passes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackyard.controller.refusals import Code, RequestRefusedError
from stackyard.controller.request_path import read_path


@pytest.mark.parametrize(
    ("raw", "segments"),
    [
        ("/", ()),
        ("/health", ("health",)),
        ("/spec/web1/", ("spec", "web1")),
        ("/a.git/deep/a%20file.txt?x=1", ("a.git", "deep", "a file.txt")),
        ("/a.git/%252e%252e/x", ("a.git", "%2e%2e", "x")),
        ("/a.git/gr%C3%BCn", ("a.git", "grün")),
    ],
)
def test_a_path_becomes_its_parts_decoded_once(raw: str, segments: tuple[str, ...]) -> None:
    assert read_path(raw).segments == segments


@pytest.mark.parametrize(
    "raw",
    [
        "/a.git/../x",
        "/a.git/objects/../../x",
        "/a.git/./x",
        "/a.git//x",
        "//x",
        "/a.git/%2e%2e/x",
        "/a.git/.%2E/x",
        "/a.git/..%2fx",
        "/a.git/%2e%2e%2fx",
        "/a.git/a%2Fb",
        "/a.git/..\\x",
        "/a.git/%5c..%5cx",
        "/a.git/x%00.txt",
        "/a.git/x%0a",
        "/a.git/%zz",
        "/a.git/%",
        "/a.git/%ff",
        "/a.git/\u00e4",
        "a.git/x",
        "*",
        "https://elsewhere/x",
        "/" + "a" * 5000,
    ],
)
def test_a_path_that_leads_elsewhere_is_refused(raw: str) -> None:
    with pytest.raises(RequestRefusedError) as caught:
        read_path(raw)
    assert (caught.value.status, caught.value.wire_code) == (400, Code.BAD_REQUEST)


@given(st.text(alphabet=st.sampled_from("abc/.%25eEfF\\\x00 ?&=~-"), max_size=40))
def test_no_part_of_any_path_leads_up_or_is_empty(text: str) -> None:
    try:
        asked = read_path(f"/{text}")
    except RequestRefusedError:
        return
    for part in asked.segments:
        assert part not in ("", ".", "..")
        assert not set(part) & {"/", "\\", "\0"}


def test_of_a_parameter_that_comes_twice_the_first_counts() -> None:
    assert read_path("/x?format=json&format=shell&empty=").query == {"format": "json", "empty": ""}
