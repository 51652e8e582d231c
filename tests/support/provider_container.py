"""Containers as configurations write them, for tests of the built-in provider and of its parity with bpg."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pvelab.world.storage.contents import put_stand_in
from stackyard import lab

__all__ = [
    "CHANGES",
    "CLONES",
    "CREATED",
    "REPLACED",
    "TEMPLATE",
    "Case",
    "container",
    "plant_templates",
    "plant_templates_here",
    "stack_of",
]

TEMPLATE = "local:vztmpl/debian-13-standard_13.1-1_amd64.tar.zst"
HOOK = "local:snippets/hook.pl"
POOL = "apps"
NAME = "proxmox_virtual_environment_container"

# What a usual container has; cases say what they have in place of it or beside it.
USUAL: Mapping[str, str] = {
    "disk": 'disk {\n datastore_id = "local-lvm"\n size = 2\n}',
    "initialization": 'initialization {\n hostname = "usual"\n ip_config {\n ipv4 { address = "dhcp" }\n}\n}',
    "network_interface": 'network_interface { name = "eth0" }',
    "operating_system": f'operating_system {{\n template_file_id = "{TEMPLATE}"\n type = "debian"\n}}',
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A container that is made, and what it is changed to."""

    before: str
    after: str


def plant_templates(running: lab.Running) -> None:
    """Put the template into each node's storage, of a lab in another thread."""
    running.on_loop(lambda: plant_templates_here(running))


def plant_templates_here(running: lab.Running) -> None:
    """Put the template into each node's storage, of a lab in this thread."""
    with running.world.store.transaction():
        for node in running.nodes:
            put_stand_in(running.world, TEMPLATE, node, 100 * 2**20)
            put_stand_in(running.world, HOOK, node, 100)
        running.world.store.put("pools", POOL, {"comment": "of the test"})


def container(name: str, vm_id: int | None, text: str = "", *, usual: Mapping[str, str] = USUAL) -> str:
    """Return a container; a part of the usual ones that the text has itself is left out."""
    parts = [part for key, part in usual.items() if f"{key} {{" not in text]
    if "clone {" in text:
        parts = []
    if "initialization {" in text and "address =" not in text and "started =" not in text:
        # bpg waits ten seconds in every read of a container that runs without an address.
        parts.append("started = false")
    number = [] if vm_id is None else [f"vm_id = {vm_id}"]
    node = [] if "node_name =" in text.partition("{")[0] else ['node_name = "pve1"']
    return f'resource "{NAME}" "{name}" {{\n' + "\n".join([*node, *number, text, *parts]) + "\n}\n"


def stack_of(texts: Mapping[str, str]) -> str:
    """Return a configuration with all of these containers, numbered from 200."""
    return "".join(container(name, 200 + i, text) for i, (name, text) in enumerate(texts.items()))


