"""Mutations of valid sites, and what must hold of whatever they are read as."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path
from typing import Any

import yaml
from tests.support.site import FULL, SEED, write_site

from stackyard.base.diagnostics import Diagnostics
from stackyard.base.errors import InvalidInputError
from stackyard.sources.manifest.read import check_damaged, read_manifest
from stackyard.sources.site import ConfigResolver, Site
from stackyard.sources.site.document import parse_document
from stackyard.sources.site.explain import explain_env

WORDS = (
    *(
        "yes",
        "null",
        "~",
        "0755",
        "1:30",
        "2026-01-31",
        "[]",
        "{}",
        "''",
        "'",
        '"',
        "&a",
        "*a",
        "<<",
        "!x",
        "!!int",
    ),
    *(
        "- ",
        ": ",
        "#",
        "|",
        ">",
        "%",
        "@",
        "`",
        "\t",
        "\r\n",
        "\x00",
        "\x85",
        "\u2028",
        "\ufeff",
        "\ud7ff",
        "🦊",
        "-1",
    ),
    *(
        "99999999999999999999",
        "1e400",
        ".nan",
        "10.0.0.300/24",
        "::1/128",
        "fe80::1%eth0/64",
        "a" * 5000,
        "..",
        "/",
    ),
)


def mutated(text: str, rng: random.Random) -> str:
    """Return a text that differs from another by one to three small accidents."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        text = rng.choice(ACCIDENTS)(text, rng)
    return text


def _cut(text: str, rng: random.Random) -> str:
    return text[: rng.randrange(len(text) + 1)]


def _drop_characters(text: str, rng: random.Random) -> str:
    start = rng.randrange(len(text) + 1)
    return text[:start] + text[start + rng.randrange(1, 4) :]


def _insert(text: str, rng: random.Random) -> str:
    start = rng.randrange(len(text) + 1)
    return text[:start] + rng.choice(WORDS) + text[start:]


def _swap(text: str, rng: random.Random) -> str:
    start = rng.randrange(len(text) + 1)
    return text[:start] + text[start : start + 2][::-1] + text[start + 2 :]


def _change_character(text: str, rng: random.Random) -> str:
    start = rng.randrange(len(text) + 1)
    return text[:start] + chr(rng.choice((rng.randrange(32, 127), rng.randrange(0x2FFF)))) + text[start + 1 :]


def _lines(text: str, rng: random.Random) -> str:
    lines = text.splitlines(keepends=True) or [""]
    at = rng.randrange(len(lines))
    action = rng.choice(("drop", "double", "indent", "dedent", "move", "value"))
    if action == "drop":
        lines.pop(at)
    elif action == "double":
        lines.insert(at, lines[at])
    elif action == "indent":
        lines[at] = "  " + lines[at]
    elif action == "dedent":
        lines[at] = lines[at].removeprefix("  ")
    elif action == "move":
        lines.insert(rng.randrange(len(lines)), lines.pop(at))
    elif ": " in lines[at]:
        lines[at] = f"{lines[at].partition(': ')[0]}: {rng.choice(WORDS)}\n"
    return "".join(lines)


ACCIDENTS = (_cut, _drop_characters, _insert, _swap, _change_character, _lines, _lines)


class Fuzzed:
    """A valid site on disk, of which one file at a time is mutated."""

    def __init__(self, folder: Path, files: dict[str, str]) -> None:
        self._folder = write_site(folder, files)
        self._files = files

    def check_one(self, rng: random.Random) -> bool:
        """Mutate a file, check what must hold, put it back, and tell whether the site was still valid."""
        name = rng.choice(sorted(self._files))
        text = mutated(self._files[name], rng)
        path = self._folder / name
        path.write_bytes(text.encode(errors="surrogatepass"))
        try:
            return self._check(name, text)
        finally:
            path.write_text(self._files[name])

    def _check(self, name: str, text: str) -> bool:
        site = Site.open(self._folder)
        for found in site.found:
            assert found.where is not None, (name, text, found)
            assert found.where.path, (name, text, found)
            assert found.detail, (name, text, found)
        if site.found.errors:
            check_others(site)
            return False
        if name != "secrets.yaml":
            check_nothing_is_dropped(text)
        resolver = ConfigResolver(site)
        for env in resolver.list_envs():
            node = site.envs[env].model.node or resolver.list_nodes()[0]
            # What was found valid resolves without an error.
            resolver.resolve_env(env, node)
            resolver.resolve_ansible_vars(env)
            resolver.resolve_desired(env, node)
            explain_env(resolver, env, node)
        for spec in resolver.list_specs():
            resolver.resolve_spec_vars(spec)
        return True


def check_others(site: Site) -> None:
    """Check that what a broken site says beside its mistake is refused or resolved, and never a defect."""
    found = Diagnostics()
    for manifest in site.manifests.values():
        read_manifest(site, manifest, found)
    for name in site.damaged.get("manifests", ()):
        check_damaged(site, name, found)
    with contextlib.suppress(InvalidInputError):
        resolver = ConfigResolver(site)
        for env in (*site.envs, *site.broken["envs"]):
            for node in site.nodes:
                with contextlib.suppress(InvalidInputError):
                    resolver.resolve_desired(env, node)
                    resolver.resolve_env(env, node)
                    resolver.resolve_ansible_vars(env)


def check_nothing_is_dropped(text: str) -> None:
    """Check that what was read has every key and value that another reader finds in the text."""
    document = parse_document(text, "f.yaml", Diagnostics())
    assert document is not None, text
    # The other reader keeps every scalar as the text that it is.
    other = yaml.load(text.removeprefix("\ufeff"), Loader=yaml.CBaseLoader)
    _compare(document.data, other, text)


def _compare(ours: Any, other: Any, text: str) -> None:
    if isinstance(other, dict):
        kept = {key: value for key, value in other.items() if not key.startswith("_")}
        if "<<" in kept:
            return  # The other reader does not merge.
        assert isinstance(ours, dict), text
        assert set(ours) == set(kept), text
        for key, value in kept.items():
            _compare(ours[key], value, text)
    elif isinstance(other, list):
        assert isinstance(ours, list), text
        assert len(ours) == len(other), text
        for mine, theirs in zip(ours, other, strict=True):
            _compare(mine, theirs, text)
    elif isinstance(ours, str):
        assert ours == other, text
    else:
        assert not isinstance(ours, dict | list), text


def fuzz(folder: Path, *, count: int, seed: int) -> tuple[int, int]:
    """Check many mutations, and return how many sites were still valid and how many were not."""
    rng = random.Random(seed)
    sites = [Fuzzed(folder / "seed", SEED), Fuzzed(folder / "full", FULL)]
    valid = sum(rng.choice(sites).check_one(rng) for _ in range(count))
    return valid, count - valid
