"""Names of aiohttp that serving uses although they are private: known, few, and pinned to one minor version.

aiohttp has no public way to give a connection deadlines of its own, to answer what was not HTTP, or to answer
in another way when a handler fails. Whoever raises the pin in pyproject.toml reads those methods first.
"""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from pathlib import Path

from aiohttp import web, web_protocol
from aiohttp.base_protocol import BaseProtocol

import stackyard.base.serving

ROOT = Path(__file__).parents[4]
SERVING = Path(stackyard.base.serving.__file__).parent
# What each is for, by the class of aiohttp that has it.
USED = {
    web.RequestHandler: {
        "_close": "a connection that was answered early is closed, and not reused",
        "_current_request": "a request whose body does not come in time is found here",
        "_force_close": "a connection without a request is closed at once",
        "_handle_request": "a failure becomes one small answer, and each request is reported once",
        "_loop": "the clock of deadlines",
        "_messages": "requests that wait behind one whose body does not come",
        "_request_count": "the first request has a deadline of its own",
        "_request_in_progress": "a connection that answers is not idle",
        "_task_handler": "the task that answers is ended with the server",
        "_waiter": "a connection that waits for a request is idle",
    },
    BaseProtocol: {"_reading_paused": "a client that we do not read from is not late"},
    web.BaseRequest: {
        "_client_max_size": "the limit of a body is that of the server",
        "_payload_writer": "an answer in place of one that failed begins with a new writer",
        "_prepare_hook": "answers name us, and not aiohttp and its version",
        "_version": "what was not HTTP is answered with HTTP/1.1",
    },
}
IMPORTED = {"_ErrInfo": web_protocol}


def private_names() -> set[str]:
    """Return the private names that classes of aiohttp have."""
    sources = "".join(inspect.getsource(one) for one in USED)
    return set(re.findall(r"(?:self\.|def )(_[a-z]\w*)", sources))


def used_names() -> set[str]:
    """Return the names with an underscore that modules of serving read, set or override."""
    found = set()
    for path in SERVING.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Attribute(attr=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    found.add(name)
                case ast.ImportFrom(module=str(module), names=names) if module.startswith("aiohttp"):
                    found |= {one.name for one in names if one.name.startswith("_")}
    return found


def test_every_private_name_of_aiohttp_that_is_used_is_listed_with_its_reason() -> None:
    listed = {name for names in USED.values() for name in names} | IMPORTED.keys()
    assert used_names() & (private_names() | IMPORTED.keys()) == listed


def test_the_installed_aiohttp_has_every_one_of_them() -> None:
    for owner, names in USED.items():
        source = inspect.getsource(owner)
        assert {name for name in names if not re.search(rf"\b{name}\b", source)} == set()
    for name, module in IMPORTED.items():
        assert hasattr(module, name)


def test_the_project_takes_one_minor_version_of_aiohttp() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (pin,) = (one for one in project["dependencies"] if one.startswith("aiohttp"))
    lowest, highest = re.fullmatch(r"aiohttp>=3\.(\d+),<3\.(\d+)", pin).groups()  # type: ignore[union-attr]
    assert int(highest) == int(lowest) + 1
