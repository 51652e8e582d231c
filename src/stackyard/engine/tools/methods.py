"""The seam between installing a tool and the ways to get it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from stackyard.base.errors import StackyardError

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.base.events import Emit
    from stackyard.engine.version import Version

__all__ = ["InstallMethod", "InstallMethodFailedError", "ToolBuildError", "ToolReleaseError", "last_lines"]


class InstallMethodFailedError(StackyardError):
    """One way to get a tool did not work; the next one is tried."""

    code = "E-TOOL-WAY"
    summary = "One way to get a tool did not work"
    default_remedy = (
        "The next way is tried by itself; if none works, correct the reason given for one of them."
    )


class ToolReleaseError(InstallMethodFailedError):
    """The release archive of a tool cannot be downloaded, or is not what its published sums say."""

    code = "E-TOOL-RELEASE"
    summary = "The release archive cannot be used"
    default_remedy = "Check the network, and STACKYARD_RELEASES_URL if you use a mirror."


class ToolBuildError(InstallMethodFailedError):
    """A tool cannot be built from its Go module."""

    code = "E-TOOL-BUILD"
    summary = "The tool cannot be built from its source"
    default_remedy = "Check the network, and the GOPROXY and PIP_INDEX_URL settings if you use mirrors."


class InstallMethod(Protocol):
    """A way to get a program."""

    @property
    def title(self) -> str:
        """The way in words, as the error that lists all of them shows it."""

    async def provide(self, version: Version, folder: Path, emit: Emit) -> Path:
        """Make the program of this version somewhere below an empty folder, and return its path.

        Nothing is left outside the folder that the next try would trip over, and nothing is running any more
        when this ends, in whatever way it does.

        Raises:
            InstallMethodFailedError: This method does not work here and now.
            FileError: The folder cannot be written; no other way would do better.
        """


def last_lines(text: str, lines: int = 12) -> str:
    """Return the last lines of what Go or pip said, where it says what went wrong.

    Lines of a single word are left out: these are the packages that `go build -v` names as it continues.
    """
    sentences = [line for line in text.splitlines() if " " in line.strip()]
    return "\n".join(sentences[-lines:])
