"""Sites to test with: the one of the seed, its worked example, and one that uses everything."""

from __future__ import annotations

from pathlib import Path

from stackyard.base.diagnostics import Diagnostic
from stackyard.sources.site.load import Site

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMockMockMockMockMockMockMockMockMockMockMoc1 one"
KEY_2 = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQDMockMock two"
TOKEN = "root@pam!tofu=11111111-2222-3333-4444-555555555555"
HASH = "$6$salt$abcdefghijklmnopqrstuvwxyz0123456789"

# What the seed shows, file by file.
SEED: dict[str, str] = {
    "site.yaml": """\
# Site-wide defaults
defaults:
  timezone: America/Denver
  domain: example.com
  packages: [htop, curl, wget]
  pve_remove_subscription_nag: true
  spec_server: https://controller:44443
""",
    "secrets.yaml": f"""\
api_tokens:
  pve: {TOKEN}
  father: {TOKEN}
passwords:
  vm_root: {HASH}
ssh_keys:
  one: {KEY}
  two: {KEY_2}
auth:
  site_token: site-token-value
  node_tokens:
    test: node-token-of-test
""",
    "hosts/father.yaml": """\
host: father
network:
  interfaces:
    vmbr0: {type: bridge, ports: [eno1], address: 10.0.12.61/24, gateway: 10.0.12.1}
access:
  host_user: deb
""",
    "nodes/pve.yaml": """\
api_endpoint: https://localhost:8006
api_token: pve
datastore: local-zfs
""",
    "nodes/father.yaml": """\
host: father
api_endpoint: https://10.0.12.61:8006
api_token: father
datastore: local-zfs
ip: 10.0.12.61
""",
    "vms/presets/xsmall.yaml": "cores: 1\nmemory: 1024\ndisk: 8\n",
    "vms/presets/small.yaml": "cores: 2\nmemory: 2048\ndisk: 10\n",
    "vms/presets/large.yaml": "cores: 4\nmemory: 8192\ndisk: 40\n",
    "vms/test.yaml": "preset: small\nimage: debian-12\n",
    "vms/nested-pve.yaml": "preset: large\nimage: debian-13-pve\ncores: 2\ndisk: 64\n",
    "postures/dev.yaml": """\
ssh_port: 22
ssh_permit_root_login: "yes"
ssh_password_authentication: "yes"
sudo_nopasswd: true
fail2ban_enabled: false
packages: [net-tools, strace]
""",
    "postures/prod.yaml": """\
ssh_permit_root_login: "no"
ssh_password_authentication: "no"
fail2ban_enabled: true
""",
    "v2/postures/dev.yaml": """\
auth: {method: network}
ssh: {port: 22, permit_root_login: "yes", password_authentication: "yes"}
sudo: {nopasswd: true}
fail2ban: {enabled: false}
packages: [net-tools, strace, tcpdump]
""",
    "v2/postures/stage.yaml": "auth: {method: site_token}\nssh: {permit_root_login: no}\n",
    "v2/postures/prod.yaml": """\
auth: {method: node_token}
ssh: {permit_root_login: no, password_authentication: no}
fail2ban: {enabled: true}
""",
    "v2/presets/vm-small.yaml": "cores: 2\nmemory: 2048\ndisk: 10\n",
    "v2/presets/vm-medium.yaml": "cores: 2\nmemory: 4096\ndisk: 20\n",
    "v2/presets/vm-large.yaml": "cores: 4\nmemory: 8192\ndisk: 40\n",
    "v2/specs/base.yaml": """\
schema_version: 1
access:
  posture: dev
  users:
    - {name: homestak, sudo: true}
    - {name: ops, ssh_keys: [ssh_keys.two]}
platform:
  packages: [htop, git]
  services: {enable: [chrony], disable: [rpcbind]}
config:
  timezone: Europe/Zurich
""",
    "envs/dev.yaml": """\
posture: dev
vmid_base: 99900
vms:
  - name: test
    image: debian-12
    cores: 1
    memory: 2048
    disk: 20
""",
    "manifests/n2-quick.yaml": """\
schema_version: 2
name: n2-quick
pattern: tiered
nodes:
  - {name: root-pve, type: pve, preset: vm-large, image: debian-13-pve, vmid: 99011, disk: 64}
  - {name: edge, type: vm, preset: vm-medium, image: debian-12, vmid: 99021, parent: root-pve}
""",
}

