"""The images of a cluster: which there are, whether the image factory has them, and what they contain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.clients.factory import (
    FactoryAnswerError,
    FactoryClient,
    FactoryError,
    FactoryLimits,
    FactoryRefusedError,
    ImageContentError,
    SchematicIdError,
    SchematicUnknownError,
)
from stackyard.engine.changes import Action
from stackyard.path.clusters.image_lock import read_image_lock, warn_of_unpinned
from stackyard.sources.cluster.image_names import name_image, name_image_file
from stackyard.sources.cluster.vms import list_addresses

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stackyard.base.events import Emit
    from stackyard.engine.changes import Changes
    from stackyard.path.clusters.image_lock import PinnedImage
    from stackyard.sources.cluster.model import Cluster, ClusterNode, TalosImage
    from stackyard.talosapi.schematic import Schematic

__all__ = [
    "ClusterImage",
    "find_in_factory",
    "list_images",
    "register_planned",
    "register_schematics",
]

_SERVER_FAULT = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterImage:
    """An image that nodes of a cluster boot.

    Attributes:
        image: The image.
        file_name: Its name on a storage of Proxmox.
        nodes: The nodes that boot it.
        hosts: The Proxmox nodes that download it.
        schematic: What is in it, where that is known.
        pin: Its SHA-256, where it is pinned.
    """

    image: TalosImage
    file_name: str
    nodes: tuple[str, ...]
    hosts: tuple[str, ...]
    schematic: Schematic | None
    pin: PinnedImage | None


def list_images(cluster: Cluster) -> tuple[ClusterImage, ...]:
    """Return each image of a cluster once, by file name.

    Raises:
        ImageLockError: The file of pinned images is not valid.
    """
    pins = read_image_lock(cluster).images
    users: dict[TalosImage, list[ClusterNode]] = {}
    for node in cluster.nodes:
        users.setdefault(node.image, []).append(node)
    return tuple(
        ClusterImage(
            image=image,
            file_name=name_image_file(cluster, image),
            nodes=tuple(node.name for node in nodes),
            hosts=tuple(sorted({node.vm.proxmox_node for node in nodes if node.vm is not None})),
            schematic=cluster.schematics.get(image.schematic_id),
            pin=pins.get(name_image_file(cluster, image)),
        )
        for image, nodes in sorted(users.items(), key=lambda one: one[0].file_name)
    )


async def find_in_factory(
    images: Iterable[ClusterImage],
    *,
    emit: Emit = events.ignore,
    limits: FactoryLimits = FactoryLimits(),  # noqa: B008 - frozen
) -> dict[str, bool]:
    """Return by address whether the image factory has each image.

    Raises:
        FactoryError: It cannot be reached, or refuses a request.
    """
    found: dict[str, bool] = {}
    with events.step(emit, "images.find", "Asking the image factory") as step:
        for one in images:
            step.waiting(f"an answer about {one.file_name} from {one.image.factory}")
            async with FactoryClient(one.image.factory, limits) as client:
                found[one.image.url] = await client.has_image(one.image.url)
    return found


async def register_schematics(
    images: Iterable[ClusterImage],
    *,
    emit: Emit = events.ignore,
    limits: FactoryLimits = FactoryLimits(),  # noqa: B008 - frozen
) -> tuple[str, ...]:
    """Register the schematics whose content is known; return their ids.

    A mirror that only has images takes no schematics, and needs none for those that it has.

    Raises:
        SchematicIdError: The factory gives one another id.
        FactoryError: It cannot be reached, or refuses one and does not have its image.
    """
    wanted = {
        (one.image.factory, one.image.schematic_id): (one.schematic, one.image.url)
        for one in images
        if one.schematic is not None
    }
    if not wanted:
        return ()
    with events.step(emit, "images.register", "Registering schematics") as step:
        for (factory, _), (schematic, url) in wanted.items():
            step.waiting(f"an answer from {factory}")
            async with FactoryClient(factory, limits) as client:
                try:
                    await client.post_schematic(schematic)
                except (FactoryAnswerError, FactoryRefusedError, SchematicUnknownError):
                    if not await client.has_image(url):
                        raise
    return tuple(found for _, found in wanted)


async def register_planned(cluster: Cluster, changes: Changes, emit: Emit) -> None:
    """Register the schematics of images that a plan downloads; a factory out of reach is a warning.

    The Proxmox nodes download the images themselves, and may reach a factory that this machine does not. A
    warning also names images that have no SHA-256 to compare with.

    Raises:
        SchematicIdError: The factory gives one another id.
        ImageContentError: A page answers in place of an image that has no SHA-256 to be refused by.
        FactoryError: It refuses one.
    """
    created = (Action.CREATE, Action.REPLACE)
    planned = {change.address for change in changes.planned if change.action in created}
    downloads = {key for key, address in list_addresses(cluster).items() if address in planned}
    images = [one for one in list_images(cluster) if _is_downloaded(cluster, one, downloads)]
    if unpinned := [one.file_name for one in images if one.pin is None]:
        _warn(emit, warn_of_unpinned(unpinned))
    try:
        await register_schematics(images, emit=emit)
    except FactoryError as err:
        is_caught_later = isinstance(err, FactoryAnswerError | ImageContentError) and not unpinned
        if not (is_caught_later or _is_away(err)):
            raise
        text = f"{err.detail} Schematics are not registered from here; the Proxmox nodes download the images."
        _warn(emit, text)


def _warn(emit: Emit, text: str) -> None:
    emit(events.LogLine(level=events.LogLevel.WARNING, source="images", text=text))


def _is_away(err: FactoryError) -> bool:
    """Return whether a failure is about the way from this machine, and not about the schematics."""
    if isinstance(err, FactoryRefusedError):
        return err.status >= _SERVER_FAULT
    return not isinstance(
        err, FactoryAnswerError | ImageContentError | SchematicIdError | SchematicUnknownError
    )


def _is_downloaded(cluster: Cluster, one: ClusterImage, keys: set[str]) -> bool:
    nodes = (node for node in cluster.nodes if node.image == one.image and node.vm is not None)
    return any(name_image(cluster, node) in keys for node in nodes)
