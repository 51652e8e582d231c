"""One word chooses the store, and two words that differ are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackyard.base import directories
from stackyard.base.errors import InvalidInputError, UsageError
from stackyard.sources.site.store_choice import STORE_VARIABLE, StoreChoiceError, choose_store, find_store

S3 = "s3://bucket/site"
PG = "postgresql://me@db/site"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    root = tmp_path / "repository" / "site"
    root.mkdir(parents=True)
    (root.parent / ".git").mkdir()
    (root / "site.yaml").write_text("defaults: {}\n")
    return root


def test_without_a_word_the_store_is_a_file_beside_the_site(site: Path) -> None:
    chosen = find_store(site)
    assert (chosen.address, chosen.base, chosen.chosen_by) == (None, site / ".stackyard", "the default")


def test_the_environment_wins_over_both_files(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (site / "site.yaml").write_text(f"store: {S3}\n")
    (site.parent / "stackyard.yaml").write_text("store: https://other:1\n")
    monkeypatch.setenv(STORE_VARIABLE, PG)
    chosen = find_store(site)
    assert (chosen.address, chosen.chosen_by) == (PG, STORE_VARIABLE)


def test_each_file_chooses_and_is_named(site: Path) -> None:
    (site.parent / "stackyard.yaml").write_text(f"store: {PG}\n")
    chosen = find_store(site)
    assert (chosen.address, chosen.chosen_by) == (PG, str(site.parent / "stackyard.yaml"))
    (site.parent / "stackyard.yaml").write_text("")
    (site / "site.yaml").write_text(f"store: {S3}\n")
    assert (find_store(site / "envs").address, find_store(site).chosen_by) == (S3, "site.yaml")


def test_two_files_that_say_the_same_agree_and_others_are_refused(site: Path) -> None:
    (site / "site.yaml").write_text(f"store: {S3}\n")
    (site.parent / "stackyard.yaml").write_text(f"store: {S3}\n")
    assert find_store(site).address == S3
    (site.parent / "stackyard.yaml").write_text(f"store: {PG}\n")
    with pytest.raises(StoreChoiceError, match="differs from"):
        find_store(site)


def test_a_file_above_the_repository_chooses_nothing(site: Path) -> None:
    (site.parent.parent / "stackyard.yaml").write_text(f"store: {PG}\n")
    assert find_store(site).address is None


@pytest.mark.parametrize("address", ["ftp://x", "s3:", "postgresql://me:secret@db/x", "http://db:8009"])
def test_an_address_that_makes_no_sense_or_holds_a_secret_is_refused_wherever_it_is(
    site: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    (site / "site.yaml").write_text(f"store: '{address}'\n")
    with pytest.raises(UsageError) as in_file:
        find_store(site)
    assert "secret" not in in_file.value.detail
    monkeypatch.setenv(STORE_VARIABLE, address)
    with pytest.raises(UsageError, match=STORE_VARIABLE):
        find_store(site)


@pytest.mark.parametrize("text", ["store: [1]\n", "stores: x\n", "- 1\n", "store: {\n"])
def test_a_file_of_the_repository_that_is_not_valid_is_named(site: Path, text: str) -> None:
    (site.parent / "stackyard.yaml").write_text(text)
    with pytest.raises(InvalidInputError) as refused:
        find_store(site)
    assert "stackyard.yaml" in f"{refused.value.detail} {refused.value.where} {refused.value.diagnostics}"


def test_outside_of_any_site_the_store_is_that_of_the_user(tmp_path: Path) -> None:
    assert find_store(tmp_path).base == directories.data_folder()


def test_a_deployment_object_has_its_store_beside_it(tmp_path: Path) -> None:
    (tmp_path / "deployment.yaml").write_text("x: 1\n")
    below = tmp_path / "deep" / "down"
    below.mkdir(parents=True)
    assert find_store(below).base == tmp_path / ".stackyard"


def test_the_key_of_the_secrets_is_handed_on(tmp_path: Path) -> None:
    chosen = choose_store(tmp_path, tmp_path / ".stackyard", site_store=S3, site_key="k")
    assert chosen.site_key == "k"
