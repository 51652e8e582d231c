"""A cluster of two nodes with guests that nobody here rendered: made by hand over years, by its looks."""

from __future__ import annotations

import dataclasses
import urllib.parse
from typing import Any

from pvelab.seeds import PREPARED_STORAGES, Seed, SeedCall, SeedFile

__all__ = ["INEXPRESSIBLE", "SEED", "VM_IDS", "with_calls"]

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGdpGkBVKzoMaVmkYmXCFBLQHDSwCC8f6zvZyTMo6tyi anna@home"
NOTES = 'Der Schalter hängt am Küchenlicht 💡\n\n* nicht abschalten\n* "Zitat" & 50 % <b>fett</b>: ${nein}\n'


def call(method: str, path: str, **parameters: Any) -> SeedCall:
    named = {key.replace("__", "-"): value for key, value in parameters.items()}
    return SeedCall(method=method, path=path, parameters=named)


def vm(vm_id: int, node: str = "pve1", **parameters: Any) -> SeedCall:
    return call("POST", f"/nodes/{node}/qemu", vmid=vm_id, **parameters)


def ct(vm_id: int, node: str = "pve1", **parameters: Any) -> SeedCall:
    template = "local:vztmpl/debian-12.tar.zst"
    return call(
        "POST", f"/nodes/{node}/lxc", vmid=vm_id, ostemplate=template, password="not-told", **parameters
    )


