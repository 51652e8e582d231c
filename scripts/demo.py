"""`make demo`: the main job, start to end, on a simulated cluster.

Each step is the real command, shown as one would type it: a lab with two nodes, a new site, a plan, an apply
of virtual machines and containers, a second plan without changes, an accident that is refused, a change made
by hand that is found and corrected, and the removal of everything. All of it is in a folder of its own.
"""

from __future__ import annotations

import json
import os
import shlex
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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


class DemoFailedError(Exception):
    """A step did not end as it should."""


@dataclass
class Demo:
    """A folder in which the demo runs, and what it has shown."""

    folder: Path
    shown: list[tuple[str, float]] = field(default_factory=list)

    @property
    def site(self) -> Path:
        """The site of the demo."""
        return self.folder / "yard"

    def environment(self) -> dict[str, str]:
        """Return the environment: the user's, but for everything that would be left behind at home."""
        kept = {
            key: value for key, value in os.environ.items() if not key.startswith(("STACKYARD_", "SOPS_"))
        }
        if chosen := os.environ.get("STACKYARD_TOFU"):
            kept["STACKYARD_TOFU"] = chosen
        own = {
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "XDG_DATA_HOME": str(self.folder / "data"),
            "XDG_STATE_HOME": str(self.folder / "state"),
        }
        return {**kept, **own}

    def run(self, title: str, *words: str, status: int = 0, where: Path | None = None) -> None:
        """Run a command in full view, which has to end with some status."""
        say(f"\n\033[1m{title}\033[0m" if sys.stdout.isatty() else f"\n{title}")
        say(f"$ stackyard {shlex.join(words)}")
        began_s = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "stackyard", *words],
            cwd=where or self.site,
            env=self.environment(),
            check=False,
        )
        if done.returncode != status:
            raise DemoFailedError(
                f"`stackyard {shlex.join(words)}` ended with {done.returncode}, not {status}."
            )
        self.shown.append((title, time.monotonic() - began_s))

    def asked(self, *words: str) -> dict[str, Any]:
        """Run a command out of view and return what it says as JSON."""
        done = subprocess.run(
            [sys.executable, "-m", "stackyard", *words, "--json"],
            cwd=self.folder,
            env=self.environment(),
            capture_output=True,
            check=True,
        )
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    def meddle(self) -> None:
        """Change a guest by hand, past stackyard, as somebody in the web interface would."""
        ready = self.asked("lab", "status", "--name", "demo")
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


def main() -> int:
    """Run the demo."""
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="stackyard-demo-") as name:
        demo = Demo(Path(name))
        try:
            play(demo)
        except DemoFailedError as err:
            say(f"\nThe demo failed: {err}")
            return 1
        finally:
            words = ["-m", "stackyard", "lab", "down", "--name", "demo"]
            subprocess.run([sys.executable, *words], env=demo.environment(), capture_output=True, check=False)
    summarise(demo, time.monotonic() - began_s)
    return 0


def play(demo: Demo) -> None:
    """Show each step."""
    lab = ("lab", "up", "--name", "demo", "--nodes", "pve1,pve2", "--port", "0", "--latency", LATENCY)
    demo.run("A simulated Proxmox VE cluster", *lab, where=demo.folder)
    demo.run("A site to start with", "init", "yard", "--lab", "demo", where=demo.folder)
    env = demo.site / "envs" / "demo.yaml"
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
    demo.meddle()
    demo.run("What changed by hand is found", "drift", "demo", "--detailed-exitcode", status=2)
    demo.run("And corrected", "apply", "demo", "--yes")
    names = "web-1,web-2,database,proxy"
    demo.run("Everything is removed, by name", "destroy", "demo", "--allow-destroy", names, "--yes")


def summarise(demo: Demo, took_s: float) -> None:
    """Say what was shown and where to go on."""
    say("\nWhat was shown:")
    for title, step_s in demo.shown:
        say(f"  {title:<52} {step_s:5.1f} s")
    say(f"  {'in all':<52} {took_s:5.1f} s")
    say("\nContinue with docs/tutorial/first-steps.md, or at once:")
    say("  .venv/bin/stackyard lab up && .venv/bin/stackyard init my-yard")


def say(text: str) -> None:
    """Print a line at once, so that it stands before what a command prints."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
