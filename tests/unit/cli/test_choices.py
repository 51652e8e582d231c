"""The choices that a help shows without loading who has them are the ones that there are."""

from __future__ import annotations

from pathlib import Path

from stackyard.cli.commands import site
from stackyard.cli.path_options import PROVIDERS
from stackyard.path.settings import ProviderChoice, RunSettings
from stackyard.sources.site.names import KINDS
from stackyard.sources.site.schema_names import ENTITIES
from stackyard.sources.store import ChosenStore


def test_the_providers_are_those_of_a_run(tmp_path: Path) -> None:
    assert list(PROVIDERS) == [choice.value for choice in ProviderChoice]
    assert RunSettings(store=ChosenStore(base=tmp_path)).provider == PROVIDERS[0]


def test_the_kinds_are_those_of_a_site() -> None:
    assert site.KINDS == KINDS


def test_the_entities_are_those_that_have_a_schema() -> None:
    assert list(site.ENTITIES) == list(ENTITIES)
