"""How long phases may take: a run before its site, and that before the table."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.site import write_site

from stackyard.base.errors import InvalidInputError, UsageError
from stackyard.operator.manifest_run import timeouts_of
from stackyard.operator.request import VerbRequest
from stackyard.sources.site import ConfigResolver
from stackyard.sources.site.timeouts import TIMEOUTS, Timeouts, read_timeouts

PAGE = (Path(__file__).parents[4] / "docs" / "howto" / "operator.md").read_text()
TABLE = PAGE.partition("## How long each phase may take")[2].partition("## ")[0]


def test_a_run_counts_before_its_site_and_what_is_said_counts_exactly(tmp_path: Path) -> None:
    write_site(tmp_path)
    site = tmp_path / "site.yaml"
    said = "defaults:\n  timeouts: {provision: 600, wait_ip: 30}\n"
    site.write_text(site.read_text().replace("defaults:\n", said, 1))
    request = VerbRequest(timeouts=read_timeouts(["create_guest=5", "wait_ssh=7.5"]))
    found = timeouts_of(request, ConfigResolver(str(tmp_path)))
    assert found.said == {"provision": 5.0, "wait_address": 30.0, "wait_ssh": 7.5}
    assert found.seconds("wait_ssh", buffer_s=60.0) == 7.5
    assert found.seconds("setup_pve", buffer_s=60.0) == 1260.0
    assert Timeouts().seconds("provision") is None
    assert VerbRequest.from_json(request.as_json()) == request


@pytest.mark.parametrize("word", ["provison=3", "provision", "provision=soon", "provision=0", "wait_ssh=-1"])
def test_what_is_no_phase_or_no_time_is_refused(word: str) -> None:
    with pytest.raises(UsageError):
        read_timeouts([word])


def test_a_site_that_names_no_phase_is_wrong(tmp_path: Path) -> None:
    write_site(tmp_path)
    site = tmp_path / "site.yaml"
    site.write_text(site.read_text().replace("defaults:\n", "defaults:\n  timeouts: {provison: 6}\n", 1))
    with pytest.raises(InvalidInputError):
        timeouts_of(VerbRequest(), ConfigResolver(str(tmp_path)))


def test_the_page_lists_every_phase_with_its_time() -> None:
    for name, timeout in TIMEOUTS.items():
        [row] = [line for line in TABLE.splitlines() if line.startswith(f"| `{name}` |")]
        assert timeout.default_s is None or f"{timeout.default_s:,.0f}" in row
