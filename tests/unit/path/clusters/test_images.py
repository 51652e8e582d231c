"""The images of a cluster: listed once, pinned in a file that git holds, rendered into the code."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.support.resolved_clusters import SCHEMATIC, make_cluster, make_node

from stackyard.base import events, serving
from stackyard.base.serving import respond
from stackyard.clients.factory import FactoryError, FactoryRefusedError, FactoryUnreachableError
from stackyard.engine.changes import Action, Change, Changes
from stackyard.path.clusters.configure import check_current, configure
from stackyard.path.clusters.image_lock import (
    LOCK_NAME,
    ImageLockError,
    PinnedImage,
    add_pin,
    read_image_lock,
)
from stackyard.path.clusters.image_pins import pin_images
from stackyard.path.clusters.images import list_images, register_planned, register_schematics
from stackyard.secrets import new_identity
from stackyard.sources.cluster.model import Cluster
from stackyard.talosapi.schematic import WELL_KNOWN

FILE = "talos-v1.12.1-ce4c980550dd-home.iso"
PIN = PinnedImage(sha256="ab" * 32, size=7, url="https://factory.talos.dev/image/x")
NOWHERE = "http://127.0.0.1:1"


def with_factory(cluster: Cluster, factory: str) -> Cluster:
    nodes = (
        dataclasses.replace(one, image=dataclasses.replace(one.image, factory=factory))
        for one in cluster.nodes
    )
    return dataclasses.replace(cluster, nodes=tuple(nodes), schematics=WELL_KNOWN)


def plan(action: Action) -> Changes:
    kind = "proxmox_virtual_environment_download_file"
    address = f'{kind}.talos_iso["{SCHEMATIC}-false"]'
    return Changes(planned=(Change(address=address, kind=kind, name="talos_iso", action=action),))


def test_an_image_is_listed_once_for_all_its_nodes_and_hosts(tmp_path: Path) -> None:
    secure = dataclasses.replace(make_node(3).image, is_secureboot=True)
    cluster = make_cluster(
        tmp_path,
        nodes=[make_node(1), make_node(2, host="pve2"), make_node(3, image=secure)],
        schematics=WELL_KNOWN,
    )

    found = {one.file_name: one for one in list_images(cluster)}

    assert sorted(found) == [FILE, "talos-v1.12.1-ce4c980550dd-secureboot-home.iso"]
    assert (found[FILE].nodes, found[FILE].hosts) == (("k8s-1", "k8s-2"), ("pve", "pve2"))
    assert found[FILE].schematic == WELL_KNOWN[SCHEMATIC]
    assert found[FILE].pin is None


def test_a_pin_is_rendered_into_the_code_and_makes_it_stale_until_then(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "age.key").write_text(f"{new_identity()[1]}\n")
    cluster = make_cluster(tmp_path)
    configure(cluster)
    add_pin(cluster, "talos-v1.0.0-other.iso", PIN)
    assert check_current(cluster) == ()
    add_pin(cluster, FILE, PIN)

    assert check_current(cluster) == ("tofu/terraform.tfvars",)
    assert configure(cluster).written == ("infrastructure/tofu/terraform.tfvars",)
    text = (cluster.infrastructure / "tofu/terraform.tfvars").read_text()
    assert f'image_checksums = {{\n  "{FILE}" = "{PIN.sha256}"\n}}\n' in text
    assert list_images(cluster)[0].pin == PIN
    assert set(read_image_lock(cluster).images) == {FILE, "talos-v1.0.0-other.iso"}


@pytest.mark.parametrize(
    "document",
    [
        "<<<<<<< HEAD",
        "[]",
        '{"images": []}',
        {"images": {FILE: "x"}},
        {"images": {FILE: {"sha256": "AB" * 32, "size": 1, "url": ""}}},
        {"images": {FILE: {"sha256": "ab" * 32, "size": "1", "url": ""}}},
    ],
)
def test_a_file_of_pins_that_is_not_valid_is_never_taken_for_empty(tmp_path: Path, document: Any) -> None:
    cluster = make_cluster(tmp_path)
    cluster.infrastructure.mkdir()
    path = cluster.infrastructure / LOCK_NAME
    path.write_text(document if isinstance(document, str) else json.dumps(document))

    with pytest.raises(ImageLockError, match=r"images\.lock\.json"):
        list_images(cluster)


async def test_a_failed_download_records_nothing(tmp_path: Path) -> None:
    cluster = with_factory(make_cluster(tmp_path), NOWHERE)

    with pytest.raises(FactoryUnreachableError):
        await pin_images(cluster)

    assert not (cluster.infrastructure / LOCK_NAME).exists()


async def test_a_mirror_that_takes_no_schematics_needs_none_for_its_images(tmp_path: Path) -> None:
    images = True

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return respond(200 if request.method == "HEAD" and images else 405)

    async with serving.serve(answer, bind="127.0.0.1", port=0) as server:
        mirrored = list_images(with_factory(make_cluster(tmp_path), f"{server.url}/talos"))
        assert await register_schematics(mirrored) == (SCHEMATIC,)
        images = False
        with pytest.raises(FactoryRefusedError, match="405"):
            await register_schematics(mirrored)


async def test_a_plan_that_downloads_nothing_asks_no_factory(tmp_path: Path) -> None:
    seen: list[events.Event] = []

    await register_planned(with_factory(make_cluster(tmp_path), NOWHERE), plan(Action.DELETE), seen.append)

    assert seen == []


async def test_a_factory_out_of_reach_does_not_stop_an_apply(tmp_path: Path) -> None:
    seen: list[events.Event] = []

    await register_planned(with_factory(make_cluster(tmp_path), NOWHERE), plan(Action.CREATE), seen.append)

    unpinned, warning = (one for one in seen if isinstance(one, events.LogLine))
    assert {one.level for one in (unpinned, warning)} == {events.LogLevel.WARNING}
    assert "no recorded SHA-256" in unpinned.text
    assert "Connection refused" in warning.text


async def register_against(folder: Path, status: int, body: bytes) -> list[events.Event]:
    """Register the schematic of a planned image with a factory that always answers the same."""
    seen: list[events.Event] = []

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return respond(status, body, headers={"Location": request.raw_path})

    async with serving.serve(answer, bind="127.0.0.1", port=0) as server:
        await register_planned(
            with_factory(make_cluster(folder), server.url), plan(Action.CREATE), seen.append
        )
    return seen


@pytest.mark.parametrize(("status", "body"), [(503, b""), (302, b"")])
async def test_what_is_in_the_way_of_this_machine_does_not_stop_an_apply(
    tmp_path: Path, status: int, body: bytes
) -> None:
    assert any(isinstance(one, events.LogLine) for one in await register_against(tmp_path, status, body))


# What answers with a page would be downloaded as an image, which no VM boots.
@pytest.mark.parametrize(
    ("status", "body"), [(201, b'{"id": "0"}'), (400, b"unknown field"), (200, b"<html>"), (200, bytes(27))]
)
async def test_a_schematic_that_the_factory_refuses_stops_an_apply(
    tmp_path: Path, status: int, body: bytes
) -> None:
    with pytest.raises(FactoryError):
        await register_against(tmp_path, status, body)
