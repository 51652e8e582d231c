"""`pvecm`: the cluster."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

from pvelab.server.problems import PveError
from pvelab.ssh.programs.cli.model import INTEGER, Command, Tree
from pvelab.ssh.programs.cli.run import Tool
from pvelab.ssh.programs.guest_shared import make_refusal

if TYPE_CHECKING:
    from pvelab.ssh.programs.cli.model import CommandCall, PrintedAnswer
    from pvelab.world.store import Document

__all__ = ["PVECM"]

_JOINING = "its nodes are those that it was started with (`stackyard lab up --nodes`)"
_CONF = "/etc/pve/corosync.conf"


def _require_cluster(asked: CommandCall) -> list[tuple[str, Document]]:
    """Return all nodes in the order of their numbers.

    Raises:
        PveError: The node is alone.
    """
    nodes = asked.session.world.cluster.nodes()
    if len(nodes) < 2:
        raise PveError(f"Error: Corosync config '{_CONF}' does not exist - is this node part of a cluster?")
    return sorted(nodes.items(), key=lambda entry: int(entry[1]["nodeid"]))


async def _status(asked: CommandCall) -> int:
    nodes = _require_cluster(asked)
    world, say = asked.session.world, asked.streams.say
    votes = sum(world.cluster.is_online(name) for name, _ in nodes)
    is_quorate = world.cluster.is_quorate
    now = datetime.datetime.fromtimestamp(world.clock.now(), datetime.UTC)
    own = next(int(node["nodeid"]) for name, node in nodes if name == asked.session.node)
    sections = {
        "Cluster information": {
            "Name": world.cluster.name,
            "Config Version": len(nodes),
            "Transport": "knet",
            "Secure auth": "on",
        },
        "Quorum information": {
            "Date": now.strftime("%a %b %e %H:%M:%S %Y"),
            "Quorum provider": "corosync_votequorum",
            "Nodes": votes,
            "Node ID": f"0x{own:08x}",
            "Ring ID": f"1.{len(nodes):x}",
            "Quorate": "Yes" if is_quorate else "No",
        },
        "Votequorum information": {
            "Expected votes": len(nodes),
            "Highest expected": len(nodes),
            "Total votes": votes,
            "Quorum": f"{len(nodes) // 2 + 1} {'' if is_quorate else 'Activity blocked'}",
            "Flags": "Quorate " if is_quorate else "",
        },
    }
    for title, facts in sections.items():
        lines = [f"{f'{label}:':<17} {value}" for label, value in facts.items()]
        await say("\n".join([title, "-" * len(title), *lines, ""]))
    await say("Membership information\n----------------------\n    Nodeid      Votes Name")
    for name, node in nodes:
        if world.cluster.is_online(name):
            mark = " (local)" if name == asked.session.node else ""
            await say(f"0x{int(node['nodeid']):08x}          1 {node['ip']}{mark}")
    return 0


async def _nodes(asked: CommandCall) -> int:
    nodes = _require_cluster(asked)
    await asked.streams.say("\nMembership information\n----------------------\n    Nodeid      Votes Name")
    for name, node in nodes:
        if asked.session.world.cluster.is_online(name):
            mark = " (local)" if name == asked.session.node else ""
            await asked.streams.say(f"{node['nodeid']:>10} {1:>10} {name}{mark}")
    return 0


async def _refuse_expected(asked: CommandCall) -> int:
    nodes = _require_cluster(asked)
    wanted = int(asked.parameters["expected"])
    online = sum(asked.session.world.cluster.is_online(name) for name, _ in nodes)
    if wanted > len(nodes) or wanted < online:
        raise PveError("Unable to set expected votes: CS_ERR_INVALID_PARAM")
    # With fewer votes expected, a part of the cluster would continue alone, which the lab does not have.
    if wanted != len(nodes):
        raise PveError("the lab does not do this: its quorum is taken away and given back by faults")
    return 0


async def _print_value(shown: PrintedAnswer) -> None:
    await shown.streams.say(str(shown.data))


_TREE: Tree = {
    "add": make_refusal(_JOINING),
    "addnode": make_refusal(_JOINING),
    "apiver": Command(route="GET /cluster/config/apiversion", show=_print_value),
    "create": make_refusal(f"a lab of several nodes is a cluster already; {_JOINING}"),
    "delnode": make_refusal(_JOINING),
    "expected": Command(own=_refuse_expected, arguments=("expected",), parameters={"expected": INTEGER}),
    "keygen": make_refusal("there is no corosync behind it"),
    "nodes": Command(own=_nodes),
    "qdevice": {
        "remove": make_refusal("there is no corosync behind it"),
        "setup": make_refusal("there is no corosync behind it"),
    },
    "status": Command(own=_status),
    "updatecerts": make_refusal("all its nodes have one certificate"),
}

PVECM = Tool("pvecm", _TREE)
