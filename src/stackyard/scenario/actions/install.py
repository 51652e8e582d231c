"""Proxmox VE on a machine with Debian, by the way that Proxmox documents for that."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.scenario.actions.apt import APT_GET, install_packages, refresh_packages
from stackyard.scenario.failures import CommandFailedError, MachineUnfitError
from stackyard.scenario.model import ActionResult

if TYPE_CHECKING:
    from stackyard.scenario.context import Context

__all__ = ["EnsurePve", "write_sources"]

_KEYRING = "/usr/share/keyrings/proxmox-archive-keyring.gpg"
_SOURCES = "/etc/apt/sources.list.d/pve-install-repo.sources"

_REPOSITORY = "http://download.proxmox.com/debian/pve"
_UPGRADE_S = 1800.0
_OWN_NAME = """\
name=$(hostname); known=$(getent ahostsv4 "$name" | head -n 1)
case $known in 127.*|'') ;; *) exit 0 ;; esac
set -e
address=$(hostname -I | cut -d ' ' -f 1); test -n "$address"
sed -i '/^127\\.0\\.1\\.1[[:space:]]/d' /etc/hosts
printf '%s %s %s\\n' "$address" "$(hostname -f 2>/dev/null || hostname)" "$name" >> /etc/hosts
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Release:
    """What Proxmox publishes for a release of Debian: the key of its repository, and its sum."""

    key_url: str
    sum_program: str
    key_sum: str


_RELEASES = {
    "bookworm": _Release(
        key_url="https://enterprise.proxmox.com/debian/proxmox-release-bookworm.gpg",
        sum_program="sha512sum",
        key_sum=(
            "7da6fe34168adc6e479327ba517796d4702fa2f8b4f0a9833f5ea6e6b48f6507"
            "a6da403a274fe201595edc86a84463d50383d07f64bdde2e3658108db7d6dc87"
        ),
    ),
    "trixie": _Release(
        key_url="https://enterprise.proxmox.com/debian/proxmox-archive-keyring-trixie.gpg",
        sum_program="sha256sum",
        key_sum="136673be77aba35dcce385b28737689ad64fd785a797e57897589aed08db6e45",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsurePve:
    """Installs Proxmox VE where it is not.

    Each step looks first, so that a run that was stopped is resumed: after the restart that the new
    kernel needs, too.

    Attributes:
        reboot_s: How long the machine may take to come back.
    """

    reboot_s: float = 900.0

    async def run(self, context: Context) -> ActionResult:
        """Install it, or find it installed."""
        version = await _read_running_version(context)
        if version is not None:
            return _result(version, f"{version} is installed already.")
        suite = await _suite(context)
        await _resolve_own_name(context)
        if not await _is_offered(context):
            await _add_repository(context, suite)
        await self._boot_kernel(context)
        await _install(context)
        version = await _read_running_version(context)
        if version is None:
            context.log("Its API does not run yet: the machine is started once more.")
            await context.machine.reboot(timeout_s=self.reboot_s, on_line=context.log)
            version = await _read_running_version(context)
        if version is None:
            raise MachineUnfitError(
                f"Proxmox VE is installed on {context.machine.shown}, and its API does not run.",
                remedy="`journalctl -u pveproxy -u pve-cluster` on the machine says why.",
            )
        return _result(version, f"{version} was installed.")

    async def _boot_kernel(self, context: Context) -> None:
        if await _runs_own_kernel(context):
            return
        await context.sh(f"{APT_GET} full-upgrade", timeout_s=_UPGRADE_S)
        await install_packages(context, ["proxmox-default-kernel"])
        await context.machine.reboot(timeout_s=self.reboot_s, on_line=context.log)
        if not await _runs_own_kernel(context):
            raise MachineUnfitError(
                f"{context.machine.shown} did not start with the kernel of Proxmox VE.",
                remedy="Choose it in the boot loader, then run the scenario again.",
            )


def _result(version: str, message: str) -> ActionResult:
    return ActionResult(success=True, message=message, context_updates={"pve_version": version})


async def _read_running_version(context: Context) -> str | None:
    """Return the version of the Proxmox VE that works there, if one does; its API is started if need be."""
    try:
        said = await context.sh("command -v pveversion >/dev/null && pveversion && pvesh get /version")
    except CommandFailedError as err:
        if err.status is None:
            raise
        return None
    await context.sh("! systemctl is-enabled --quiet pveproxy || systemctl start pveproxy", timeout_s=120.0)
    return next((line for line in said.splitlines() if line.startswith("pve-manager/")), None)


async def _suite(context: Context) -> str:
    said = await context.sh(
        '. /etc/os-release && echo "$ID ${VERSION_CODENAME:-}"; dpkg --print-architecture'
    )
    system, _, architecture = said.strip().partition("\n")
    suite = system.partition(" ")[2].strip()
    if not system.startswith("debian ") or suite not in _RELEASES or architecture.strip() != "amd64":
        known = " or ".join(_RELEASES)
        raise MachineUnfitError(
            f"{context.machine.shown} runs {system.strip()} ({architecture.strip()}): Proxmox VE needs "
            f"debian {known} (amd64).",
            remedy="Install Debian on the machine, or Proxmox VE from its own image.",
        )
    return suite


async def _resolve_own_name(context: Context) -> None:
    """Let the machine's name mean an address of its own: Proxmox VE does not start where it is a loopback."""
    await context.sh(_OWN_NAME)


async def _is_offered(context: Context) -> bool:
    """Return whether a repository that the machine knows already, a mirror for instance, has Proxmox VE."""
    return await context.succeeds("apt-cache policy proxmox-ve 2>/dev/null | grep -q 'Candidate: [0-9]'")


async def _add_repository(context: Context, suite: str) -> None:
    release = _RELEASES[suite]
    check = f"echo {shlex.quote(f'{release.key_sum}  {_KEYRING}.new')} | {release.sum_program} -c -"
    await refresh_packages(context)
    await install_packages(context, ["ca-certificates", "curl"])
    await context.sh(f"curl -fsSL {release.key_url} -o {_KEYRING}.new", timeout_s=120.0)
    await context.sh(f"{check} && chmod 644 {_KEYRING}.new && mv -f {_KEYRING}.new {_KEYRING}")
    await write_sources(context, suite)
    await refresh_packages(context)


async def write_sources(context: Context, suite: str) -> None:
    """Name the repository that needs no subscription."""
    lines = ["Types: deb", f"URIs: {_REPOSITORY}", f"Suites: {suite}", "Components: pve-no-subscription"]
    # Where Proxmox VE came from its own image, its key may be one that apt trusts for everything.
    if await context.succeeds(f"test -f {_KEYRING}"):
        lines.append(f"Signed-By: {_KEYRING}")
    await context.machine.write(_SOURCES, "\n".join(lines))


async def _runs_own_kernel(context: Context) -> bool:
    return (await context.sh("uname -r", as_root=False)).strip().endswith("-pve")


async def _install(context: Context) -> None:
    # Without an answer the mail server would ask what kind of mail server it is.
    await context.sh("echo 'postfix postfix/main_mailer_type select Local only' | debconf-set-selections")
    await install_packages(context, ["proxmox-ve", "postfix", "open-iscsi", "chrony"])
    # The kernel of Debian would be started in place of ours after its next update.
    await context.sh(f"{APT_GET} remove linux-image-amd64 'linux-image-6.*' os-prober", timeout_s=600.0)
    await context.sh("update-grub", timeout_s=120.0)
