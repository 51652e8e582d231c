"""Images of a release, brought into the storage of a node."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base import directories, events
from stackyard.base.errors import UsageError
from stackyard.scenario.actions.packer import iso_folder
from stackyard.scenario.failures import PhaseFailedError
from stackyard.scenario.model import ActionResult
from stackyard.scenario.releases import ReleasedImages
from stackyard.scenario.sums import hash_of
from stackyard.sources.site.hosts import DEFAULT_RELEASE

if TYPE_CHECKING:
    from stackyard.scenario.context import Context

__all__ = ["DownloadImages", "InstallImages", "release_of"]

_COPY_S = 1200.0


def release_of(context: Context) -> str:
    """Return the release that images come from: what the user says, what the site says, else `latest`."""
    if context.options.packer_release is not None:
        return context.options.packer_release
    if context.site is None:
        return DEFAULT_RELEASE
    defaults = context.site.settings.defaults
    return defaults.packer_release or defaults.image_release or DEFAULT_RELEASE


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadImages:
    """Downloads images of a release here; what came before is continued, and everything is checked."""

    async def run(self, context: Context) -> ActionResult:
        """Download those that are named."""
        names = context.options.templates
        if not names:
            raise UsageError("Nothing says which images: name them with --templates debian-12,debian-13-pve.")
        release = release_of(context)
        folder = directories.ensure_private(directories.cache_folder() / "images") / release
        step = events.Step(f"scenario {context.phase}", context.emit)
        source = ReleasedImages(tag=release)
        fetched = {name: str(await source.fetch(f"{name}.qcow2", folder, step)) for name in names}
        updates = {"release": release, "downloaded": fetched}
        return ActionResult(
            success=True, message=f"{', '.join(names)} of {release} are here.", context_updates=updates
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallImages:
    """Puts images that were downloaded into the storage `local` of a node; one that is there stays."""

    async def run(self, context: Context) -> ActionResult:
        """Send each that is not there."""
        downloaded: dict[str, str] = context.values.get("downloaded", {})
        if not downloaded:
            raise PhaseFailedError("No image was downloaded before.")
        folder = await iso_folder(context)
        await context.sh(f"mkdir -p {shlex.quote(folder)}")
        places = [
            await _install(context, Path(path), f"{folder}/{name}.img") for name, path in downloaded.items()
        ]
        updates = {"published": places}
        return ActionResult(success=True, message=f"{', '.join(places)} are there.", context_updates=updates)


async def _install(context: Context, image: Path, place: str) -> str:
    wanted, where = await hash_of(image), shlex.quote(place)
    there = await context.sh(f"sha256sum {where} 2>/dev/null; true", timeout_s=_COPY_S)
    if there.split()[:1] != [wanted]:
        made = (await context.sh("mktemp -d /tmp/stackyard-XXXXXXXX", as_root=False)).strip()
        sent = f"{made}/image"
        await context.machine.send(image, sent)
        await context.sh(
            f"set -e; echo {wanted}'  '{sent} | sha256sum -c - >/dev/null; cp {sent} {where}.partial; "
            f"chmod 644 {where}.partial; mv -f {where}.partial {where}; rm -rf {made}",
            timeout_s=_COPY_S,
        )
    return place