CREATED: Mapping[str, Mapping[str, str]] = {
    "plain attributes": {
        "usual": "",
        "described": 'description = "two\\nlines"\ntags = ["b", "a"]',
        "stopped": "started = false\nstart_on_boot = false",
        "unprivileged": "unprivileged = true",
        "hooked": f'hook_script_file_id = "{HOOK}"',
        "pooled": f'pool_id = "{POOL}"',
        "guarded": "protection = false\nhook_script_file_id = null",
        "template": "template = true\nstarted = false",
        "timed": "timeout_create = 100\ntimeout_delete = 30\ntimeout_update = 90\ntimeout_clone = 80",
        "environment": 'environment_variables = { B = "x=y", A = "1,2", EMPTY = "" }',
        "empty": 'description = ""\ntags = []\nhook_script_file_id = ""\npool_id = ""\n'
        "environment_variables = {}",
    },
    "hardware": {
        "cpu": "cpu {\n cores = 2\n limit = 1.5\n units = 512\n}",
        "cpu_zero": "cpu {\n cores = 4\n limit = 0\n}",
        "cpu_default": "cpu {}",
        "other_arch": 'cpu { architecture = "arm64" }\nstarted = false',
        "memory": "memory {\n dedicated = 1024\n swap = 256\n}",
        "memory_default": "memory {}",
        "memory_only": "memory { dedicated = 2048 }",
        "console": 'console {\n type = "shell"\n tty_count = 4\n}',
        "no_console": "console { enabled = false }",
        "console_default": "console {}",
        "features": "features {\n nesting = true\n keyctl = true\n fuse = true\n"
        ' mount = ["nfs", "cifs"]\n}\nunprivileged = true',
        "features_default": "features {}",
        "startup": "startup {\n order = 3\n up_delay = 10\n}",
        "startup_zero": "startup {\n order = 0\n down_delay = 0\n}",
        "devices": 'device_passthrough { path = "/dev/net/tun" }\n'
        'device_passthrough {\n path = "/dev/fuse"\n mode = "0666"\n uid = 3\n gid = 44\n'
        " deny_write = true\n}",
    },
    "disks": {
        "options": 'disk {\n datastore_id = "local-lvm"\n size = 3\n'
        ' mount_options = ["noatime", "discard"]\n acl = true\n}',
        "flags": 'disk {\n datastore_id = "local-lvm"\n size = 3\n quota = true\n replicate = true\n}',
        "directory": 'disk { datastore_id = "local" }',
        "default_size": 'disk { datastore_id = "local-lvm" }',
        "volume": 'mount_point {\n volume = "local-lvm"\n size = "2G"\n path = "/data"\n backup = true\n}',
        "volume_options": 'mount_point {\n volume = "local-lvm"\n size = "1G"\n path = "/a"\n acl = true\n'
        ' replicate = false\n mount_options = ["noatime", "nosuid"]\n}',
        "two_volumes": 'mount_point {\n volume = "local-lvm"\n size = "1G"\n path = "/a"\n}\n'
        'mount_point {\n volume = "local"\n size = "2G"\n path = "/b"\n read_only = true\n}',
        "bind": 'mount_point {\n volume = "/mnt/shared"\n path = "/shared"\n shared = true\n}',
        "many": "".join(f'mount_point {{\n volume = "/mnt/m{i}"\n path = "/m{i}"\n}}\n' for i in range(12)),
    },
    "initialization": {
        "dhcp": 'initialization {\n hostname = "dhcp"\n ip_config {\n ipv4 { address = "dhcp" }\n'
        ' ipv6 { address = "auto" }\n}\n}',
        "static": 'initialization {\n hostname = "static"\n ip_config {\n ipv4 {\n'
        ' address = "10.1.2.3/24"\n gateway = "10.1.2.1"\n}\n'
        ' ipv6 {\n address = "fd00::9/64"\n gateway = "fd00::1"\n}\n}\n}',
        "only_ipv6": 'initialization {\n hostname = "six"\n ip_config {\n ipv6 { address = "dhcp" }\n}\n}',
        "dns": 'initialization {\n hostname = "dns"\n dns {\n domain = "example.org"\n'
        ' servers = ["1.1.1.1", "9.9.9.9"]\n}\n}',
        "old_dns": 'initialization {\n hostname = "old-dns"\n dns {\n domain = "example.org"\n'
        ' server = "1.1.1.1"\n}\n}',
        "only_domain": 'initialization {\n hostname = "domain"\n dns { domain = "example.org" }\n}',
        "empty_dns": 'initialization {\n hostname = "nothing"\n dns {}\n}',
        "account": 'initialization {\n hostname = "account"\n user_account {\n password = "secret-enough"\n'
        ' keys = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA me"]\n}\n}',
        "only_keys": 'initialization {\n hostname = "keys"\n user_account {\n'
        ' keys = ["ssh-ed25519 AAAAC3Nz"]\n}\n}',
        "entrypoint": 'initialization {\n hostname = "entry"\n entrypoint = "/bin/init --now"\n}',
        "waits": 'wait_for_ip { ipv4 = true }\ninitialization {\n hostname = "waits"\n'
        ' ip_config {\n ipv4 { address = "dhcp" }\n}\n}',
    },
    "network": {
        "none": 'initialization { hostname = "none" }',
        "settings": 'network_interface {\n name = "eth0"\n bridge = "vmbr0"\n firewall = true\n'
        " rate_limit = 12.5\n"
        ' mtu = 1400\n vlan_id = 7\n mac_address = "BC:24:11:00:00:07"\n}',
        "two": 'network_interface { name = "eth0" }\nnetwork_interface {\n name = "eth1"\n'
        " rate_limit = 10\n}\n"
        'initialization {\n hostname = "two"\n ip_config {\n ipv4 { address = "dhcp" }\n}\n'
        ' ip_config {\n ipv4 { address = "10.9.0.2/16" }\n}\n}',
        "ten": "".join(f'network_interface {{ name = "eth{i}" }}\n' for i in range(10)),
        "host_managed": 'network_interface {\n name = "eth0"\n host_managed = true\n}',
        "mapped": 'unprivileged = true\nidmap {\n type = "uid"\n container_id = 0\n'
        " host_id = 100000\n size = 65536\n}\n"
        'idmap {\n type = "gid"\n container_id = 0\n host_id = 100000\n size = 65536\n}',
    },
}

