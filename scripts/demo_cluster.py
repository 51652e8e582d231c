"""`make demo-cluster`: from nothing to a Kubernetes cluster whose software Git describes, without hardware.

Each step is the real command, shown as one would type it: a lab with three nodes, a new repository, one
command that makes VMs, installs Talos, forms etcd, applies the network, Flux and secrets, and waits until
Flux has reconciled; a second run changes nothing. Flux fetches the repository over SSH with a deploy key.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.git_ssh import GitHost, serve_git_in_thread

from scripts.demo_steps import Demo, DemoFailedError, play_in_view, say

MANIFESTS = Path(__file__).parents[1] / "examples" / "cluster" / "kubernetes"
# Long enough to be seen, short enough to be waited for.
LATENCY = "download=1,clone=1,install=3,boot=2,reboot=1,bootstrap=2,apiserver=2"
BOOTSTRAP = """\
network:
  manifests: kubernetes/bootstrap/network.yaml
flux:
  manifests: kubernetes/bootstrap/flux.yaml
  url: {url}
  branch: main
  deploy_key: github-deploy.key
  known_hosts: known_hosts
  folder: kubernetes
"""
MORE = """\
Continue with docs/tutorial/talos-cluster.md, or at once:
  .venv/bin/stackyard lab up --factory-port 0 --guest-network 127.230.0.0/16
  .venv/bin/stackyard cluster init --lab default"""


def play(demo: Demo) -> None:
    """Show each step."""
    with serve_git_in_thread() as host:
        words = ("--nodes", "pve1,pve2,pve3", "--port", "0", "--factory-port", "0")
        network = ("--guest-network", "127.231.0.0/16", "--latency", LATENCY)
        demo.home.mkdir()
        demo.run("A simulated Proxmox VE cluster", "lab", "up", "--name", "demo", *words, *network)
        git(demo, "init", "--quiet", "--initial-branch", "main")
        demo.run("A repository to start with", "cluster", "init", "--nodes", "3", "--lab", "demo")
        write_files(demo, host)
        demo.run("Is everything right?", "cluster", "validate")
        git(demo, "add", "--all")
        git(demo, "commit", "--quiet", "--message", "Describe the cluster and its software")
        demo.run("From nothing to software that Git describes", "cluster", "up", "--yes")
        demo.run("How the cluster is", "cluster", "status")
        demo.run("A second run has nothing to do", "cluster", "up", "--yes")


def write_files(demo: Demo, host: GitHost) -> None:
    """Write what the cluster gets: network, Flux, and the software below kubernetes/."""
    text = BOOTSTRAP.format(url=host.url(demo.home))
    (demo.home / "bootstrap.yaml").write_text(text)
    say(f"\nbootstrap.yaml:\n{text}")
    for file in MANIFESTS.rglob("*.yaml"):
        place = demo.home / "kubernetes" / file.relative_to(MANIFESTS)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(file.read_bytes())
    (demo.home / "known_hosts").write_text(host.known_hosts)
    key = os.open(demo.home / "github-deploy.key", os.O_WRONLY | os.O_CREAT, 0o600)
    with open(key, "w", encoding="utf-8") as stream:
        stream.write(host.private_key)
    with open(demo.home / ".gitignore", "a", encoding="utf-8") as ignored:
        ignored.write("github-deploy.key\n")


def git(demo: Demo, *words: str) -> None:
    """Run git in the repository of the demo, with nothing of the user's settings."""
    person = {"GIT_AUTHOR_NAME": "demo", "GIT_AUTHOR_EMAIL": "demo@example.com"}
    person |= {key.replace("AUTHOR", "COMMITTER"): value for key, value in person.items()}
    env = {**demo.environment(), **person, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", *words], cwd=demo.home, env=env, check=False)
    if done.returncode:
        raise DemoFailedError(f"`git {words[0]}` ended with {done.returncode}.")


if __name__ == "__main__":
    sys.exit(play_in_view("home", play, MORE))
