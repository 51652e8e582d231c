"""The programs that `tools install` installs: a further one is a row here and one in the catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.engine.tools import shipped
from stackyard.engine.tools.catalogue import OPA, TOFU, Tool
from stackyard.engine.tools.gobuild import TOFU_PROGRAM, GoModule
from stackyard.engine.tools.gomod import GoProgram
from stackyard.engine.tools.release import TOFU_RELEASES, ReleaseArchive, Releases

if TYPE_CHECKING:
    from stackyard.engine.tools.methods import InstallMethod

__all__ = ["INSTALLABLE", "OPA_INSTALL", "TOFU_INSTALL", "InstallableTool"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallableTool:
    """A program that can be installed as a managed copy.

    Attributes:
        tool: The program.
        label: What users call it.
        version: The version that stackyard is tested with, whose module files are below `shipped`.
        releases: Where its project releases it.
        program: What to build where the releases cannot be reached.
        elsewhere: How else to get it, in words for the user.
    """

    tool: Tool
    label: str
    version: str
    releases: Releases
    program: GoProgram
    elsewhere: str

    @property
    def name(self) -> str:
        """The name of the program."""
        return self.tool.name

    def list_ways(self, releases_url: str | None = None) -> tuple[InstallMethod, ...]:
        """Return how to get it, the best way first.

        Args:
            releases_url: Where the releases are; the mirror of the settings, else the project's own.
        """
        build = GoModule(
            name=self.name,
            label=self.label,
            program=self.program,
            shipped_version=self.version,
            shipped_files=shipped.module_files(self.name),
        )
        return (ReleaseArchive(base_url=releases_url, releases=self.releases), build)


TOFU_INSTALL = InstallableTool(
    tool=TOFU,
    label="OpenTofu",
    version=shipped.DEFAULT_TOFU_VERSION,
    releases=TOFU_RELEASES,
    program=TOFU_PROGRAM,
    elsewhere="Install OpenTofu with your system's packages, or name a program with STACKYARD_TOFU; "
    "`stackyard tools list` shows what is found.",
)

OPA_INSTALL = InstallableTool(
    tool=OPA,
    label="OPA",
    version=shipped.DEFAULT_OPA_VERSION,
    releases=Releases(
        program="opa",
        url="https://github.com/open-policy-agent/opa/releases/download",
        variable="STACKYARD_OPA_RELEASES_URL",
        file="opa_{platform}_static",
        sums="{file}.sha256",
    ),
    program=GoProgram(
        module="github.com/open-policy-agent/opa",
        package="github.com/open-policy-agent/opa",
    ),
    elsewhere="Put an `opa` of version 1.0 or newer on PATH; `stackyard tools list` shows what is found.",
)

INSTALLABLE: dict[str, InstallableTool] = {row.name: row for row in (TOFU_INSTALL, OPA_INSTALL)}