# The newer layout: everything at the top, newer names, networks of its own, and all that the model has.
FULL: dict[str, str] = {
    "site.yaml": """\
defaults:
  timezone: UTC
  domain: lab.example
  host_user: admin
  vm_user: ops
  bridge: vmbr0
  gateway: 192.0.2.1
  dns_servers: [192.0.2.53]
  packages: [htop]
networks:
  lan: {type: bridge, bridge: vmbr0, cidr: 192.0.2.0/24, gateway: 192.0.2.1}
  storage: {type: vlan, bridge: vmbr0, tag: 30, cidr: 198.51.100.0/24}
images:
  alpine:
    url: https://images.example/alpine.qcow2
    checksum: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
    checksum_algorithm: sha256
  debian-ct: {url: https://images.example/debian-13.tar.zst}
files:
  hook: {kind: snippet, file_name: hook.sh, content: "#!/bin/sh\\n"}
""",
    "secrets.yaml": f"""\
api_tokens: {{pve1: {TOKEN}, pve2: {TOKEN}}}
passwords: {{vm_root: {HASH}}}
ssh_keys: {{one: {KEY}}}
auth: {{signing_key: "{"ab" * 32}"}}
""",
    "nodes/pve1.yaml": "api_endpoint: https://192.0.2.11:8006\ndatastore: local-lvm\nip: 192.0.2.11\n",
    "nodes/pve2.yaml": "api_endpoint: https://192.0.2.12:8006\ndatastore: ceph\nip: 192.0.2.12\n",
    "presets/vm-small.yaml": "cores: 2\nmemory: 2048\ndisk: 10\n",
    "postures/dev.yaml": "auth: {method: network}\nsudo: {nopasswd: false}\npackages: [strace]\n",
    "specs/web.yaml": """\
schema_version: 1
access:
  users: [{name: www, sudo: true, groups: [adm], shell: /bin/bash}, {name: deploy}]
platform: {packages: [nginx]}
""",
    "envs/shop.yaml": """\
node: pve1
vmid_base: 20000
networks:
  shop:
    type: vxlan
    zone: shop
    tag: 20010
    cidr: 10.10.20.0/24
    router: router
pools: {shop: {comment: The shop}}
vms:
  - name: router
    preset: vm-small
    image: debian-12
    nics:
      - {network: lan, ipv4: 192.0.2.20/24}
      - {network: shop, ipv4: 10.10.20.1/24}
  - name: web1
    preset: vm-small
    image: alpine
    network: shop
    ip: 10.10.20.11/24
    spec: web
    pool: shop
    tags: [web, shop]
    cpu: {type: host, sockets: 2}
    memory: {dedicated_mib: 4096, floating_mib: 1024}
    disks: [{discard: true, ssd: true}, {size_gib: 50, interface: scsi5}]
    hook_script: {file: hook}
    startup: {order: 2, up_delay_s: 30}
    depends_on: [router]
  - name: cache
    type: ct
    image: debian-ct
    node: pve2
    cores: 1
    memory: {dedicated_mib: 512, swap_mib: 0}
    disk: 4
    network: storage
    ip: 198.51.100.7/24
    gateway: null
    features: {nesting: true}
    mounts: [{path: /data, volume: ceph, size_gib: 8}]
""",
}


def write_site(folder: Path, files: dict[str, str] | None = None, /, **changed: str | None) -> Path:
    """Write a site; `changed` replaces or (with None) leaves out files, `__` standing for `/` in a name."""
    named = {f"{name.replace('__', '/').replace('_dash_', '-')}.yaml": text for name, text in changed.items()}
    for name, text in {**(SEED if files is None else files), **named}.items():
        if text is not None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return folder


def findings(folder: Path) -> list[Diagnostic]:
    """Return everything that is found in a site."""
    return list(Site.open(folder).found)


def codes(folder: Path) -> list[str]:
    """Return the codes of everything that is wrong with a site, warnings left out."""
    return [found.kind.code for found in Site.open(folder).found.errors]
