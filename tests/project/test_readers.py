"""YAML and JSON from outside is read in one place, with limits: nobody else calls a reader that has none."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

SRC = Path(__file__).parents[2] / "src"
READERS = SRC / "stackyard" / "base" / "documents"
# Programs that run inside guests of the lab are not stackyard, and have the standard library alone.
INSIDE_GUESTS = SRC / "pvelab" / "machines" / "guest"

# What reads without limits: the name of a function, and the module that it belongs to.
RAW = {
    "yaml": {
        *("load", "load_all", "safe_load", "safe_load_all", "full_load", "unsafe_load", "compose"),
        *("compose_all", "parse", "scan", "CParser", "CSafeLoader", "SafeLoader", "CLoader", "Loader"),
        *("CBaseLoader", "BaseLoader", "FullLoader", "CFullLoader"),
    },
    "yaml._yaml": {"CParser"},
    "json": {"load", "loads", "JSONDecoder"},
    "orjson": {"loads"},
    "msgpack": {"unpack", "unpackb", "Unpacker", "load", "loads"},
    "ruamel.yaml": {"YAML", "load", "safe_load", "round_trip_load"},
    "pickle": {"load", "loads", "Unpickler"},
    "marshal": {"load", "loads"},
}
# Methods that do, whatever they are called on.
RAW_METHODS = {"model_validate_json", "raw_decode"}

# What has none of these uses none of those.
_WORDS = (*{name.partition(".")[0] for name in RAW}, *RAW_METHODS)

# Who may, and why.
ALLOWED = {
    "pvelab/machines/bubblewrap.py": "what bubblewrap itself writes",
    "pvelab/runtime/saved.py": "what the lab wrote, in its own memory",
    "pvelab/server/facts/__init__.py": "a file of this package",
    "pvelab/ssh/shell_session.py": "what the line itself wrote",
    "pvelab/world/sqlite.py": "what the lab wrote, in its own database",
    "stackyard/base/process/worker.py": "the other end is this program",
    "stackyard/base/yamledit.py": "checked against the limits before ruamel.yaml reads it",
    "stackyard/desired/model.py": "reads what `to_json` wrote; pydantic stops at 200 levels",
    "stackyard/bpg_schema/__init__.py": "a file of this package",
    "stackyard/provider/values.py": "msgpack of the engine that we started; its reader stops at 1,024 levels",
    "stackyard/secrets/formats/json_layout.py": "one word of a text that was read within limits",
    "stackyard/sources/deployment/schema.py": "a file of this package",
    "stackyard/sources/stacks/cache.py": "what this program wrote, of a bounded size; git does not track it",
    "stackyard/sources/deployment/text.py": "one key of a text that was read within limits",
    "stackyard/state/document.py": "a state that was read within limits",
}


def raw_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield every use of a reader without limits: `module.name`, or a name that was imported from it."""
    modules = {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name in RAW
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in RAW:
            yield from (
                (node.lineno, f"{node.module}.{alias.name}")
                for alias in node.names
                if alias.name in RAW[node.module]
            )
        elif isinstance(node, ast.Attribute):
            module = modules.get(node.value.id) if isinstance(node.value, ast.Name) else None
            if node.attr in RAW_METHODS or (module is not None and node.attr in RAW[module]):
                yield node.lineno, node.attr if module is None else f"{module}.{node.attr}"


@functools.cache
def found() -> dict[str, list[str]]:
    uses: dict[str, list[str]] = {}
    for path in sorted(SRC.rglob("*.py")):
        if path.is_relative_to(READERS) or path.is_relative_to(INSIDE_GUESTS):
            continue
        text = path.read_text()
        if not any(word in text for word in _WORDS):
            continue
        for line, name in raw_names(ast.parse(text)):
            uses.setdefault(str(path.relative_to(SRC)), []).append(f"line {line}: {name}")
    return uses


def test_texts_from_outside_are_read_within_limits() -> None:
    assert {name: uses for name, uses in found().items() if name not in ALLOWED} == {}


def test_nobody_is_allowed_what_they_do_not_need() -> None:
    assert set(ALLOWED) - set(found()) == set()


def test_a_reader_without_limits_is_seen_however_it_is_called() -> None:
    written = (
        "import yaml, orjson as fast\n"
        "from json import loads\n"
        "yaml.load(a, Loader=yaml.CSafeLoader)\n"
        "fast.loads(b)\n"
        "Model.model_validate_json(c)\n"
        "other.loads(d)\n"
    )
    assert sorted(raw_names(ast.parse(written))) == [
        (2, "json.loads"),
        (3, "yaml.CSafeLoader"),
        (3, "yaml.load"),
        (4, "orjson.loads"),
        (5, "model_validate_json"),
    ]
