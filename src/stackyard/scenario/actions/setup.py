"""A Proxmox VE that is installed, made ready for use: repositories, packages, time, storage, bridge."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.documents.jsontext import parse_json
from stackyard.scenario.actions.apt import install_packages, refresh_packages
from stackyard.scenario.actions.install import write_sources
from stackyard.scenario.failures import MachineUnfitError
from stackyard.scenario.model import ActionResult

if TYPE_CHECKING:
    from stackyard.scenario.context import Context

__all__ = ["SetupPve", "read_json", "run_json"]

# Repositories that answer no one without a subscription: every refresh of the lists would fail.
_ENTERPRISE = ("pve-enterprise", "ceph")
_CONTENTS = ("snippets", "import")
_TOOLKIT = "/usr/share/javascript/proxmox-widget-toolkit/proxmoxlib.js"
_NAG = "res.data.status.toLowerCase() !== 'active'"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupPve:
    """Makes a Proxmox VE ready: each thing is looked at first and changed where it is not as it should be."""

    async def run(self, context: Context) -> ActionResult:
        """Set everything up."""
        defaults = context.needed_site.settings.defaults
        done = [
            *await _repositories(context),
            *await _packages(context, tuple(defaults.packages)),
            *await _timezone(context, defaults.timezone),
            *await _contents(context),
            *await _bridge(context, defaults.bridge or "vmbr0"),
        ]
        if defaults.pve_remove_subscription_nag is not False:
            done += await _remove_subscription_notice(context)
        message = "; ".join(done) + "." if done else "Everything is set up already."
        return ActionResult(success=True, message=message, context_updates={"changes": done})


async def run_json(context: Context, command: str) -> Any:
    """Return what a command of Proxmox answers as JSON.

    Raises:
        MachineUnfitError: It answers something else.
    """
    return await read_json(context, f"{command} --output-format json")


async def read_json(context: Context, command: str, **options: Any) -> Any:
    """Return what a command answers as JSON; an empty list where it says nothing.

    Raises:
        MachineUnfitError: It answers something else.
    """
    said = await context.sh(command, **options)
    try:
        return parse_json(said or "[]")
    except ValueError as err:
        raise MachineUnfitError(f"`{command}` on {context.machine.shown} did not answer in JSON.") from err


async def _repositories(context: Context) -> list[str]:
    done = []
    for name in _ENTERPRISE:
        base = f"/etc/apt/sources.list.d/{name}"
        # Renamed, not removed: anyone who buys a subscription gives it its name back.
        script = (
            f"for file in {base}.list {base}.sources; do "
            '[ -f "$file" ] && grep -q enterprise.proxmox.com "$file" && '
            'mv "$file" "$file.disabled" && echo "moved"; done; true'
        )
        if "moved" in await context.sh(script):
            done.append(f"{name} repository disabled")
    if await context.succeeds("grep -rqs pve-no-subscription /etc/apt/sources.list /etc/apt/sources.list.d"):
        return done
    suite = (await context.sh('. /etc/os-release && echo "$VERSION_CODENAME"')).strip()
    await write_sources(context, suite)
    return [*done, "repository without subscription added"]


async def _packages(context: Context, names: tuple[str, ...]) -> list[str]:
    if not names:
        return []
    listed = await context.sh(
        f"dpkg-query -W -f '${{Package}} ${{db:Status-Status}}\\n' {shlex.join(names)} 2>/dev/null; true"
    )
    there = {line.split()[0] for line in listed.splitlines() if line.endswith(" installed")}
    missing = [name for name in names if name not in there]
    if not missing:
        return []
    await refresh_packages(context)
    await install_packages(context, missing)
    return [f"installed {', '.join(missing)}"]


async def _timezone(context: Context, wanted: str | None) -> list[str]:
    if wanted is None:
        return []
    now = (await context.sh("cat /etc/timezone 2>/dev/null || timedatectl show -p Timezone --value")).strip()
    if now == wanted:
        return []
    await context.sh(f"timedatectl set-timezone {shlex.quote(wanted)}")
    return [f"time zone {wanted}"]


async def _contents(context: Context) -> list[str]:
    """Let `local` hold snippets: without, the first boot of a guest waits half an hour for its user data."""
    now = str((await run_json(context, "pvesh get /storage/local")).get("content", "")).split(",")
    missing = [content for content in _CONTENTS if content not in now]
    if not missing:
        return []
    await context.sh(f"pvesm set local --content {shlex.quote(','.join([*filter(None, now), *missing]))}")
    return [f"local holds {' and '.join(missing)}"]


async def _bridge(context: Context, name: str) -> list[str]:
    """Make the first bridge, over the interface that the machine is reached by."""
    node = (await context.sh("hostname -s")).strip()
    network = shlex.quote(f"/nodes/{node}/network")
    known = await run_json(context, f"pvesh get {network}")
    if any(one.get("type") in ("bridge", "OVSBridge") for one in known):
        return []
    routes = await read_json(context, "ip -j route show default")
    if not routes or "gateway" not in routes[0]:
        context.warn(f"{name} was not created: no default route names an interface for it.")
        return []
    port, gateway = str(routes[0]["dev"]), str(routes[0]["gateway"])
    addresses = await read_json(context, f"ip -j -4 address show dev {shlex.quote(port)}")
    address = next((one for one in addresses[0].get("addr_info", ()) if one.get("scope") == "global"), None)
    if address is None or address.get("dynamic"):
        context.warn(
            f"{name} was not created: {port} has no fixed address (it uses DHCP). Give it a fixed one, "
            f"or make the bridge yourself."
        )
        return []
    cidr = f"{address['local']}/{address['prefixlen']}"
    await context.sh(f"pvesh set {network}/{shlex.quote(port)} --type eth --autostart 1")
    await context.sh(
        f"pvesh create {network} --iface {shlex.quote(name)} --type bridge --autostart 1 "
        f"--bridge_ports {shlex.quote(port)} --cidr {shlex.quote(cidr)} --gateway {shlex.quote(gateway)}"
    )
    await context.sh(f"pvesh set {network}", timeout_s=120.0)
    return [f"{name} created over {port}"]


async def _remove_subscription_notice(context: Context) -> list[str]:
    if not await context.succeeds(f"test -f {_TOOLKIT} && grep -qF {shlex.quote(_NAG)} {_TOOLKIT}"):
        return []
    pattern = _NAG.replace(".", r"\.")
    await context.sh(f"sed -i.stackyard {shlex.quote(f's/{pattern}/false/')} {_TOOLKIT}")
    await context.sh("systemctl restart pveproxy", timeout_s=120.0)
    return ["notice about the subscription removed"]
