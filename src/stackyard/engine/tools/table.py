"""The programs that `tools install` installs: a further one is a row here and one in the catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.engine.tools import shipped
from stackyard.engine.tools.catalogue import (
    ETCD,
    GITEA,
    KUBE_APISERVER,
    OPA,
    SOPS,
    TALOSCTL,
    TASK,
    TOFU,
    Tool,
)
from stackyard.engine.tools.gobuild import TOFU_PROGRAM, GoModule
from stackyard.engine.tools.gomod import GoProgram
from stackyard.engine.tools.release import TOFU_RELEASES, ReleaseArchive, Releases

if TYPE_CHECKING:
    from stackyard.engine.tools.methods import InstallMethod

__all__ = [
    "ETCD_INSTALL",
    "GITEA_INSTALL",
    "GROUPS",
    "INSTALLABLE",
    "KUBE_APISERVER_INSTALL",
    "OPA_INSTALL",
    "SOPS_INSTALL",
    "TALOSCTL_INSTALL",
    "TASK_INSTALL",
    "TOFU_INSTALL",
    "InstallableTool",
]


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
        file="opa_{system}_{architecture}_static",
        sums="{file}.sha256",
    ),
    program=GoProgram(
        module="github.com/open-policy-agent/opa",
        package="github.com/open-policy-agent/opa",
    ),
    elsewhere="Put an `opa` of version 1.0 or newer on PATH; `stackyard tools list` shows what is found.",
)

TALOSCTL_INSTALL = InstallableTool(
    tool=TALOSCTL,
    label="talosctl",
    version=shipped.DEFAULT_TALOSCTL_VERSION,
    releases=Releases(
        program="talosctl",
        url="https://github.com/siderolabs/talos/releases/download",
        variable="STACKYARD_TALOSCTL_RELEASES_URL",
        file="talosctl-{system}-{architecture}",
        sums="sha256sum.txt",
    ),
    program=GoProgram(
        module="github.com/siderolabs/talos",
        package="github.com/siderolabs/talos/cmd/talosctl",
    ),
    elsewhere="Put `talosctl` 1.12 or newer on PATH; `stackyard tools list` shows what is found.",
)

SOPS_INSTALL = InstallableTool(
    tool=SOPS,
    label="SOPS",
    version=shipped.DEFAULT_SOPS_VERSION,
    releases=Releases(
        program="sops",
        url="https://github.com/getsops/sops/releases/download",
        variable="STACKYARD_SOPS_RELEASES_URL",
        file="sops-v{version}.{system}.{architecture}",
        sums="sops-v{version}.checksums.txt",
    ),
    program=GoProgram(
        module="github.com/getsops/sops/v3",
        package="github.com/getsops/sops/v3/cmd/sops",
    ),
    elsewhere="Put a `sops` on PATH; `stackyard tools list` shows what is found.",
)

TASK_INSTALL = InstallableTool(
    tool=TASK,
    label="Task",
    version=shipped.DEFAULT_TASK_VERSION,
    releases=Releases(
        program="task",
        url="https://github.com/go-task/task/releases/download",
        variable="STACKYARD_TASK_RELEASES_URL",
        file="task_{system}_{architecture}.tar.gz",
        sums="task_checksums.txt",
    ),
    program=GoProgram(
        module="github.com/go-task/task/v3",
        package="github.com/go-task/task/v3/cmd/task",
    ),
    elsewhere="Put a `task` of version 3 on PATH; `stackyard tools list` shows what is found.",
)

KUBE_APISERVER_INSTALL = InstallableTool(
    tool=KUBE_APISERVER,
    label="kube-apiserver",
    version=shipped.DEFAULT_KUBE_APISERVER_VERSION,
    releases=Releases(
        program="kube-apiserver",
        url="https://dl.k8s.io/release",
        variable="STACKYARD_KUBE_APISERVER_RELEASES_URL",
        file="bin/{system}/{architecture}/kube-apiserver",
        sums="{file}.sha256",
    ),
    program=GoProgram(
        module="k8s.io/kubernetes",
        package="k8s.io/kubernetes/cmd/kube-apiserver",
        linker_flags="-s -w -X k8s.io/component-base/version.gitVersion=v{version}",
        staged_version="v0.{minor}.{patch}",
    ),
    elsewhere="Put a `kube-apiserver` on PATH; `stackyard tools list` shows what is found.",
)

ETCD_INSTALL = InstallableTool(
    tool=ETCD,
    label="etcd",
    version=shipped.DEFAULT_ETCD_VERSION,
    releases=Releases(
        program="etcd",
        url="https://github.com/etcd-io/etcd/releases/download",
        variable="STACKYARD_ETCD_RELEASES_URL",
        file="etcd-v{version}-{system}-{architecture}.tar.gz",
        sums="SHA256SUMS",
    ),
    program=GoProgram(module="go.etcd.io/etcd/server/v3", package="go.etcd.io/etcd/server/v3"),
    elsewhere="Put an `etcd` on PATH; `stackyard tools list` shows what is found.",
)

GITEA_INSTALL = InstallableTool(
    tool=GITEA,
    label="Gitea",
    version=shipped.DEFAULT_GITEA_VERSION,
    releases=Releases(
        program="gitea",
        url="https://github.com/go-gitea/gitea/releases/download",
        variable="STACKYARD_GITEA_RELEASES_URL",
        file="gitea-{version}-{system}-{architecture}",
        sums="{file}.sha256",
    ),
    program=GoProgram(
        module="code.gitea.io/gitea",
        package="code.gitea.io/gitea",
        # Without `bindata`: the files of its web pages are made with Node, and are not in the module.
        tags=("sqlite", "sqlite_unlock_notify"),
        linker_flags="-s -w -X main.Version={version}",
        uses_c=True,
    ),
    elsewhere="Put a `gitea` on PATH; `stackyard tools list` shows what is found.",
)

INSTALLABLE: dict[str, InstallableTool] = {
    row.name: row
    for row in (
        TOFU_INSTALL,
        OPA_INSTALL,
        TALOSCTL_INSTALL,
        SOPS_INSTALL,
        TASK_INSTALL,
        KUBE_APISERVER_INSTALL,
        ETCD_INSTALL,
        GITEA_INSTALL,
    )
}

# Names for several programs that are of use only together.
GROUPS: dict[str, tuple[InstallableTool, ...]] = {"kube-test": (KUBE_APISERVER_INSTALL, ETCD_INSTALL)}
