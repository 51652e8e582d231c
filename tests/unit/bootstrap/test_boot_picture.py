"""The picture of a cold boot shows the steps that there are, in the order in which they run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.kubernetes_boot import DATA
from tests.support.pictures import FOLDER, IS_WRITING
from tests.support.resolved_clusters import make_cluster, make_node
from tests.support.step_picture import draw_steps
from tests.support.talos_bundles import make_keyring, shared_bundle

from stackyard.bootstrap.boot_record import BootRecord
from stackyard.bootstrap.cold_boot import BootSettings, plan_talos_steps
from stackyard.bootstrap.kubernetes import (
    ChartPlan,
    GitSource,
    KubernetesPlan,
    make_layers,
    make_sops_age,
    plan_steps,
)
from stackyard.bootstrap.talos.access import TalosAccess
from stackyard.bootstrap.talos.kubeconfig import KUBERNETES
from stackyard.clients.kubernetes import KubernetesClient, read_manifests
from stackyard.clients.objects import MemoryObjects
from stackyard.secrets import new_identity

_EARLY = ("datasets", "vms", "etcd", KUBERNETES)
PICTURE = FOLDER / "cold-boot.svg"
pytestmark = pytest.mark.pictures


async def _never() -> KubernetesClient:
    raise AssertionError("no step runs")


def _list_steps(folder: Path) -> dict[str, tuple[str, ...]]:
    """Return each step of a cluster that asks for all, with those before it, as `cluster up` has it."""
    nodes = [make_node(number) for number in range(3)] + [make_node(3, is_controller=False)]
    bundle = shared_bundle()
    settings = BootSettings(
        access=TalosAccess.of(bundle), record=BootRecord(MemoryObjects(), "home", bundle.cluster_id)
    )
    talos = plan_talos_steps(make_cluster(folder, nodes=nodes), bundle, make_keyring(folder), settings)
    some: tuple[Any, ...] = read_manifests(DATA / "network.yaml")
    plan = KubernetesPlan(
        nodes=tuple(node.name for node in nodes),
        network=some,
        charts=(ChartPlan(name="NAME", namespace="a", objects=some),),
        operator=some,
        flux=some,
        source=GitSource(url="https://git.example.com/me/home.git"),
        layers=make_layers("kubernetes"),
        secrets=(make_sops_age(new_identity()[1]).make_object(),),
    )
    after = {"datasets": (), "vms": ("datasets",)}
    after |= {one.step.name: one.after or ("vms",) for one in talos}
    after |= {one.step.name: one.after or (KUBERNETES,) for one in plan_steps(_never, plan)}
    # Side by side as they need each other: fewer lines cross.
    sides = {"secrets": after.pop("secrets"), "network": after.pop("network"), "health": after.pop("health")}
    early = {name: before for name, before in after.items() if name in _EARLY or name.startswith("configure")}
    return early | sides | after


def test_the_picture_shows_every_step_and_what_it_waits_for(tmp_path: Path) -> None:
    after = _list_steps(tmp_path)
    kinds = dict.fromkeys(after, "kubernetes") | dict.fromkeys(("datasets", "vms"), "before")
    kinds |= {name: "talos" for name in after if name.startswith("configure")} | {"etcd": "talos"}
    drawn = draw_steps(after, kinds, "The steps of `stackyard cluster up`, and which one waits for which")
    if IS_WRITING:
        PICTURE.write_text(drawn)
    assert PICTURE.read_text() == drawn, "run `make pictures`, and look at the picture"
