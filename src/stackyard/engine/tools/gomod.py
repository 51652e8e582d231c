"""The go.mod from which a program of someone else's module is built.

`go install module@version` refuses a module whose go.mod has `replace` lines, and OpenTofu's has one that it
needs. So the program is built from a small module of ours that requires theirs and repeats what only counts
in the main module: the `replace`, `exclude` and `godebug` lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.documents.jsontext import parse_json
from stackyard.engine.tools.methods import ToolBuildError, last_lines

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.engine.tools.golang import Go

__all__ = ["GoProgram", "Upstream", "derive", "look_up"]

_BUILD_MODULE = "stackyard/build"


@dataclass(frozen=True, slots=True, kw_only=True)
class GoProgram:
    """A program in a Go module.

    Attributes:
        module: The module's path.
        package: The path of the program's package.
        linker_flags: What its makers give the linker when they release it.
    """

    module: str
    package: str
    linker_flags: str = "-s -w"


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """What a version of a module says in its own go.mod.

    Attributes:
        go: The oldest Go that it can be built with.
        lines: The lines that count only in the main module.
    """

    go: str
    lines: tuple[str, ...]


async def look_up(go: Go, program: GoProgram, version: str, folder: Path) -> Upstream:
    """Return what a version of the program's module says in its go.mod.

    Args:
        go: Any Go toolchain.
        program: The program.
        version: The version as Go spells it, such as `v1.12.6`.
        folder: A folder to work in.

    Raises:
        ToolBuildError: There is no such version, or it cannot be reached.
    """
    wanted = f"{program.module}@{version}"
    # The command fails for a module that needs a newer Go, and still says where it put the module's go.mod.
    answer = await go.run("mod", "download", "-json", wanted, cwd=folder, check=False)
    download = _document(answer.stdout, wanted)
    if not (path := download.get("GoMod")):
        reason = download.get("Error") or last_lines(answer.stderr)
        raise ToolBuildError(f"{wanted} cannot be downloaded: {reason}")
    described = await go.run("mod", "edit", "-json", str(path), cwd=folder)
    return _read(_document(described.stdout, wanted), wanted)


def derive(program: GoProgram, version: str, upstream: Upstream) -> str:
    """Return the text of our go.mod, before Go itself completes it."""
    lines = (
        f"module {_BUILD_MODULE}",
        f"go {upstream.go}",
        *upstream.lines,
        f"require {program.module} {version}",
        f"tool {program.package}",
    )
    return "\n\n".join(lines) + "\n"


def _read(document: dict[str, Any], wanted: str) -> Upstream:
    """Read the JSON view of a go.mod."""
    lines = [f"godebug {entry['Key']}={entry['Value']}" for entry in document.get("GoDebug") or ()]
    lines += [f"exclude {entry['Path']} {entry['Version']}" for entry in document.get("Exclude") or ()]
    for entry in document.get("Replace") or ():
        if "Version" not in entry["New"]:
            raise ToolBuildError(
                f"{wanted} cannot be built from the module alone: it replaces {entry['Old']['Path']} "
                f"by the folder {entry['New']['Path']}."
            )
        lines.append(f"replace {_format_module(entry['Old'])} => {_format_module(entry['New'])}")
    return Upstream(go=str(document.get("Go", "1.24")), lines=tuple(lines))


def _format_module(module: dict[str, str]) -> str:
    return " ".join(filter(None, (module["Path"], module.get("Version"))))


def _document(text: str, wanted: str) -> dict[str, Any]:
    try:
        document = parse_json(text or "{}")
    except ValueError as err:
        raise ToolBuildError(f"Go did not describe {wanted} as JSON, but said: {text[:200]}") from err
    return document if isinstance(document, dict) else {}
