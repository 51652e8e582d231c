"""What the guests of an inner host need on it: datastores, bridges, and the images they are created from."""

from __future__ import annotations

import hashlib
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.clients.ssh.channel import open_channel
from stackyard.clients.ssh.failures import RemoteCommandError, SshError
from stackyard.operator.delegation.inner_host import InnerHostError
from stackyard.operator.delegation.upload import receive_stream
from stackyard.sources.site.images import is_volume, list_images

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from stackyard.base import events
    from stackyard.clients.ssh.shell import Shell
    from stackyard.operator.delegation.inner_host import InnerHost
    from stackyard.sources.manifest.model import Manifest
    from stackyard.sources.site.load import Site

__all__ = ["Datastores", "bridges_of", "choose_datastores", "copy_image", "images_of", "make_bridge"]

# What files of guests are, as contents of a datastore.
_FILE_CONTENTS = ("import", "iso", "snippets", "vztmpl")
_DEFAULT_BRIDGE = "vmbr0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Datastores:
    """Where a host keeps disks, and where images and snippets."""

    disks: str
    files: str


async def choose_datastores(
    inner: InnerHost, node: str, *, preferred: Sequence[str], files: str
) -> Datastores:
    """Return the datastores of a host, and let the one for files take all kinds of them.

    Args:
        inner: The host.
        node: What Proxmox calls it.
        preferred: For disks, in this order where the host has them; else any that takes disks.
        files: For files, where the host has it; else `local`.

    Raises:
        InnerHostError: There is none for disks, or none for files.
    """
    listed = await inner.ask("pvesh", "get", f"/nodes/{node}/storage")
    contents = {str(one["storage"]): set(str(one.get("content", "")).split(",")) for one in listed}
    with_disks = [name for name in sorted(contents) if "images" in contents[name]]
    if not with_disks:
        raise InnerHostError(f"{inner.name} has no datastore that takes disks of guests.")
    store = files if files in contents else "local"
    if store not in contents:
        raise InnerHostError(f"{inner.name} has neither the datastore '{files}' nor 'local' for images.")
    missing = set(_FILE_CONTENTS) - contents[store]
    if missing:
        # A fresh installation takes no snippets, and a plan that needs them would wait for half an hour.
        whole = ",".join(sorted(contents[store] | missing - {""}))
        await inner.run(f"pvesm set {shlex.quote(store)} --content {shlex.quote(whole)}")
    chosen = next((name for name in (*preferred, "local-lvm") if name in with_disks), with_disks[0])
    return Datastores(disks=chosen, files=store)


def bridges_of(site: Site, subtree: Manifest) -> tuple[str, ...]:
    """Return the bridges that the children of a host are plugged into."""
    default = site.settings.defaults.bridge or _DEFAULT_BRIDGE
    found: dict[str, None] = {}
    for node in subtree.roots:
        cards = node.entry.get("nics") or [node.entry]
        for card in cards:
            if "network" not in card:
                found[str(card.get("bridge", default))] = None
    return tuple(found)


async def make_bridge(inner: InnerHost, node: str, bridges: Sequence[str]) -> tuple[str, ...]:
    """Make the bridges that are missing; return which.

    `vmbr0` takes the address of the host over from its first card, any other is a network of its own.

    Raises:
        InnerHostError: One cannot be created.
    """
    listed = await inner.ask("pvesh", "get", f"/nodes/{node}/network")
    known = {str(one["iface"]): one for one in listed}
    missing = tuple(bridge for bridge in bridges if bridge not in known)
    for bridge in missing:
        words = ["pvesh", "create", f"/nodes/{node}/network", "--iface", bridge, "--type", "bridge"]
        words += ["--autostart", "1"]
        if bridge == _DEFAULT_BRIDGE:
            words += await _uplink(inner, node, known)
        await inner.run(shlex.join(words))
    if missing:
        await inner.run(shlex.join(["pvesh", "set", f"/nodes/{node}/network"]))
    return missing


