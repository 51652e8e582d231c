"""`make demo`: the main job, start to end, on a simulated cluster.

Each step is the real command, shown as one would type it: a lab with two nodes, a new site, a plan, an apply
of virtual machines and containers, a second plan without changes, an accident that is refused, a change made
by hand that is found and corrected, and the removal of everything. All of it is in a folder of its own.
"""

from __future__ import annotations

import ssl
import sys
import urllib.parse
import urllib.request

from scripts.demo_steps import Demo, play_in_view, say

# Long enough to be seen, short enough to be waited for.
LATENCY = "download=1,create=0.5,clone=1,start=0.3,boot=1.5"
ENV = """\
description: Guests on two nodes
posture: local
node: lab
vms:
  - {name: web-1, vmid: 101, preset: vm-small, image: debian-12, network: lan, tags: [web]}
  - {name: web-2, vmid: 102, preset: vm-small, image: debian-12, network: lan, tags: [web], node: lab-pve2}
  - {name: database, vmid: 103, preset: vm-medium, image: debian-13, network: lan, protection: false}
  - {name: proxy, vmid: 104, type: ct, image: debian-13-ct, cores: 1, memory: 512, disk: 4, network: lan}
"""
MORE = """\
Continue with docs/tutorial/first-steps.md, or at once:
  .venv/bin/stackyard lab up && .venv/bin/stackyard init my-yard"""


def play(demo: Demo) -> None:
    """Show each step."""
    lab = ("lab", "up", "--name", "demo", "--nodes", "pve1,pve2", "--port", "0", "--latency", LATENCY)
    demo.run("A simulated Proxmox VE cluster", *lab, where=demo.folder)
    demo.run("A site to start with", "init", "yard", "--lab", "demo", where=demo.folder)
    env = demo.home / "envs" / "demo.yaml"
    env.write_text(ENV)
    say(f"\nenvs/demo.yaml:\n{ENV}")
    demo.run("Is everything right?", "site", "validate")
    demo.run("What would change", "plan", "demo")
    demo.run("Apply it, and verify that the guests are up", "apply", "demo", "--yes")
    demo.run("A second plan has nothing to do", "plan", "demo", "--detailed-exitcode")
    say("\nSomebody deletes a guest from envs/demo.yaml by accident:")
    env.write_text("".join(line for line in ENV.splitlines(keepends=True) if "database" not in line))
    demo.run("An accident is refused", "apply", "demo", status=1)
    env.write_text(ENV)
    meddle(demo)
    demo.run("What changed by hand is found", "drift", "demo", "--detailed-exitcode", status=2)
    demo.run("And corrected", "apply", "demo", "--yes")
    names = "web-1,web-2,database,proxy"
    demo.run("Everything is removed, by name", "destroy", "demo", "--allow-destroy", names, "--yes")


def meddle(demo: Demo) -> None:
    """Change a guest by hand, past stackyard, as somebody in the web interface would."""
    ready = demo.asked("lab", "status", "--name", "demo")
    say("\nSomebody changes a guest by hand, in the API of Proxmox:")
    say("$ PUT /nodes/pve1/qemu/103/config  tags=surprise  description='do not touch'")
    request = urllib.request.Request(  # noqa: S310 -- the address is the lab's
        f"{ready['url']}/api2/json/nodes/pve1/qemu/103/config",
        data=urllib.parse.urlencode({"tags": "surprise", "description": "do not touch"}).encode(),
        headers={"Authorization": f"PVEAPIToken={ready['api_token']}"},
        method="PUT",
    )
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with urllib.request.urlopen(request, context=context, timeout=30):  # noqa: S310 -- as above
        pass


if __name__ == "__main__":
    sys.exit(play_in_view("yard", play, MORE))
