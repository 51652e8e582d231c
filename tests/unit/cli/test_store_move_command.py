"""`stackyard store move`: stores of which one is inside the other are refused before anything is copied."""

from __future__ import annotations

import pytest
from tests.support.cli import stackyard


@pytest.mark.parametrize(
    ("origin", "destination"),
    [
        ("s3://bucket/site", "s3://bucket/site/v2"),
        ("s3://bucket/site/v2", "s3://bucket/site"),
        ("s3://bucket", "s3://bucket/site?endpoint=https://s3.example"),
    ],
)
def test_a_store_inside_the_other_is_refused(origin: str, destination: str) -> None:
    ended = stackyard("store", "move", origin, destination, "--json")
    assert ended.status == 64
    assert "inside the other" in ended.document["error"]["detail"]
