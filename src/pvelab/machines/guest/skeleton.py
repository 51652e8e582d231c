"""The files of a guest: what a fresh Debian has before anyone did anything, and what each boot renews."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
from typing import Any

from . import accounts, packages, services
from .facts import PATH as FACTS
from .links import alternatives, python_modules

__all__ = ["prepare"]

_FOLDERS = {
    "/etc/apt/apt.conf.d": 0o755,
    "/etc/apt/sources.list.d": 0o755,
    "/etc/apt/trusted.gpg.d": 0o755,
    "/etc/cron.d": 0o755,
    "/etc/default": 0o755,
    "/etc/network/interfaces.d": 0o755,
    "/etc/profile.d": 0o755,
    "/etc/skel": 0o755,
    "/etc/ssh/sshd_config.d": 0o755,
    "/etc/ssl/certs": 0o755,
    "/etc/sudoers.d": 0o750,
    "/etc/systemd/system": 0o755,
    "/etc/sysctl.d": 0o755,
    "/home": 0o755,
    "/media": 0o755,
    "/mnt": 0o755,
    "/opt": 0o755,
    "/root": 0o700,
    "/root/.ssh": 0o700,
    "/srv": 0o755,
    "/var/cache/apt/archives": 0o755,
    "/var/lib/apt/lists": 0o755,
    "/var/lib/cloud/data": 0o755,
    "/var/lib/dpkg/info": 0o755,
    "/var/lib/stackyard-lab": 0o755,
    "/var/log/apt": 0o755,
    "/var/mail": 0o775,
    "/var/spool/cron/crontabs": 0o730,
    "/var/tmp": 0o1777,
    "/var/www": 0o755,
}
# The system users of Debian, which file owners may name.
_SYSTEM_USERS = """root:0:/root:/bin/bash
daemon:1:/usr/sbin:/usr/sbin/nologin
bin:2:/bin:/usr/sbin/nologin
sys:3:/dev:/usr/sbin/nologin
sync:4:/bin:/bin/sync
games:5:/usr/games:/usr/sbin/nologin
man:6:/var/cache/man:/usr/sbin/nologin
lp:7:/var/spool/lpd:/usr/sbin/nologin
mail:8:/var/mail:/usr/sbin/nologin
news:9:/var/spool/news:/usr/sbin/nologin
uucp:10:/var/spool/uucp:/usr/sbin/nologin
proxy:13:/bin:/usr/sbin/nologin
www-data:33:/var/www:/usr/sbin/nologin
backup:34:/var/backups:/usr/sbin/nologin
list:38:/var/list:/usr/sbin/nologin
irc:39:/run/ircd:/usr/sbin/nologin
_apt:42:/nonexistent:/usr/sbin/nologin
nobody:65534:/nonexistent:/usr/sbin/nologin
systemd-network:998:/:/usr/sbin/nologin
messagebus:100:/nonexistent:/usr/sbin/nologin
sshd:102:/run/sshd:/usr/sbin/nologin"""
_GROUPS = """root:0 daemon:1 bin:2 sys:3 adm:4 tty:5 disk:6 lp:7 mail:8 news:9 uucp:10 man:12 proxy:13 kmem:15
dialout:20 fax:21 voice:22 cdrom:24 floppy:25 tape:26 sudo:27 audio:29 dip:30 www-data:33 backup:34
operator:37 list:38 irc:39 src:40 _apt:42 shadow:42 utmp:43 video:44 sasl:45 plugdev:46 staff:50 games:60
users:100 nogroup:65534 systemd-journal:999 systemd-network:998 crontab:101 messagebus:102 netdev:103"""
_TEXTS = {
    "/etc/sudoers": (
        "Defaults\tenv_reset\nDefaults\tmail_badpass\n"
        'Defaults\tsecure_path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"\n\n'
        "root\tALL=(ALL:ALL) ALL\n%sudo\tALL=(ALL:ALL) ALL\n\n@includedir /etc/sudoers.d\n",
        0o440,
    ),
    "/etc/ssh/sshd_config": (
        "Include /etc/ssh/sshd_config.d/*.conf\nKbdInteractiveAuthentication no\nUsePAM yes\n"
        "X11Forwarding yes\n"
        "PrintMotd no\nAcceptEnv LANG LC_*\nSubsystem sftp /usr/lib/openssh/sftp-server\n",
        0o644,
    ),
    "/etc/nsswitch.conf": ("passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n", 0o644),
    "/etc/profile": (
        'if [ "$(id -u)" -eq 0 ]; then PS1="# "; else PS1="$ "; fi\n'
        'for i in /etc/profile.d/*.sh; do [ -r "$i" ] && . "$i"; done\nunset i\n',
        0o644,
    ),
    "/etc/bash.bashrc": ("PS1='\\u@\\h:\\w\\$ '\n", 0o644),
    "/etc/skel/.profile": ('[ -n "$BASH_VERSION" ] && [ -f ~/.bashrc ] && . ~/.bashrc\n', 0o644),
    "/etc/skel/.bashrc": ("case $- in *i*) ;; *) return;; esac\nPS1='\\u@\\h:\\w\\$ '\n", 0o644),
    "/etc/shells": ("/bin/sh\n/usr/bin/sh\n/bin/bash\n/usr/bin/bash\n/bin/dash\n", 0o644),
    "/etc/default/locale": ("LANG=C.UTF-8\n", 0o644),
    "/etc/timezone": ("Etc/UTC\n", 0o644),
    "/etc/fstab": ("/dev/sda1 / ext4 rw,discard,errors=remount-ro 0 1\n", 0o644),
    "/etc/login.defs": ("UID_MIN 1000\nUID_MAX 60000\nGID_MIN 1000\nGID_MAX 60000\nUMASK 022\n", 0o644),
    "/etc/locale.gen": ("# en_US.UTF-8 UTF-8\n", 0o644),
    "/etc/crontab": ("SHELL=/bin/sh\n", 0o644),
    "/etc/ld.so.conf": ("include /etc/ld.so.conf.d/*.conf\n", 0o644),
}


def prepare(facts: dict[str, Any]) -> None:
    """Make a fresh guest, or renew what each boot does."""
    os.makedirs("/run/lab", exist_ok=True)
    accounts.replace_file(FACTS, json.dumps(facts))
    for path in ("/run/lock", "/run/systemd/system", "/run/sshd", "/run/user"):
        os.makedirs(path, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.symlink("/run/lock", "/var/lock") if os.path.isdir("/var") else None
    for path, mode in _FOLDERS.items():
        if not os.path.isdir(path):
            os.makedirs(path, exist_ok=True)
            os.chmod(path, mode)
    os.chmod("/tmp", 0o1777)
    if not os.path.exists("/var/lib/stackyard-lab/made"):
        _make(facts)
        accounts.replace_file("/var/lib/stackyard-lab/made", f"{facts.get('made', '')}\n")
    else:
        _clean("/tmp")
    os.makedirs("/run/cloud-init", exist_ok=True)
    python_modules()
    services.boot()
    _hostname(facts)


def _make(facts: dict[str, Any]) -> None:
    release = facts["release"]
    texts = dict(_TEXTS)
    texts["/etc/os-release"] = (str(release["os_release"]), 0o644)
    texts["/etc/debian_version"] = (f"{release['full_version']}\n", 0o644)
    texts["/etc/issue"] = (f"{release['name']} \\n \\l\n", 0o644)
    texts["/etc/machine-id"] = (f"{facts['machine_id']}\n", 0o444)
    texts["/etc/apt/sources.list"] = (_sources(str(release["codename"])), 0o644)
    texts["/etc/resolv.conf"] = (
        "".join(f"nameserver {one}\n" for one in facts.get("nameservers", [])),
        0o644,
    )
    for path, (text, mode) in texts.items():
        accounts.replace_file(path, text, mode)
    _make_accounts()
    for link, target in {
        "/etc/mtab": "/proc/mounts",
        "/etc/localtime": "/usr/share/zoneinfo/Etc/UTC",
    }.items():
        with contextlib.suppress(FileExistsError):
            os.symlink(target, link)
    alternatives(facts.get("alternatives", {}))
    for path in ("/var/log/wtmp", "/var/log/dpkg.log", "/var/log/auth.log", "/var/log/syslog"):
        accounts.replace_file(path, "", 0o640)
    packages.plant(str(release["codename"]))
    services.plant()


def _make_accounts() -> None:
    users, hidden = [], {}
    for line in _SYSTEM_USERS.splitlines():
        name, uid, home, shell = line.split(":")
        users.append(accounts.User(name, int(uid), _first_group(int(uid)), name, home, shell))
        hidden[name] = accounts.new_shadow("*")
    accounts.save_users(users)
    groups = [part.split(":") for part in _GROUPS.split()]
    seen: set[str] = set()
    kept = []
    for name, gid in groups:
        if gid not in seen:
            kept.append(accounts.Group(name, int(gid), []))
            seen.add(gid)
    accounts.save_groups(kept)
    accounts.save_shadow(hidden)


def _first_group(uid: int) -> int:
    return uid if uid not in (4, 42, 100, 102) else 65534


def _sources(codename: str) -> str:
    parts = "main" if codename == "bullseye" else "main non-free-firmware"
    return "".join(
        f"deb http://mirror.lab/{path} {suite} {parts}\n"
        for path, suite in (
            ("debian", codename),
            ("debian", f"{codename}-updates"),
            ("debian-security", f"{codename}-security"),
        )
    )


def _hostname(facts: dict[str, Any]) -> None:
    if not os.path.exists("/etc/hostname"):
        accounts.replace_file("/etc/hostname", f"{facts['hostname']}\n")
    if not os.path.exists("/etc/hosts"):
        text = f"127.0.0.1\tlocalhost\n127.0.1.1\t{facts['hostname']}\n\n"
        text += "::1\tlocalhost ip6-localhost ip6-loopback\n"
        accounts.replace_file("/etc/hosts", text)
    with contextlib.suppress(OSError), open("/etc/hostname", encoding="utf-8") as stream:
        set_hostname(stream.read().strip())


def set_hostname(name: str) -> None:
    """Let the kernel say the name, where it lets us."""
    with contextlib.suppress(OSError):
        socket.sethostname(name)


def _clean(folder: str) -> None:
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(folder)):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                os.unlink(entry.path)