CHANGES: Mapping[str, Case] = {
    "description": Case(before="", after='description = "now described"'),
    "description_away": Case(before='description = "gone soon"', after=""),
    "hook": Case(before="", after=f'hook_script_file_id = "{HOOK}"'),
    "hook_away": Case(before=f'hook_script_file_id = "{HOOK}"', after=""),
    "tags": Case(before='tags = ["a"]', after='tags = ["c", "b"]'),
    "protection": Case(before="protection = true", after="protection = false"),
    "on_boot": Case(before="", after="start_on_boot = false"),
    "stopped": Case(before="", after="started = false"),
    "started": Case(before="started = false", after=""),
    "cpu": Case(before="cpu { cores = 2 }", after="cpu {\n cores = 3\n limit = 2\n units = 100\n}"),
    "cpu_limit_away": Case(before="cpu { limit = 2 }", after="cpu {}"),
    "cpu_away": Case(before="cpu { cores = 2 }", after=""),
    "memory": Case(before="memory { dedicated = 1024 }", after="memory {\n dedicated = 2048\n swap = 100\n}"),
    "memory_away": Case(before="memory { dedicated = 1024 }", after=""),
    "console": Case(before="", after='console { type = "console" }'),
    "console_away": Case(before="console { enabled = false }", after=""),
    "features": Case(before="", after="features { nesting = true }"),
    "features_off": Case(before="features { nesting = true }", after="features { nesting = false }"),
    "features_away": Case(before="features { nesting = true }", after=""),
    "startup": Case(before="startup { order = 1 }", after="startup { up_delay = 5 }"),
    "startup_away": Case(before="startup { order = 1 }", after=""),
    "environment": Case(
        before='environment_variables = { A = "1" }', after='environment_variables = { B = "2" }'
    ),
    "environment_away": Case(before='environment_variables = { A = "1" }', after=""),
    "disk_grows": Case(before="", after='disk {\n datastore_id = "local-lvm"\n size = 5\n}'),
    "disk_options": Case(
        before="",
        after='disk {\n datastore_id = "local-lvm"\n size = 2\n acl = true\n mount_options = ["noatime"]\n}',
    ),
    "disk_flags_away": Case(
        before='disk {\n datastore_id = "local-lvm"\n size = 2\n acl = true\n quota = true\n}', after=""
    ),
    "mount_changes": Case(
        before='mount_point {\n volume = "local-lvm"\n size = "1G"\n path = "/a"\n}',
        after='mount_point {\n volume = "local-lvm"\n size = "1G"\n path = "/b"\n backup = true\n}',
    ),
    "device": Case(
        before='device_passthrough { path = "/dev/fuse" }',
        after='device_passthrough { path = "/dev/net/tun" }\ndevice_passthrough { path = "/dev/fuse" }',
    ),
    "hostname": Case(
        before="",
        after='initialization {\n hostname = "renamed"\n ip_config {\n ipv4 { address = "dhcp" }\n}\n}',
    ),
    "dns": Case(
        before="",
        after='initialization {\n hostname = "usual"\n dns {\n servers = ["1.1.1.1"]\n'
        ' domain = "example.net"\n}\n ip_config {\n ipv4 { address = "dhcp" }\n}\n}',
    ),
    "dns_away": Case(
        before='initialization {\n hostname = "usual"\n dns { servers = ["1.1.1.1"] }\n'
        ' ip_config {\n ipv4 { address = "dhcp" }\n}\n}',
        after="",
    ),
    "address": Case(
        before='initialization {\n hostname = "usual"\n ip_config {\n ipv4 { address = "dhcp" }\n}\n}',
        after='initialization {\n hostname = "usual"\n ip_config {\n ipv4 {\n'
        ' address = "10.3.0.2/24"\n gateway = "10.3.0.1"\n}\n}\n}',
    ),
    "second_interface": Case(
        before="",
        after='network_interface { name = "eth0" }\nnetwork_interface {\n name = "eth1"\n firewall = true\n}',
    ),
    "interface_away": Case(
        before='network_interface { name = "eth0" }\nnetwork_interface { name = "eth1" }', after=""
    ),
    "interface_settings": Case(
        before="", after='network_interface {\n name = "eth0"\n vlan_id = 5\n mtu = 1300\n}'
    ),
    "os_type": Case(
        before="", after=f'operating_system {{\n template_file_id = "{TEMPLATE}"\n type = "ubuntu"\n}}'
    ),
    "hostname_entry": Case(
        before="",
        after='initialization {\n hostname = "usual"\n entrypoint = "/sbin/other"\n'
        ' ip_config {\n ipv4 { address = "dhcp" }\n}\n}',
    ),
}

