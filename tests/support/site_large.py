"""A large site: many nodes, guests and specs, written the way people write them."""

from __future__ import annotations

from pathlib import Path

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMockMockMockMockMockMockMockMockMockMockMoc1 one"


def write_large_site(folder: Path, *, nodes: int, guests: int, specs: int, envs: int = 100) -> list[Path]:
    """Write a site in which nothing is wrong, and return all its files."""
    files: dict[str, str] = {
        "site.yaml": "defaults:\n  timezone: UTC\n  domain: big.example\n  packages: [htop, curl, wget]\n",
        "secrets.yaml": _secrets(nodes),
        "postures/dev.yaml": "auth:\n  method: network\nssh:\n  port: 22\npackages: [strace]\n",
        "presets/vm-small.yaml": "cores: 2\nmemory: 2048\ndisk: 10\n",
        "presets/vm-large.yaml": "cores: 8\nmemory: 16384\ndisk: 64\n",
    }
    for number in range(20):
        files[f"vms/template-{number}.yaml"] = (
            f"preset: vm-small\nimage: debian-12\ncores: {number % 8 + 1}\n"
        )
    for number in range(nodes):
        files[f"nodes/node-{number}.yaml"] = _node(number)
    for number in range(specs):
        files[f"specs/spec-{number}.yaml"] = _spec(number)
    each = guests // envs
    for number in range(envs):
        files[f"envs/env-{number}.yaml"] = _env(number, each, specs=specs)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return [folder / name for name in files]


def _secrets(nodes: int) -> str:
    tokens = "".join(
        f"  node-{number}: root@pam!tofu=00000000-0000-0000-0000-{number:012}\n" for number in range(nodes)
    )
    return f"api_tokens:\n{tokens}passwords:\n  vm_root: $6$salt$hash\nssh_keys:\n  one: {KEY}\n"


def _node(number: int) -> str:
    address = f"172.16.{number // 250}.{number % 250 + 1}"
    return f"""\
# The node number {number}
node: node-{number}
api_endpoint: https://{address}:8006
api_token: node-{number}
datastore: local-zfs
ip: {address}
ssh_user: root
"""


def _spec(number: int) -> str:
    return f"""\
schema_version: 1
identity:
  hostname: spec-{number}
access:
  posture: dev
  users:
    - name: ops
      sudo: true
      ssh_keys: [one]
platform:
  packages: [nginx, git, jq]
  services:
    enable: [nginx]
    disable: [rpcbind]
"""


def _env(number: int, guests: int, *, specs: int) -> str:
    lines = [f"posture: dev\nvmid_base: {100_000 + number * 1000}\nvms:"]
    for index in range(guests):
        lines.append(f"""\
  - name: guest-{number}-{index}
    template: template-{index % 20}
    ip: 10.{number}.{index // 250}.{index % 250 + 1}/8
    gateway: 10.255.0.1
    memory: 4096
    spec: spec-{(number * guests + index) % specs}
    packages: [vim, tmux]""")
    return "\n".join(lines) + "\n"
