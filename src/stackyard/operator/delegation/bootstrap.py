"""Making an inner host ready to run guests of its own: every step can be repeated, and does nothing twice."""

from __future__ import annotations

import asyncio
import hashlib
import platform
from dataclasses import dataclass
from typing import TYPE_CHECKING

import yaml

from stackyard.base.documents.limits import SMALL
from stackyard.base.documents.yamltext import parse_yaml
from stackyard.operator.delegation.children_needs import (
    bridges_of,
    choose_datastores,
    copy_image,
    images_of,
    make_bridge,
)
from stackyard.operator.delegation.credentials import make_key, make_token
from stackyard.operator.delegation.inner_host import BASE, InnerHostError
from stackyard.operator.delegation.site_subset import InnerNode, as_tar, site_files
from stackyard.operator.delegation.upload import runtime_of, send_archive, unpack_archive

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from stackyard.clients.ssh.shell import Shell
    from stackyard.operator.delegation.archive import Archive
    from stackyard.operator.delegation.inner_host import InnerHost, Steps
    from stackyard.sources.manifest.model import Manifest
    from stackyard.sources.site.load import Site

__all__ = ["InnerHostReady", "InnerHostRequest", "bootstrap"]

_SITES = f"{BASE}/sites"


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerHostRequest:
    """What an inner host is made ready for.

    Attributes:
        site: The site of the outer host.
        outer: The outer host by its name in the site.
        subtree: What is to run inside.
        address: Where the inner host is for its guests.
        archive: The archive to send.
        open_outer: Logs in to the outer host, where the images are.
    """

    site: Site
    outer: str
    subtree: Manifest
    address: str
    archive: Archive
    open_outer: Callable[[], AbstractAsyncContextManager[Shell]]


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerHostReady:
    """An inner host that is ready.

    Attributes:
        program: The stackyard there.
        site: The folder of its site there.
    """

    program: str
    site: str


async def bootstrap(inner: InnerHost, wanted: InnerHostRequest, steps: Steps) -> InnerHostReady:
    """Make an inner host ready; what is there already is left as it is.

    Raises:
        InnerHostError: It lacks something, refuses, or answers what no Proxmox node answers.
        SshError: The connection broke; the next time continues from there.
    """
    try:
        return await _make_ready(inner, wanted, steps)
    except (AttributeError, LookupError, TypeError, ValueError) as err:
        raise InnerHostError(
            f"{inner.name} sent an answer that is not valid: {type(err).__name__}: {err}."
        ) from err


async def _make_ready(inner: InnerHost, wanted: InnerHostRequest, steps: Steps) -> InnerHostReady:
    with steps.step("check_host", "Looking at the host"):
        name = await _look(inner)
    site = f"{_SITES}/{inner.name}"
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_send(inner, wanted.archive, steps))
            group.create_task(_needs(inner, wanted, steps, name=name))
    except BaseExceptionGroup as failed:
        # The first reason is the one to go by; a lost connection is the reason of both.
        raise failed.exceptions[0] from failed
    node = await _node(inner, wanted, steps, name=name, site=site)
    with steps.step("send_site", "Sending the part of the site that its guests need") as step:
        if not await _send_site(inner, site, as_tar(site_files(wanted.site, wanted.subtree, node))):
            step.log("Nothing of it has changed.")
    return InnerHostReady(program=f"{runtime_of(wanted.archive)}/bin/stackyard", site=site)


async def _send(inner: InnerHost, archive: Archive, steps: Steps) -> None:
    with steps.step("send_archive", "Sending stackyard") as step:
        if not await send_archive(inner, archive, step):
            step.log("It is there already.")
    with steps.step("unpack_archive", "Unpacking stackyard"):
        await unpack_archive(inner, archive)


async def _needs(inner: InnerHost, wanted: InnerHostRequest, steps: Steps, *, name: str) -> None:
    """Make what its guests need, while stackyard is on its way."""
    with steps.step("make_bridge", "Making the bridges of its guests") as step:
        for bridge in await make_bridge(inner, name, bridges_of(wanted.site, wanted.subtree)):
            step.log(f"Made {bridge}.")
    await _copy_images(inner, wanted, steps)