_VMS = (
    # As the wizard of the web page makes them.
    vm(
        100,
        name="web",
        cores=2,
        memory=2048,
        cpu="x86-64-v2-AES",
        ostype="l26",
        scsihw="virtio-scsi-single",
        scsi0="local-lvm:32,iothread=1",
        ide2="none,media=cdrom",
        net0="virtio,bridge=vmbr0,firewall=1",
        boot="order=scsi0;ide2;net0",
        numa=0,
        sockets=1,
        tags="prod;web",
        agent="1",
        onboot=1,
        start=1,
    ),
    # Several disks on several buses, with options of all kinds; stopped.
    vm(
        101,
        name="nas",
        cores=4,
        sockets=2,
        memory=8192,
        balloon=4096,
        cpu="host,flags=+aes;-pcid",
        ostype="l26",
        scsihw="virtio-scsi-pci",
        scsi0="local-lvm:16,ssd=1,discard=on",
        scsi1="local-lvm:100,backup=0,cache=writeback",
        virtio2="local-lvm:200,iothread=1,mbps_rd=100,iops_wr=500",
        sata0="local-lvm:4,serial=PARITY-1",
        net0="virtio,bridge=vmbr0",
        startup="order=2,up=30,down=60",
        pool="storage",
        protection=1,
    ),
    # Windows: UEFI, TPM, another machine, a local drive.
    vm(
        102,
        name="win11",
        cores=4,
        memory=8192,
        bios="ovmf",
        machine="pc-q35-8.1",
        ostype="win11",
        cpu="host",
        efidisk0="local-lvm:1,efitype=4m,pre-enrolled-keys=1",
        tpmstate0="local-lvm:1,version=v2.0",
        scsihw="virtio-scsi-single",
        scsi0="local-lvm:64,cache=writeback,discard=on,iothread=1",
        sata0="local:iso/virtio-win.iso,media=cdrom",
        net0="e1000e,bridge=vmbr0,tag=20",
        vga="qxl,memory=32",
        tablet=1,
        agent="enabled=1,fstrim_cloned_disks=1",
        hotplug="disk,network,usb",
    ),
    # A router: many cards, one of them pulled, VLANs, and no agent.
    vm(
        103,
        name="router",
        cores=1,
        memory=1024,
        ostype="other",
        cpu="kvm64",
        scsi0="local-lvm:8",
        net0="virtio=BC:24:11:00:01:00,bridge=vmbr0",
        net1="virtio=BC:24:11:00:01:01,bridge=vmbr0,tag=10,firewall=1",
        net2="virtio=BC:24:11:00:01:02,bridge=vmbr0,trunks=20;30,queues=2",
        net3="e1000=BC:24:11:00:01:03,bridge=vmbr0,link_down=1,rate=12.5",
        vga="serial0",
        serial0="socket",
        agent="0",
        onboot=1,
        startup="order=1",
        description=NOTES,
        start=1,
    ),
    # A cloud-init guest with everything Proxmox itself can tell it.
    vm(
        104,
        name="cloudy.home.arpa",
        cores=2,
        memory=2048,
        ostype="l26",
        cpu="host",
        scsihw="virtio-scsi-pci",
        scsi0="local-lvm:10",
        ide2="local-lvm:cloudinit",
        serial0="socket",
        net0="virtio,bridge=vmbr0",
        ciuser="anna",
        cipassword="told-to-nobody",
        sshkeys=urllib.parse.quote(f"{KEY}\n", safe=""),
        ipconfig0="ip=192.0.2.44/24,gw=192.0.2.1,ip6=auto",
        nameserver="192.0.2.1 192.0.2.2",
        searchdomain="home.arpa",
        agent="1",
        start=1,
    ),
    # A template, and a clone of it that somebody has grown.
    vm(
        9000,
        node="pve2",
        name="debian-template",
        cores=1,
        memory=1024,
        ostype="l26",
        cpu="x86-64-v2-AES",
        scsihw="virtio-scsi-pci",
        scsi0="local-lvm:4",
        ide0="local-lvm:cloudinit",
        net0="virtio,bridge=vmbr0",
        serial0="socket",
        vga="serial0",
        agent="1",
        ipconfig0="ip=dhcp",
    ),
    call("POST", "/nodes/pve2/qemu/9000/template"),
    call("POST", "/nodes/pve2/qemu/9000/clone", newid=105, name="from-template", full=1, pool="storage"),
    call("PUT", "/nodes/pve2/qemu/105/resize", disk="scsi0", size="20G"),
    call("PUT", "/nodes/pve2/qemu/105/config", cores=2, memory=3072, onboot=1),
    call("POST", "/nodes/pve2/qemu/105/status/start"),
    # As `qm create` leaves it: no system, no processor, no agent, no card.
    vm(106, node="pve2", name="bare", memory=512, scsi0="local-lvm:2"),
    # Devices of the node, and arguments for QEMU.
    vm(
        107,
        node="pve2",
        name="gpu",
        cores=8,
        memory=16384,
        machine="q35",
        ostype="l26",
        cpu="host",
        hostpci0="0000:01:00,pcie=1,x-vga=1",
        usb0="host=1d6b:0002,usb3=1",
        scsihw="virtio-scsi-pci",
        scsi0="local-lvm:40",
        net0="virtio,bridge=vmbr0,mtu=1",
        args="-cpu host,+kvm_pv_unhalt",
        vga="none",
        cpuunits=200,
        cpulimit=4,
        affinity="0-3",
    ),
    # The image's own user, no drive any more that would tell it, sound, and things that keep it alive.
    vm(
        108,
        name="desk",
        cores=2,
        memory=2048,
        ostype="l26",
        cpu="host",
        scsihw="virtio-scsi-pci",
        scsi0="local-lvm:10",
        net0="virtio,bridge=vmbr0",
        ipconfig0="ip=dhcp",
        ciuser="anna",
        audio0="device=ich9-intel-hda,driver=spice",
        rng0="source=/dev/urandom",
        watchdog="model=i6300esb,action=reset",
    ),
    vm(
        109,
        name="keyed",
        cores=1,
        memory=1024,
        ostype="l26",
        cpu="host",
        scsihw="virtio-scsi-pci",
        scsi0="local-lvm:5",
        scsi1="local-lvm:cloudinit",
        net0="virtio,bridge=vmbr0",
        sshkeys=urllib.parse.quote(KEY, safe=""),
        ipconfig0="ip6=auto",
        citype="nocloud",
        ciupgrade=0,
        agent="1",
    ),
)
_CONTAINERS = (
    ct(
        200,
        hostname="dns",
        cores=1,
        memory=512,
        swap=512,
        rootfs="local-lvm:4",
        unprivileged=1,
        net0="name=eth0,bridge=vmbr0,ip=192.0.2.53/24,gw=192.0.2.1,firewall=1",
        nameserver="9.9.9.9",
        searchdomain="home.arpa",
        onboot=1,
        tags="infra",
        startup="order=1",
        start=1,
    ),
    # Several volumes, one of them of the node itself, and everything that Docker wants.
    ct(
        201,
        node="pve2",
        hostname="docker",
        cores=4,
        cpulimit=2,
        memory=4096,
        swap=0,
        rootfs="local-lvm:20",
        mp0="local-lvm:50,mp=/var/lib/docker,backup=1",
        mp1="/mnt/media,mp=/media,ro=1",
        mp2="local-lvm:5,mp=/srv/data,mountoptions=noatime;nosuid",
        unprivileged=1,
        features="nesting=1,keyctl=1,fuse=1",
        net0="name=eth0,bridge=vmbr0,ip=dhcp,ip6=auto,hwaddr=BC:24:11:00:02:01",
        net1="name=lan1,bridge=vmbr0,tag=30,ip=10.0.30.5/24,hwaddr=BC:24:11:00:02:02,mtu=1400",
        description="läuft seit 2019\nnicht anfassen",
        pool="storage",
        start=1,
    ),
    # Privileged, stopped, with a device of the node and a console of its own.
    ct(
        202,
        hostname="zigbee",
        cores=2,
        memory=1024,
        swap=256,
        rootfs="local-lvm:8",
        unprivileged=0,
        features="mount=nfs;cifs",
        net0="name=eth0,bridge=vmbr0,ip=manual",
        dev0="/dev/ttyUSB0,mode=0660,gid=20",
        cmode="shell",
        tty=1,
        protection=1,
    ),
    # Nobody said how many cores, and it has no card.
    ct(203, node="pve2", hostname="batch", memory=256, swap=0, rootfs="tank:2", unprivileged=1),
)
_WEB, _DNS = "/nodes/pve1/qemu/100/firewall", "/nodes/pve1/lxc/200/firewall"
# A firewall as somebody clicks it together, one with rules that are off as yet, and copies on another node.
_PROTECTION = (
    call("PUT", f"{_WEB}/options", enable=1, dhcp=0, policy_out="REJECT", log_level_in="info"),
    call("POST", f"{_WEB}/aliases", name="Office", cidr="192.0.2.0/24", comment="the office"),
    call("POST", f"{_WEB}/ipset", name="peers", comment="who talks"),
    call("POST", f"{_WEB}/ipset/peers", cidr="10.1.0.0/16"),
    call("POST", f"{_WEB}/ipset/peers", cidr="10.1.2.0/24", nomatch=1, comment="not these"),
    # Each new rule is put before the others.
    call("POST", f"{_WEB}/rules", type="in", action="DROP", source="+guest/peers", enable=0),
    call("POST", f"{_WEB}/rules", type="in", action="ACCEPT", macro="SSH", source="guest/Office", enable=1),
    call(
        "POST", f"{_WEB}/rules", type="in", action="ACCEPT", proto="tcp", dport="80,443", enable=1, log="err"
    ),
    call("POST", f"{_DNS}/rules", type="in", action="ACCEPT", macro="DNS", iface="net0", comment="names"),
    call("POST", "/cluster/replication", id="203-1", type="local", target="pve1", schedule="daily", rate=10),
)
SEED = Seed(
    name="by-hand",
    nodes=("pve1", "pve2"),
    storages={
        **PREPARED_STORAGES,
        "tank": {"type": "zfspool", "pool": "tank", "content": "images,rootdir"},
    },
    files=(
        SeedFile(volume="local:vztmpl/debian-12.tar.zst", size=1_000_000),
        SeedFile(volume="local:vztmpl/debian-12.tar.zst", node="pve2", size=1_000_000),
        SeedFile(volume="local:iso/virtio-win.iso", size=1_000_000),
    ),
    calls=(call("POST", "/pools", poolid="storage"), *_VMS, *_CONTAINERS, *_PROTECTION),
)
VM_IDS = frozenset((*range(100, 110), 200, 201, 202, 203, 9000))
# What no entry of a site can say, each by its own key.
INEXPRESSIBLE = (
    vm(300, name="sound", memory=512, parallel0="/dev/parport0", localtime=1),
    ct(
        301,
        hostname="clock",
        cores=1,
        memory=256,
        swap=0,
        rootfs="local-lvm:1",
        unprivileged=1,
        timezone="host",
    ),
)


def with_calls(*more: SeedCall) -> Seed:
    """Return the cluster with more guests."""
    return dataclasses.replace(SEED, calls=(*SEED.calls, *more))
