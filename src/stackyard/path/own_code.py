"""Own code of a site in the configuration of an env: a module for each folder, its values and its outputs.

The folder of the engine has a link to each folder of code. OpenTofu follows it when it installs the module:
`path.module`, relative sources and the places in messages are those of the user's own folder, while the
configuration that is written is the same on every machine.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.desired import Secret
from stackyard.render import Rendered, Variable, render_guests
from stackyard.render.terms import expression, literal, variable
from stackyard.sources.site.own_code.find import GIVEN_VARIABLES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stackyard.base.errors import Location
    from stackyard.desired import Desired
    from stackyard.sources.site.own_code import CodeFolder

__all__ = ["CODE_FILE", "LINKS", "OwnCode", "add_own_code", "seal_own_code"]

CODE_FILE = "own-code.tf.json"
# The links that the folder of the engine may have.
LINKS = ("own", "extra")
# How the secrets of own code are named among those of the site.
_SECRETS = "variables"
# A line of our file that begins an output or a module.
_SECOND_LEVEL = re.compile(r'^ {4}"([^"]+)": \{')


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCode:
    """The own code that joins the configuration of one env.

    Attributes:
        folders: The folders, each a module.
        env: What the modules are told of the env: its name and node.
        secrets: The names of the variables for which the site has secret values.
    """

    folders: tuple[CodeFolder, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    secrets: frozenset[str] = frozenset()

    @property
    def declares(self) -> bool:
        """Whether anything is in it that an engine would make or show."""
        return any(folder.declares for folder in self.folders)

    @property
    def prefixes(self) -> tuple[str, ...]:
        """How the addresses of everything in it begin."""
        return tuple(f"module.{folder.label}." for folder in self.folders)

    def describe_needs(self) -> str:
        """Return what changes when other providers or modules have to be installed; empty without code."""
        needs = sorted({need for folder in self.folders for need in folder.needs})
        return hashlib.sha256("\0".join(needs).encode()).hexdigest()[:32] if needs else ""

    def locate_output(self, lines: list[str]) -> Location | None:
        """Return where an output is declared.

        Args:
            lines: The lines of our file as far as one that belongs to the output.
        """
        places = {one.name: one.where for folder in self.folders for one in folder.outputs}
        names = (found[1] for line in reversed(lines) if (found := _SECOND_LEVEL.match(line)))
        return places.get(next(names, ""))


def add_own_code(rendered: Rendered, code: OwnCode, desired: Desired) -> Rendered:
    """Return a configuration with a module for each folder of own code.

    Args:
        rendered: The configuration of the model.
        code: The code.
        desired: The model.
    """
    if not code.folders:
        return rendered
    document: dict[str, Any] = {
        "locals": {"guests": render_guests(desired), "env": {k: literal(v) for k, v in code.env}},
        "module": {folder.label: _module(folder, code) for folder in code.folders},
        "output": {
            output.name: {
                "value": expression(f"module.{folder.label}.{output.name}"),
                **({"sensitive": True} if output.is_sensitive else {}),
            }
            for folder in code.folders
            for output in folder.outputs
        },
    }
    known = {one.name for one in rendered.variables}
    variables = [one for one in _secret_variables(code) if one.name not in known]
    document["variable"] = {one.name: {"type": "string", "sensitive": True} for one in variables}
    kept = {key: value for key, value in document.items() if value}
    text = orjson.dumps(kept, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)
    links: Mapping[str, Path] = {folder.label: folder.folder for folder in code.folders}
    return replace(
        rendered,
        files={**rendered.files, CODE_FILE: text},
        variables=(*rendered.variables, *variables),
        links=links,
    )


def seal_own_code(rendered: Rendered, code: OwnCode) -> Rendered:
    """Return a configuration with the fingerprint of the own code as it is now.

    Raises:
        FileError: A file of it cannot be read.
    """
    digests = {folder.label: folder.digest() for folder in code.folders}
    return replace(rendered, linked=digests)


def _module(folder: CodeFolder, code: OwnCode) -> dict[str, Any]:
    declared = {one.name for one in folder.variables}
    given = {name: expression(f"local.{name}") for name in GIVEN_VARIABLES if name in declared}
    secret = {name: expression(f"var.{variable(_secret(name))}") for name in declared & code.secrets}
    return {"source": f"./{folder.label}", **secret, **given}


def _secret(name: str) -> Secret:
    return Secret(secret=f"{_SECRETS}.{name}")


def _secret_variables(code: OwnCode) -> list[Variable]:
    declared = {one.name for folder in code.folders for one in folder.variables}
    names = sorted((declared & code.secrets) - set(GIVEN_VARIABLES))
    return [Variable(name=variable(_secret(name)), secret=_secret(name)) for name in names]
