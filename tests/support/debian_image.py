"""A Debian cloud image built from Debian's own packages, once, and kept in the user's cache.

It is what a cloud image is: one disk with a boot loader, cloud-init, the guest agent and an SSH server. It
takes two minutes and a connection to a Debian mirror; whoever lacks the tools skips by name.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

__all__ = ["debian_image"]

_TOOLS = ("mmdebstrap", "mke2fs", "qemu-img", "qemu-system-x86_64")
_SUITE = "bookworm"
_PACKAGES = (
    *("linux-image-cloud-amd64", "systemd-sysv", "udev", "dbus", "openssh-server", "sudo", "iproute2"),
    *("cloud-init", "qemu-guest-agent", "netplan.io", "ifupdown", "isc-dhcp-client"),
    *("grub-common", "grub-pc-bin"),
)
_MIB = 2**20
_SECTOR = 512
_FIRST_SECTOR = 2048
_SIZE = 2000 * _MIB
_LOADER = """\
linux (hd0,msdos1)/vmlinuz root=LABEL=root ro console=ttyS0 net.ifnames=0
initrd (hd0,msdos1)/initrd.img
boot
"""
_MODULES = "biosdisk part_msdos ext2 linux boot"
# A boot under emulation must not wait for what nobody needs; there are no locales to choose from.
_CLOUD = "datasource_list: [ NoCloud, None ]\nlocale: false\n"


def debian_image() -> Path:
    """Return a qcow2 image of Debian, built if it is not in the cache yet; skip where it cannot be."""
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed")
    recipe = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stackyard-tests"
    cache.mkdir(parents=True, exist_ok=True)
    image = cache / f"debian-{_SUITE}-{recipe}.qcow2"
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not image.exists():
            if os.geteuid() != 0:
                pytest.skip("building a Debian image needs root")
            with tempfile.TemporaryDirectory(dir=cache) as folder:
                _build(Path(folder), image)
    return image


def _build(folder: Path, image: Path) -> None:
    root, disk = folder / "root", folder / "disk.raw"
    command = ["mmdebstrap", "--mode=root", "--variant=minbase", f"--include={','.join(_PACKAGES)}", _SUITE]
    _run(*command, str(root))
    (root / "etc/fstab").write_text("LABEL=root / ext4 defaults 0 1\n")
    (root / "etc/cloud/cloud.cfg.d/90_lab.cfg").write_text(_CLOUD)
    (root / "etc/hostname").write_text("debian\n")
    loader = root / "tmp/loader.cfg"
    loader.write_text(_LOADER)
    make = f"grub-mkimage -O i386-pc -p / -c /tmp/loader.cfg -o /tmp/core.img {_MODULES}"
    _run("chroot", str(root), "sh", "-c", make)
    boot, core = (root / "usr/lib/grub/i386-pc/boot.img").read_bytes(), (root / "tmp/core.img").read_bytes()
    for path in (loader, root / "tmp/core.img"):
        path.unlink()
    assert len(core) < (_FIRST_SECTOR - 1) * _SECTOR
    with disk.open("wb") as stream:
        stream.truncate(_SIZE)
        stream.write(boot[:440].ljust(446, b"\0") + _partition() + bytes(48) + b"\x55\xaa" + core)
    offset = f"offset={_FIRST_SECTOR * _SECTOR}"
    blocks = str((_SIZE - _FIRST_SECTOR * _SECTOR) // 4096)
    options = ["-q", "-F", "-t", "ext4", "-b", "4096", "-L", "root", "-E", offset, "-d", str(root)]
    _run("mke2fs", *options, str(disk), blocks)
    _run("qemu-img", "convert", "-c", "-O", "qcow2", str(disk), str(folder / "disk.qcow2"))
    (folder / "disk.qcow2").replace(image)


def _partition() -> bytes:
    """Return the one entry of the partition table: bootable, Linux, from the first sector to the end."""
    count = _SIZE // _SECTOR - _FIRST_SECTOR
    place = _FIRST_SECTOR.to_bytes(4, "little") + count.to_bytes(4, "little")
    return b"\x80\xfe\xff\xff\x83\xfe\xff\xff" + place


def _run(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{argv[0]}: {done.stderr[-3000:]}"
