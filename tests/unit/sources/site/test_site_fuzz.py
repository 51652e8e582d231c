"""Accidents in a valid site give the same meaning or an error with a place: no traceback, no silent drop."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import yaml
from tests.support.site import FULL, SEED, write_site
from tests.support.site_fuzz import fuzz

from stackyard.sources.site import ConfigResolver


@pytest.mark.parametrize("part", range(5))
def test_any_accident_is_survived_or_found(part: int, tmp_path: Path) -> None:
    valid, wrong = fuzz(tmp_path, count=100, seed=part)
    assert valid > 0
    assert wrong > valid / 4


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_ten_thousand_accidents_are_survived_or_found(tmp_path: Path) -> None:
    valid, wrong = fuzz(tmp_path, count=10_000, seed=2026)
    assert valid + wrong == 10_000
    assert valid > 0
    assert wrong > 0


def same_meaning(text: str, rng: random.Random) -> str:
    """Return another way to write the same."""
    data = yaml.load(text, Loader=yaml.CBaseLoader)
    ways = [
        text.replace("\n", "\r\n") if "|" not in text else text,
        "\ufeff" + text,
        "---\n" + text,
        f"# a note\n\n{text}\n# the end\n",
        f"_note: {{why: because, since: 2026-01-31}}\n{text}",
        "".join(
            f"{line}   # note\n" if line.strip() and "'" not in line else line + "\n"
            for line in text.splitlines()
        ),
        yaml.safe_dump(_typed(text), default_flow_style=True, width=10_000),
        yaml.safe_dump(_typed(text), sort_keys=isinstance(data, dict) and "vms" not in data),
    ]
    return rng.choice(ways)


def _typed(text: str) -> object:
    return yaml.load(text, Loader=yaml.CSafeLoader)


@pytest.mark.parametrize(
    ("files", "env", "node"), [(SEED, "dev", "pve"), (FULL, "shop", "pve1")], ids=["seed", "full"]
)
def test_another_way_to_write_the_same_means_the_same(
    files: dict[str, str], env: str, node: str, tmp_path: Path
) -> None:
    meant = ConfigResolver(write_site(tmp_path / "as-it-is", files))
    rng = random.Random(7)
    for number in range(12):
        other = {name: same_meaning(text, rng) for name, text in files.items()}
        read = ConfigResolver(write_site(tmp_path / str(number), other))
        # Keys of a mapping may come in another order.
        assert sorted(read.resolve_env(env, node).pop("ssh_keys")) == sorted(
            meant.resolve_env(env, node)["ssh_keys"]
        )
        assert read.resolve_env(env, node)["vms"] == meant.resolve_env(env, node)["vms"]
        assert read.resolve_desired(env, node).vms[0].cpu == meant.resolve_desired(env, node).vms[0].cpu
        assert read.resolve_desired(env, node).subnets == meant.resolve_desired(env, node).subnets
        assert read.list_specs() == meant.list_specs()
