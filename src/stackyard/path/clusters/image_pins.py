"""Pinning the images of a cluster: the first download is trusted, later ones have to be the same."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.base.errors import StackyardError, UsageError
from stackyard.base.suggestions import did_you_mean
from stackyard.clients.factory import FactoryClient, FactoryLimits
from stackyard.path.clusters.image_lock import LOCK_NAME, PinnedImage, add_pin
from stackyard.path.clusters.images import list_images, register_schematics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.base.events import Emit
    from stackyard.path.clusters.images import ClusterImage
    from stackyard.sources.cluster.model import Cluster

__all__ = ["ImageChangedError", "PinReport", "pin_images"]


class ImageChangedError(StackyardError):
    """The image factory sends another image than the one that is pinned."""

    code = "E-CLUSTER-IMAGE-CHANGED"
    summary = "A pinned image has changed"
    default_remedy = (
        "Find out why before you trust it: a mirror may be damaged, or the factory may have built the image "
        "again. `stackyard cluster images --repin FILE` accepts the new one."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PinReport:
    """What was downloaded.

    Attributes:
        added: Files that are pinned now.
        confirmed: Files that are still what is pinned.
        replaced: Files whose pin was replaced.
    """

    added: tuple[str, ...] = ()
    confirmed: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()

    @property
    def has_changes(self) -> bool:
        """Whether the generated code has to be written again."""
        return bool(self.added or self.replaced)


async def pin_images(
    cluster: Cluster,
    *,
    repin: Sequence[str] = (),
    emit: Emit = events.ignore,
    limits: FactoryLimits = FactoryLimits(),  # noqa: B008 - frozen
) -> PinReport:
    """Download each image once, and record its SHA-256 and size; nothing else of it is kept.

    An image that is pinned has to be the same. Each one is recorded as soon as it was downloaded.

    Args:
        cluster: The cluster.
        repin: File names whose new content is accepted.
        emit: Receives progress.
        limits: What a request may take.

    Raises:
        UsageError: `repin` names a file that the cluster does not have.
        ImageChangedError: Images differ from what is pinned; the pins stay, and the error names each.
        FactoryError: An image cannot be downloaded.
        FileError: The file cannot be written.
    """
    images = list_images(cluster)
    _require_known(repin, [one.file_name for one in images])
    await register_schematics(images, emit=emit, limits=limits)
    report, changed = PinReport(), []
    for one in images:
        name, before = one.file_name, one.pin
        pin = await _download(one, emit, limits)
        if before is not None and before.sha256 == pin.sha256:
            report = replace(report, confirmed=(*report.confirmed, name))
            continue
        if before is not None and name not in repin:
            changed.append(f"{name}: pinned {before.sha256}, downloaded {pin.sha256} from {pin.url}")
            continue
        add_pin(cluster, name, pin)
        if before is None:
            report = replace(report, added=(*report.added, name))
        else:
            report = replace(report, replaced=(*report.replaced, name))
    if changed:
        listed = "\n".join(f"  {line}" for line in changed)
        raise ImageChangedError(f"{LOCK_NAME} keeps the former SHA-256 of these:\n{listed}")
    return report


def _require_known(repin: Sequence[str], names: Sequence[str]) -> None:
    for name in repin:
        if name not in names:
            raise UsageError(
                f"The cluster has no image `{name}`.{did_you_mean(name, names)}",
                remedy="`stackyard cluster images` lists them.",
            )


async def _download(one: ClusterImage, emit: Emit, limits: FactoryLimits) -> PinnedImage:
    url, done = one.image.url, 0
    with events.step(emit, f"images.{one.file_name}", f"Download {one.file_name}") as step:
        step.waiting(f"an answer from {one.image.factory}")

        def report(chunk: bytes, total: int | None) -> None:
            nonlocal done
            done += len(chunk)
            step.progressed(done, total, "bytes")

        async with FactoryClient(one.image.factory, limits) as client:
            digest = await client.download(url, report)
    return PinnedImage(sha256=digest.sha256, size=digest.size, url=url)
