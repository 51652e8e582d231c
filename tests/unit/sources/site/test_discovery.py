"""The site is found where the user says, around the current folder, or in the places of old."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackyard.sources.site import discovery
from stackyard.sources.site.discovery import SiteNotFoundError, find_site


def made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "site.yaml").write_text("defaults: {}\n")
    return folder


@pytest.fixture(autouse=True)
def no_system_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    places = (tmp_path / "etc" / "homestak", tmp_path / "opt" / "homestak")
    monkeypatch.setattr(discovery, "SYSTEM_PLACES", places)
    monkeypatch.delenv("HOMESTAK_SITE_CONFIG", raising=False)


def test_each_place_goes_before_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "repo" / "deep"
    work.mkdir(parents=True)
    with pytest.raises(SiteNotFoundError):
        find_site(start=work)
    system = made(tmp_path / "opt" / "homestak")
    assert find_site(start=work) == system
    system = made(tmp_path / "etc" / "homestak")
    assert find_site(start=work) == system
    sibling = made(tmp_path / "repo" / "site-config")
    assert find_site(start=work) == sibling
    parent = made(tmp_path / "repo")
    assert find_site(start=work) == parent
    made(work)
    assert find_site(start=work) == work
    homestak = made(tmp_path / "homestak")
    monkeypatch.setenv("HOMESTAK_SITE_CONFIG", str(homestak))
    assert find_site(start=work) == homestak
    ours = made(tmp_path / "ours")
    monkeypatch.setenv("STACKYARD_SITE", str(ours))
    assert find_site(start=work) == ours
    said = made(tmp_path / "said")
    assert find_site(said, start=work) == said


@pytest.mark.parametrize("variable", [None, "STACKYARD_SITE", "HOMESTAK_SITE_CONFIG"])
def test_an_explicit_place_that_is_not_there_is_an_error_and_nothing_else_is_tried(
    variable: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = made(tmp_path / "here")
    missing = str(tmp_path / "missing")
    if variable is not None:
        monkeypatch.setenv(variable, missing)
    with pytest.raises(SiteNotFoundError, match="does not exist") as caught:
        find_site(missing if variable is None else None, start=here)
    assert (variable or "--site") in caught.value.detail


def test_an_explicit_folder_without_a_site_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SiteNotFoundError, match=r"holds no site\.yaml"):
        find_site(tmp_path)


def test_an_explicit_file_is_an_error(tmp_path: Path) -> None:
    made(tmp_path)
    with pytest.raises(SiteNotFoundError, match="is not a folder"):
        find_site(tmp_path / "site.yaml")


def test_a_variable_that_is_empty_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = made(tmp_path / "here")
    monkeypatch.setenv("STACKYARD_SITE", "")
    assert find_site(start=here) == here


def test_the_error_names_every_place_that_was_tried(tmp_path: Path) -> None:
    with pytest.raises(SiteNotFoundError) as caught:
        find_site(start=tmp_path)
    for place in (tmp_path, tmp_path.parent / "site-config", *discovery.SYSTEM_PLACES):
        assert str(place) in caught.value.detail
