"""Each noun works in a program that has loaded nothing yet; most other tests fork one that has loaded all."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.cli import fresh
from tests.support.controller import make_site

# In a site with specs and nothing else: the status, and a word of the answer. What the tutorials and some
# of the pages run is started again there.
STARTS = [
    ("create -M nothing -H nowhere", 65, "E-"),
    ("deployment history", 65, "E-DEPLOYMENT-MISSING"),
    ("explain nothing", 65, "E-"),
    ("import env:nothing", 65, "E-"),
    ("inventory show env:nothing", 64, "E-"),
    ("manifest list", 0, "manifests"),
    ("plan nothing", 64, "E-"),
    ("scenario list", 0, "bootstrap-install"),
    ("serve status --port 1", 1, "running"),
    ("serve token list", 0, "tokens"),
    ("site validate", 0, ""),
    ("spec list", 0, "base"),
]


@pytest.mark.parametrize(("line", "status", "word"), STARTS, ids=[line for line, _, _ in STARTS])
def test_a_command_starts_from_nothing(line: str, status: int, word: str, tmp_path: Path) -> None:
    ended = fresh(*line.split(), "--json", cwd=make_site(tmp_path))
    assert ended.status == status, ended
    assert "E-INTERNAL" not in ended.stdout
    assert word in ended.stdout
    assert ended.document


# Something that only a search for garbage finds, as there are thousands in a program that has loaded much.
LEFT = """
import os, sys
class Left:
    def __del__(self):
        os.write(2, b"found")
left = Left()
left.itself = left
from stackyard.__main__ import run
run()
"""


def test_a_program_that_ends_does_not_look_for_garbage() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LEFT, "--version"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("stackyard ")


# Shows the help of every verb, in the one process, and says which verb was the first to load what.
SHOW_EVERY_HELP = """
import contextlib, io, json, sys
import click
from stackyard.cli.main import main
from stackyard.cli.root import root

heavy, shown, loaded = sys.argv[1:], [], {}

def is_heavy(module):
    return any(module == name or module.startswith(name + ".") for name in heavy)

def show(words):
    with contextlib.redirect_stdout(io.StringIO()) as said:
        status = main([*words, "--help"])
    assert status == 0 and "Usage: " in said.getvalue(), words
    shown.append(" ".join(words))
    for module in filter(is_heavy, set(sys.modules)):
        loaded.setdefault(module, shown[-1])

def walk(group, words):
    for name in {*group.list_commands(click.Context(group)), *group._later}:
        command = group.get_command(click.Context(group), name)
        show([*words, name])
        if isinstance(command, click.Group):
            walk(command, [*words, name])

walk(root, [])
print(json.dumps({"shown": shown, "loaded": loaded}))
"""
# What no help needs: libraries that are slow to load, and the packages that do the work (`scenario` has the
# names of options that were renamed).
MACHINERY = (
    "aiohttp asyncio asyncssh boto3 botocore cryptography grpc pydantic pydantic_core rich ssl yaml pvelab "
    "stackyard.clients stackyard.controller stackyard.desired stackyard.engine stackyard.guard "
    "stackyard.inventory stackyard.operator stackyard.path stackyard.provider stackyard.render "
    "stackyard.secrets stackyard.sources stackyard.state stackyard.cli.runs"
).split()


def test_the_help_of_no_verb_loads_the_machinery() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", SHOW_EVERY_HELP, *MACHINERY],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    answer = json.loads(ended.stdout)
    assert {"plan", "serve", "state serve", "lab up", "inner-run"} <= set(answer["shown"])
    assert answer["loaded"] == {}
