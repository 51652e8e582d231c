"""Whatever a file of `hypervisors/` holds, it is a model or has findings; nothing else happens."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import hypothesis
import yaml
from hypothesis import strategies
from tests.support.hypervisors import FILES, SITE
from tests.support.site import write_site
from tests.support.site_fuzz import WORDS, mutated

from stackyard.base.errors import InvalidInputError
from stackyard.render import render
from stackyard.sources.hypervisor.build import build_desired
from stackyard.sources.hypervisor.sections import CLUSTER, NODE
from stackyard.sources.site import ConfigResolver, Site
from stackyard.sources.site.explain_hypervisor import explain_hypervisor

KEYS = sorted(
    {key for section in (*CLUSTER, *NODE) for key in section.path}
    | {"node", "api", "type", "map", "rules", "entries", "secret", "address", "gateway", "ports", "schedule"}
    | {"path", "role_id", "user_id", "cidr", "vnet", "zone", "content", "storage", "vmid", "nodes", "name"}
)
VALUES = strategies.recursive(
    strategies.none()
    | strategies.booleans()
    | strategies.integers()
    | strategies.floats(allow_nan=False)
    | strategies.sampled_from(
        [*WORDS, "vmbr0", "vmbr0.20", "nfs", "192.0.2.1/24", "a@pve", "/storage/x", "in"]
    )
    | strategies.text(max_size=8),
    lambda inner: (
        strategies.lists(inner, max_size=3)
        | strategies.dictionaries(
            strategies.sampled_from(KEYS) | strategies.text(max_size=6), inner, max_size=4
        )
    ),
    max_leaves=20,
)


def check(folder: Path, file: str, text: str) -> None:
    """Check that a text is read, and that a file without findings can be explained and rendered."""
    (folder / file).write_bytes(text.encode(errors="surrogatepass"))
    site = Site.open(folder)
    for found in site.found:
        assert found.where is not None, found
        assert found.detail, found
    name = Path(file).stem
    try:
        resolver = ConfigResolver(site)
        loaded = resolver.hypervisor(name)
    except InvalidInputError:
        return
    explain_hypervisor(resolver, name)
    render(build_desired(loaded.model))


def _nested(data: Any, rng: random.Random) -> None:
    """Put a wrong value somewhere into values that are right."""
    while isinstance(data, dict | list) and data:
        key = rng.choice(list(data) if isinstance(data, dict) else range(len(data)))
        if not isinstance(data[key], dict | list) or rng.random() < 0.2:
            data[key] = rng.choice((*WORDS, None, 5, True, [], {}, {"secret": "x"}, [None], ["a", {}]))
            return
        data = data[key]


@hypothesis.given(document=strategies.dictionaries(strategies.sampled_from(KEYS), VALUES, max_size=6))
@hypothesis.settings(
    max_examples=25, deadline=None, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture]
)
def test_any_document_is_a_model_or_has_findings(tmp_path: Path, document: dict[str, Any]) -> None:
    write_site(tmp_path, {**SITE, **FILES})
    check(tmp_path, "hypervisors/home.yaml", yaml.safe_dump(document, allow_unicode=True))


@hypothesis.given(seed=strategies.integers(min_value=0, max_value=2**32))
@hypothesis.settings(
    max_examples=25, deadline=None, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture]
)
def test_a_file_with_an_accident_is_a_model_or_has_findings(tmp_path: Path, seed: int) -> None:
    write_site(tmp_path, {**SITE, **FILES})
    rng = random.Random(seed)
    file = rng.choice(sorted(FILES))
    check(tmp_path, file, mutated(FILES[file], rng))
    data = yaml.safe_load(FILES[file])
    for _ in range(rng.randrange(1, 4)):
        _nested(data, rng)
    check(tmp_path, file, yaml.safe_dump(data, allow_unicode=True))