async def _uplink(inner: InnerHost, node: str, known: Mapping[str, Any]) -> list[str]:
    """Return how a bridge takes over from the card that leads outside, and clear that card."""
    said = (await inner.run("ip -o route show default")).split()
    if "dev" not in said or "via" not in said:
        raise InnerHostError(f"{inner.name} has no default route, so that no card can be found for a bridge.")
    card, gateway = said[said.index("dev") + 1], said[said.index("via") + 1]
    words = (await inner.run(f"ip -o -4 addr show dev {shlex.quote(card)} scope global")).split()
    if "inet" not in words:
        raise InnerHostError(f"{inner.name} has no IPv4 address on {card}.")
    if card in known:
        await inner.run(shlex.join(["pvesh", "set", f"/nodes/{node}/network/{card}", "--type", "eth"]))
    address = words[words.index("inet") + 1]
    return ["--bridge_ports", card, "--cidr", address, "--gateway", gateway]


def images_of(site: Site, subtree: Manifest) -> tuple[str, ...]:
    """Return the volumes that guests of a subtree are created from, at every depth, each once.

    Images that are downloaded from an address are none of them: each host downloads them by itself.
    """
    known = list_images(site)
    found: dict[str, None] = {}
    for node in subtree.nodes:
        entries = [node.entry]
        template = site.templates.get(str(node.entry.get("template", "")))
        entries += [] if template is None else [template.places.data]
        names = (str(entry.get("preset", entry.get("vm_preset", ""))) for entry in tuple(entries))
        entries += [site.presets[name].places.data for name in names if name in site.presets]
        image = next((entry["image"] for entry in entries if isinstance(entry.get("image"), str)), None)
        if image is None:
            continue
        volume = known[image].volume if image in known else image
        if volume is not None and is_volume(volume):
            found[volume] = None
    return tuple(found)


async def copy_image(inner: InnerHost, volume: str, outer: Shell, step: events.Step) -> bool:
    """Copy an image from the outer host to the inner one unless it is there; return whether it had to be.

    Raises:
        InnerHostError: It is not on the outer host either, or did not arrive as it was sent.
        SshError: A connection broke.
    """
    quoted = shlex.quote(volume)
    target = (await inner.run(f"pvesm path {quoted}")).strip()
    there = await inner.run(f"[ -e {shlex.quote(target)} ] && echo there || echo missing")
    if there.strip() == "there":
        return False
    sudo = "" if outer.host.username == "root" else "sudo -n "
    try:
        source = (await outer.run(f"{sudo}pvesm path {quoted}")).strip()
    except RemoteCommandError as err:
        raise InnerHostError(f"{inner.name} needs {volume}: {err.detail}") from err
    part = f"{target}.part"
    digest = hashlib.sha256()
    folder = shlex.quote(target.rpartition("/")[0])
    await receive_stream(
        inner,
        f"mkdir -p {folder}; cat > {shlex.quote(part)}",
        _content(outer, f"{sudo}cat {shlex.quote(source)}", digest, step),
    )
    said = await inner.run(f"sha256sum < {shlex.quote(part)}")
    if said.split()[0] != digest.hexdigest():
        await inner.run(f"rm -f {shlex.quote(part)}")
        raise InnerHostError(f"{inner.name}: {volume} arrived with another SHA-256 than it was sent with.")
    await inner.run(f"mv {shlex.quote(part)} {shlex.quote(target)}")
    return True


async def _content(outer: Shell, command: str, digest: Any, step: events.Step) -> AsyncGenerator[bytes, None]:
    done = 0
    async with open_channel(outer, command) as channel:
        await channel.end_input()
        while data := await channel.read():
            digest.update(data)
            done += len(data)
            yield data
            step.progressed(done, None, "bytes")
        said = await channel.read_aside()
        if await channel.status() != 0:
            if outer.is_closed:
                raise SshError(f"The connection to {outer.host} broke while an image was read.")
            raise InnerHostError(
                f"`{command}` failed on {outer.host}: {said.decode(errors='replace').strip()}",
                remedy="Put the image on that host, or give it a `url` in site.yaml.",
            )
