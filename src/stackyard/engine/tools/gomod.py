"""The go.mod from which a program of someone else's module is built.

`go install module@version` refuses a module whose go.mod has `replace` lines, and OpenTofu's has one that it
needs. So the program is built from a small module of ours that requires theirs and repeats what only counts
in the main module: the `replace`, `exclude` and `godebug` lines. A `replace` by a folder of the same
repository, as Talos has one, means the module that is released from that folder at the same version, or at
the one that the same go.mod requires. The modules of Kubernetes are released at versions of their own.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stackyard.base.documents.jsontext import parse_json
from stackyard.engine.tools.methods import ToolBuildError, last_lines

if TYPE_CHECKING:
    from stackyard.engine.tools.golang import Go
    from stackyard.engine.version import Version

__all__ = ["GoProgram", "Upstream", "derive", "look_up", "read_sums"]

_BUILD_MODULE = "stackyard/build"
# What a go.mod requires where only the folder of its `replace` line counts.
_NO_VERSION = "v0.0.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class GoProgram:
    """A program in a Go module.

    Attributes:
        module: The module's path.
        package: The path of the program's package.
        linker_flags: What its makers give the linker when they release it, with `{version}`.
        staged_version: The version of the modules that its go.mod replaces by folders, with `{minor}` and
            `{patch}`, where these modules are released with versions of their own.
        tags: What its makers switch on when they build it.
        uses_c: Whether parts of it are in C, which takes a C compiler.
    """

    module: str
    package: str
    linker_flags: str = "-s -w"
    staged_version: str = ""
    tags: tuple[str, ...] = ()
    uses_c: bool = False

    def at(self, version: Version) -> GoProgram:
        """Return it for one version."""
        return replace(self, linker_flags=self.linker_flags.replace("{version}", str(version)))


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
    # It fails for a module that needs a newer Go, and still says where it put the module's go.mod.
    path = await _download(go, wanted, folder, "GoMod")
    described = await go.run("mod", "edit", "-json", path, cwd=folder)
    return _read(_document(described.stdout, wanted), program, version)


async def read_sums(go: Go, program: GoProgram, version: str, folder: Path) -> str:
    """Return the go.sum of a version of the program's module, which is as checked as its code is.

    Args:
        go: A Go that is new enough for the module.
        program: The program.
        version: The version as Go spells it.
        folder: A folder to work in.

    Raises:
        ToolBuildError: The module cannot be downloaded.
    """
    sources = await _download(go, f"{program.module}@{version}", folder, "Dir")
    sums = Path(sources) / "go.sum"
    return sums.read_text(encoding="utf-8") if sums.is_file() else ""


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


def _read(document: dict[str, Any], program: GoProgram, version: str) -> Upstream:
    """Read the JSON view of the go.mod of a program's module at a version."""
    module = program.module
    required = {entry["Path"]: entry["Version"] for entry in document.get("Require") or ()}
    lines = [f"godebug {entry['Key']}={entry['Value']}" for entry in document.get("GoDebug") or ()]
    lines += [f"exclude {entry['Path']} {entry['Version']}" for entry in document.get("Exclude") or ()]
    for entry in document.get("Replace") or ():
        old, new = entry["Old"], entry["New"]
        if "Version" in new:
            lines.append(f"replace {_format_module(old)} => {_format_module(new)}")
        elif old["Path"] == posixpath.join(module, posixpath.normpath(new["Path"])):
            lines.append(f"require {old['Path']} {version}")
        elif program.staged_version:
            _, minor, patch = version.split(".", 2)
            staged = program.staged_version.format(minor=minor, patch=patch)
            lines.append(f"replace {old['Path']} => {old['Path']} {staged}")
        elif required.get(old["Path"]) == _NO_VERSION:
            raise ToolBuildError(
                f"{module}@{version} cannot be built from the module alone: it replaces {old['Path']} "
                f"by the folder {new['Path']}."
            )
    return Upstream(go=str(document.get("Go", "1.24")), lines=tuple(lines))


async def _download(go: Go, wanted: str, folder: Path, place: str) -> str:
    """Download a module; return where its go.mod is (`GoMod`), or its files (`Dir`)."""
    answer = await go.run("mod", "download", "-json", wanted, cwd=folder, check=False)
    download = _document(answer.stdout, wanted)
    if not (path := download.get(place)):
        reason = download.get("Error") or last_lines(answer.stderr)
        raise ToolBuildError(f"{wanted} cannot be downloaded: {reason}")
    return str(path)


def _format_module(module: dict[str, str]) -> str:
    return " ".join(filter(None, (module["Path"], module.get("Version"))))


def _document(text: str, wanted: str) -> dict[str, Any]:
    try:
        document = parse_json(text or "{}")
    except ValueError as err:
        raise ToolBuildError(f"Go did not describe {wanted} as JSON, but said: {text[:200]}") from err
    return document if isinstance(document, dict) else {}
