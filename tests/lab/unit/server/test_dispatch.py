"""Calls inside the lab: whole or not at all, whatever a handler does."""

from __future__ import annotations

import asyncio
from typing import Any

from pvelab.faults.latency import Latency
from pvelab.seeds import stock as seed
from pvelab.seeds.model import Seed
from pvelab.server import facts
from pvelab.server.call import Call
from pvelab.server.dispatch import Answer, Dispatcher, Request
from pvelab.server.problems import PveError
from pvelab.server.routing import Route, Table, route
from pvelab.world.access.login import Identity
from pvelab.world.clock import LabClock
from pvelab.world.store import Store
from pvelab.world.tasks import Task
from pvelab.world.world import World, assemble

FACTS = facts.load()


def perform(handler: Route, path: str, *, method: str = "POST", **parameters: Any) -> tuple[Answer, World]:
    async def main() -> tuple[Answer, World]:
        world = assemble(FACTS, Store(), LabClock(), Latency())
        with world.store.transaction():
            seed.plant(world, Seed(name="empty"), ("pve1",))
        dispatcher = Dispatcher(world, Table(FACTS, [handler]))
        identity = Identity(authid="root@pam")
        request = Request(method=method, path=path, identity=identity, parameters=parameters)
        return await dispatcher.perform(request), world

    return asyncio.run(main())


async def nothing(_task: Task) -> None:
    return


def test_a_defect_of_a_handler_is_a_500_and_leaves_nothing() -> None:
    @route("POST /pools")
    def create(call: Call) -> Any:
        call.store.put("pools", call.params["poolid"], {})
        call.start_task("x", "y", nothing)
        raise KeyError("oops")

    answer, world = perform(create, "/pools", poolid="p")
    assert (answer.status, answer.reason) == (500, "internal error of the lab: KeyError: 'oops'")
    assert world.store.get("pools", "p") is None
    assert list(world.tasks.newest_first()) == []


def test_a_refusal_after_changes_undoes_them() -> None:
    @route("POST /pools")
    def create(call: Call) -> Any:
        call.store.put("pools", call.params["poolid"], {})
        raise PveError("pool 'p' already exists\nsecond line")

    answer, world = perform(create, "/pools", poolid="p")
    assert (answer.status, answer.reason) == (500, "pool 'p' already exists")
    assert answer.message == "pool 'p' already exists\nsecond line\n"
    assert world.store.get("pools", "p") is None


def test_an_extra_parameter_is_taken_where_the_route_says_so() -> None:
    @route("GET /pools", extra={"pending": {"type": "boolean", "optional": 1}})
    def read(call: Call) -> Any:
        return call.params["pending"]

    answer, _ = perform(read, "/pools", method="GET", pending="1")
    assert answer.data == 1


def test_a_call_to_localhost_is_answered_by_the_first_node() -> None:
    @route("GET /nodes/{node}/dns")
    def read(call: Call) -> Any:
        return call.node

    answer, _ = perform(read, "/nodes/localhost/dns", method="GET")
    assert answer.data == "pve1"
