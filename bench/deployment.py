"""What a large deployment object costs, beside parsing its JSON alone; and writing it while others do."""

from __future__ import annotations

import functools
import gc
import json
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
from tests.support.deployment import CONTAINER, large, place_in, text_of

from bench.figure import Figure
from stackyard.inventory import Fact, open_inventory_target
from stackyard.inventory import render as inventory_of
from stackyard.inventory.contract import Origin
from stackyard.render import render
from stackyard.render.references import address_of
from stackyard.sources.deployment.edit import format_object, set_values
from stackyard.sources.deployment.explain import explain
from stackyard.sources.deployment.fetch import Object
from stackyard.sources.deployment.text import parse
from stackyard.sources.deployment.validate import ValidatedObject, check
from stackyard.sources.deployment.write import WriteRequest, write

__all__ = ["measure"]

SIZES = (1000, 10_000)
ROUNDS = 2
WRITERS = 20
# Against reading the JSON with the reader of the standard library.
AIM_VALIDATE, AIM_EXPLAIN, AIM_RENDER, AIM_PUBLISH = 150.0, 200.0, 150.0, 150.0
# Writers that meet take turns: each may wait a little between the turns.
AIM_PUT = 3.0


def measure() -> list[Figure]:
    """Return the figures of objects of each size, and of writers that meet."""
    found: list[Figure] = []
    for size in SIZES:
        found += _sized(size)
    return [*found, _contention()]


def _sized(size: int) -> list[Figure]:
    data = text_of(large(size)).encode()
    best: dict[str, float] = {}
    for _ in range(ROUNDS):
        # In turn, so that a busy moment of the machine hits all of them.
        checked = _keep(best, "validate", lambda: check(parse(data, "object")))
        checked.require()
        _keep(best, "parse", lambda: json.loads(data))
        _keep(best, "fast parse", lambda: orjson.loads(data))
        _keep(best, "explain", functools.partial(_explain_all, checked))
        _keep(best, "render", functools.partial(_rendered, checked))
        _keep(best, "publish", functools.partial(_published, checked))
    what = f"{size} guests ({len(data) / 2**20:.1f} MiB)"
    floor = {"floor_name": "parsing the JSON", "floor_s": best["parse"]}
    return [
        Figure(
            name=f"validate an object of {what} with every cross-check",
            measured_s=best["validate"],
            aim_ratio=AIM_VALIDATE,
            note=f"{best['validate'] / best['fast parse']:.0f} x orjson",
            **floor,  # type: ignore[arg-type]
        ),
        Figure(
            name=f"explain every guest of {what}",
            measured_s=best["explain"],
            aim_ratio=AIM_EXPLAIN,
            **floor,  # type: ignore[arg-type]
        ),
        Figure(
            name=f"render {what} for the engine",
            measured_s=best["render"],
            aim_ratio=AIM_RENDER,
            **floor,  # type: ignore[arg-type]
        ),
        Figure(
            name=f"publish the inventory of {what}",
            measured_s=best["publish"],
            aim_ratio=AIM_PUBLISH,
            **floor,  # type: ignore[arg-type]
        ),
    ]


def _keep(best: dict[str, float], name: str, work: Callable[[], Any]) -> Any:
    """Do something, and keep the least time of the processor that it took."""
    gc.collect()
    began_s = time.process_time()
    result = work()
    best[name] = min(best.get(name, float("inf")), time.process_time() - began_s)
    return result


def _explain_all(checked: ValidatedObject) -> int:
    return sum(len(explain(guest, checked.document)) for guest in checked.require().guests)


def _rendered(checked: ValidatedObject) -> int:
    if checked.desired is None:
        raise ValueError("the object of the measurement is not valid")
    return len(render(checked.desired).files)


def _published(checked: ValidatedObject) -> bool:
    """Render the inventory of guests that are all there, and publish it in both of its forms."""
    if checked.desired is None:
        raise ValueError("the object of the measurement is not valid")
    facts = {
        address_of(guest): Fact(vm_id=guest.vm_id or 100, node=guest.node, addresses=("192.0.2.1",))
        for guest in checked.desired.guests
    }
    inventory = inventory_of(checked.desired, facts, Origin(target="deployment", desired="bench"))
    with tempfile.TemporaryDirectory(prefix="stackyard-bench-") as name:
        return open_inventory_target(Path(name) / "shelf").publish(inventory).is_new


def _contention() -> Figure:
    """Measure writers that all want to write at once, each a guest of its own, for each write."""
    with tempfile.TemporaryDirectory(prefix="stackyard-bench-") as name:
        folder = Path(name)
        place = place_in(folder)
        first = text_of(large(100)).encode()
        write(place, WriteRequest(kind="put", make=lambda current: first))
        threads = [threading.Thread(target=write, args=(place, _adding(n))) for n in range(WRITERS)]
        began_s = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        each_s = (time.perf_counter() - began_s) / WRITERS
        began_s = time.perf_counter()
        for number in range(WRITERS, 2 * WRITERS):
            write(place, _adding(number))
        floor_s = (time.perf_counter() - began_s) / WRITERS
    return Figure(
        name=f"put by {WRITERS} writers at once, each",
        measured_s=each_s,
        floor_name="the same write with nobody else there",
        floor_s=floor_s,
        aim_ratio=AIM_PUT,
        note=f"{1 / each_s:.0f} writes a second",
    )


def _adding(number: int) -> WriteRequest:
    entry = json.dumps({**CONTAINER, "vm_id": 900_000 + number, "hostname": f"g{number}", "pool_id": "pool0"})

    def make(current: Object | None) -> bytes:
        data = {} if current is None else current.document.data
        key = f"containers.g{number}"
        settings = [f"{key}={entry}", f"{key}.vlan=net0", f"{key}.dhcp=true"]
        return format_object(set_values(data, settings))

    return WriteRequest(kind="edit", make=make, can_repeat=True, wait_s=300)