async def _look(inner: InnerHost) -> str:
    """Return what Proxmox calls the host, if it can run what we send."""
    said = await inner.run(
        f"umask 077; mkdir -p {BASE}; uname -m; hostname -s; "
        "getconf GNU_LIBC_VERSION 2>/dev/null || echo unknown; command -v pvesh || echo none"
    )
    machine, name, library, pvesh = said.splitlines()[:4]
    if pvesh == "none":
        raise InnerHostError(
            f"{inner.name} is no Proxmox node: it has no pvesh.",
            remedy="Create it again: Proxmox VE is installed then, or comes with its image.",
        )
    if machine != platform.machine():
        raise InnerHostError(f"{inner.name} is {machine}, and this machine is {platform.machine()}.")
    ours = platform.libc_ver()[1]
    theirs = library.rpartition(" ")[2]
    if ours and theirs[:1].isdigit() and _version(theirs) < _version(ours):
        raise InnerHostError(
            f"{inner.name} has version {theirs} of the C library, and this machine's programs need {ours}."
        )
    return name


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())


async def _node(
    inner: InnerHost, wanted: InnerHostRequest, steps: Steps, *, name: str, site: str
) -> InnerNode:
    with steps.step("make_key", "Making its key pair"):
        public_key = await make_key(inner)
    with steps.step("create_token", "Making its API token") as step:
        known, fingerprint = await _read_existing_token(inner, site), await _fingerprint(inner, name)
        runtime = runtime_of(wanted.archive)
        token = await make_token(inner, known, runtime=runtime, fingerprint=fingerprint)
        if token == known:
            step.log("The one that it has is valid.")
    outer = wanted.site.nodes[wanted.outer].model
    stores = await choose_datastores(inner, name, preferred=(outer.datastore,), files=outer.file_datastore)
    return InnerNode(
        name=inner.name,
        proxmox_name=name,
        address=wanted.address,
        fingerprint=fingerprint,
        datastore=stores.disks,
        file_datastore=stores.files,
        public_key=public_key,
        token=token,
    )


async def _read_existing_token(inner: InnerHost, site: str) -> str | None:
    """Return the token that the host has from an earlier time."""
    said = await inner.run(f"cat {site}/secrets.yaml 2>/dev/null || :")
    try:
        document = parse_yaml(said, SMALL) if said else None
    except yaml.YAMLError:
        # A file that cannot be read is written again, with a new token.
        document = None
    tokens = document.get("api_tokens") if isinstance(document, dict) else None
    known = tokens.get(inner.name) if isinstance(tokens, dict) else None
    return known if isinstance(known, str) and known.isprintable() else None


async def _fingerprint(inner: InnerHost, node: str) -> str:
    """Return the SHA-256 of the certificate that the API shows: one of the user's goes before its own."""
    listed = await inner.ask("pvesh", "get", f"/nodes/{node}/certificates/info")
    found = {str(one["filename"]): str(one["fingerprint"]) for one in listed if one.get("fingerprint")}
    for name in ("pveproxy-ssl.pem", "pve-ssl.pem"):
        if name in found:
            return found[name]
    raise InnerHostError(f"{inner.name} has no certificate for its API.")


async def _copy_images(inner: InnerHost, wanted: InnerHostRequest, steps: Steps) -> None:
    volumes = images_of(wanted.site, wanted.subtree)
    with steps.step("copy_images", "Copying the images of its guests") as step:
        if not volumes:
            return
        async with wanted.open_outer() as outer:
            for volume in volumes:
                if await copy_image(inner, volume, outer, step):
                    step.log(f"Copied {volume}.")


async def _send_site(inner: InnerHost, site: str, tar: bytes) -> bool:
    """Replace the files of the site, unless they are the same; what runs left beside them stays."""
    digest = hashlib.sha256(tar).hexdigest()
    mark = f"{site}/.stackyard/sent"
    said = await inner.run(f"cat {mark} 2>/dev/null || :")
    if said.strip() == digest:
        return False
    await inner.run(
        f"umask 077; mkdir -p {site}/.stackyard; cd {site}; rm -f {mark}; "
        "find . -mindepth 1 -maxdepth 1 ! -name .stackyard -exec rm -rf {} +; "
        f"tar -xof -; echo {digest} > {mark}",
        stdin=tar,
    )
    return True