_VOLUME = 'mount_point {\n volume = "local-lvm"\n size = "1G"\n path = "/a"\n}'
_KEYS = 'initialization {\n hostname = "usual"\n user_account { keys = ["ssh-ed25519 AAAA"] }\n}'

REPLACED: Mapping[str, Case] = {
    "smaller": Case(before='disk {\n datastore_id = "local-lvm"\n size = 3\n}', after=""),
    "datastore": Case(before="", after='disk {\n datastore_id = "local"\n size = 2\n}'),
    "mount_added": Case(before="", after=_VOLUME),
    "mount_away": Case(before=_VOLUME, after=""),
    "mount_size": Case(before=_VOLUME, after=_VOLUME.replace("1G", "2G")),
    "mount_volume": Case(before=_VOLUME, after=_VOLUME.replace("local-lvm", "local")),
    "unprivileged": Case(before="", after="unprivileged = true"),
    "template": Case(before="started = false", after="started = false\ntemplate = true"),
    "no_template": Case(before="started = false\ntemplate = true", after="started = false"),
    "keys": Case(before=_KEYS, after=_KEYS.replace("AAAA", "BBBB")),
    "keys_added": Case(before='initialization { hostname = "usual" }', after=_KEYS),
    "keys_away": Case(before=_KEYS, after='initialization { hostname = "usual" }'),
    "other_template": Case(
        before="",
        after='operating_system {\n template_file_id = "local:vztmpl/b.tar.zst"\n type = "debian"\n}',
    ),
    "node": Case(before="", after='node_name = "pve2"'),
}

_SOURCE = f"clone {{ vm_id = {NAME}.source.vm_id }}"

# The first is the source of the others; what a source has of startup, bpg leaves for a second apply.
CLONES: Mapping[str, str] = {
    "source": 'started = false\ndescription = "the source"\ntags = ["a"]\nunprivileged = true\n'
    'network_interface { name = "eth0" }\nnetwork_interface { name = "eth1" }\ncpu { cores = 2 }',
    "plain": _SOURCE,
    "stopped": f"{_SOURCE}\nstarted = false\nstart_on_boot = false",
    "described": f'{_SOURCE}\ndescription = "mine"\ntags = ["x"]',
    "named": f'{_SOURCE}\ninitialization {{ hostname = "named" }}\nstarted = false',
    "sized": f"{_SOURCE}\nmemory {{ dedicated = 700 }}\ncpu {{\n cores = 1\n limit = 1\n}}",
    "wired": f'{_SOURCE}\nstarted = false\nnetwork_interface {{\n name = "eth0"\n vlan_id = 3\n}}',
    "featured": f"{_SOURCE}\nfeatures {{ nesting = true }}\nstartup {{ order = 2 }}\nunprivileged = true",
    "console": f'{_SOURCE}\nconsole {{ type = "shell" }}\nprotection = false',
    "mounted": f'{_SOURCE}\nmount_point {{\n volume = "local-lvm"\n size = "1G"\n path = "/a"\n}}',
    "passed": f'{_SOURCE}\ndevice_passthrough {{ path = "/dev/fuse" }}',
    "template": f"{_SOURCE}\ntemplate = true\nstarted = false",
    "elsewhere": f'clone {{\n vm_id = {NAME}.source.vm_id\n datastore_id = "local"\n}}',
}
