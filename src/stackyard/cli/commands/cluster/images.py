"""`stackyard cluster images`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.cluster.options import cluster_argument, open_named
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackyard.base.events import Emit
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.path.clusters.image_pins import PinReport
    from stackyard.path.clusters.images import ClusterImage
    from stackyard.sources.cluster.model import Cluster

__all__ = ["images"]

_HAS = {True: "yes", False: "no", None: "unknown"}


@click.command("images", cls=Command)
@cluster_argument
@click.option(
    "--pin",
    "is_pinning",
    is_flag=True,
    help="Download each image once, and record its SHA-256 in infrastructure/images.lock.json.",
)
@click.option(
    "--repin",
    metavar="FILE",
    multiple=True,
    help="As --pin, and accept that FILE is no longer what is pinned; repeatable.",
)
@pass_session
def images(session: Session, /, name: str | None, is_pinning: bool, repin: tuple[str, ...]) -> Result:
    """List the Talos images of a cluster, and pin their SHA-256 with --pin.

    The list says where each comes from, which nodes boot it, whether the image factory has it, and its pin.

    --pin registers the schematics that cluster.yaml describes, and downloads each image once; only its size
    and SHA-256 are kept. The first download is trusted. A later one that differs is refused. After
    `stackyard cluster configure` every Proxmox node checks what it downloads, also with plain OpenTofu.

    \b
    stackyard cluster images
    stackyard cluster images --pin
    stackyard cluster images home --repin talos-v1.12.1-ce4c980550dd.iso
    """  # noqa: D301 - click reads the control character
    from stackyard.path.clusters.image_pins import pin_images  # lazy: aiohttp and the engine, for this verb
    from stackyard.path.clusters.images import list_images  # lazy: as above

    cluster = open_named(name).require()
    if is_pinning or repin:
        report = session.run(pin_images(cluster, repin=repin, emit=session.emit))
        return _pin_result(cluster, list_images(cluster), report)
    listed = list_images(cluster)
    found, problem = session.run(_ask_factory(listed, session.emit))
    return _list_result(cluster, listed, found, problem)


async def _ask_factory(listed: Sequence[ClusterImage], emit: Emit) -> tuple[dict[str, bool], str]:
    """Return which images the factory has, or why it cannot say."""
    from stackyard.clients.factory import FactoryError  # lazy: aiohttp, for this verb
    from stackyard.path.clusters.images import find_in_factory  # lazy: as above

    try:
        return await find_in_factory(listed, emit=emit), ""
    except FactoryError as err:
        return {}, f"{err.detail} {err.remedy}"


def _list_result(
    cluster: Cluster, listed: Sequence[ClusterImage], found: Mapping[str, bool], problem: str
) -> Result:
    def show(writer: TextWriter) -> None:
        for one in listed:
            _show_image(writer, one, _HAS[found.get(one.image.url)])
        if problem:
            writer.line(f"warning: {problem}", style="yellow")

    documents = [{**_describe(one), "is_in_factory": found.get(one.image.url)} for one in listed]
    document = {"cluster": cluster.name, "images": documents, "warnings": [problem] if problem else []}
    return Result(document=document, show=show)


def _pin_result(cluster: Cluster, listed: Sequence[ClusterImage], report: PinReport) -> Result:
    def show(writer: TextWriter) -> None:
        for word, names in (
            ("pinned", report.added),
            ("unchanged", report.confirmed),
            ("pinned again", report.replaced),
        ):
            for name in names:
                writer.line(f"{word} {name}")
        if report.has_changes:
            writer.line("Run `stackyard cluster configure`: Proxmox then checks what it downloads.")

    document = {
        "cluster": cluster.name,
        "images": [_describe(one) for one in listed],
        "added": list(report.added),
        "confirmed": list(report.confirmed),
        "replaced": list(report.replaced),
    }
    return Result(document=document, show=show)


def _show_image(writer: TextWriter, one: ClusterImage, is_there: str) -> None:
    schematic = one.schematic
    extensions = (
        "unknown content" if schematic is None else ", ".join(schematic.extensions) or "no extensions"
    )
    facts = {
        "url": one.image.url,
        "schematic": f"{one.image.schematic_id} ({extensions})",
        "nodes": ", ".join(one.nodes),
        "hosts": ", ".join(one.hosts) or "none: bare metal",
        "in factory": is_there,
        "sha256": "not pinned" if one.pin is None else f"{one.pin.sha256} ({one.pin.size} bytes)",
    }
    writer.line(one.file_name)
    for key, value in facts.items():
        writer.line(f"  {key:<10} {value}")


def _describe(one: ClusterImage) -> dict[str, Any]:
    return {
        "file_name": one.file_name,
        "url": one.image.url,
        "installer": one.image.installer,
        "schematic_id": one.image.schematic_id,
        "extensions": None if one.schematic is None else list(one.schematic.extensions),
        "nodes": list(one.nodes),
        "hosts": list(one.hosts),
        "sha256": None if one.pin is None else one.pin.sha256,
        "size": None if one.pin is None else one.pin.size,
    }
