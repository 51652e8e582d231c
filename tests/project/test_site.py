"""The documentation as a site: its navigation, its links, and that nothing comes from elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import site

needs_zensical = pytest.mark.skipif(
    not site.ZENSICAL.exists(), reason="Zensical is not installed: `make site` installs it"
)


def test_every_page_is_in_the_list_that_becomes_the_navigation(tmp_path: Path) -> None:
    site.stage(tmp_path)
    assert list(site.missing_pages(tmp_path / "source")) == []


def test_a_link_leads_to_the_copy_of_a_page_and_one_to_source_code_becomes_its_text(tmp_path: Path) -> None:
    site.stage(tmp_path)
    tutorial = (tmp_path / "source" / "tutorial" / "first-guests.md").read_text()
    assert "[The examples](../examples/README.md)" in tutorial
    architecture = (tmp_path / "source" / "architecture.md").read_text()
    assert "../src/" not in architecture


def test_what_leads_nowhere_or_comes_from_elsewhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "index.html").write_text('<h1 id="here">Other</h1><a href="../">back</a>')
    links = "<a href='other/#here'>a</a><a href='other/#gone'>b</a><a href='gone/'>c</a>"
    (tmp_path / "index.html").write_text(links + "<script src='https://cdn.example/x.js'></script>")
    assert list(site.check(tmp_path)) == [
        "index.html loads https://cdn.example/x.js",
        "index.html: other/#gone",
        "index.html: gone/",
    ]


@needs_zensical
def test_the_site_is_built_with_search_and_a_dark_scheme(tmp_path: Path) -> None:
    assert site.build(tmp_path) == []
    assert (tmp_path / "html" / "search.json").stat().st_size > 100_000
    front = (tmp_path / "html" / "index.html").read_text()
    assert 'data-md-color-scheme="slate"' in front
    for word in ("Learn by doing", "How-to guides", "Reference", "Explanation", "Decisions"):
        assert word in front
