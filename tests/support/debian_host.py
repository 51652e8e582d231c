"""A machine with Debian that Proxmox VE is installed on: it answers as Debian and Proxmox do, and checks."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from tests.support.ssh_hosts import Ran, ScriptedHost

__all__ = ["DebianHost"]

_KEYS = {
    "trixie": "136673be77aba35dcce385b28737689ad64fd785a797e57897589aed08db6e45",
    "bookworm": (
        "7da6fe34168adc6e479327ba517796d4702fa2f8b4f0a9833f5ea6e6b48f6507"
        "a6da403a274fe201595edc86a84463d50383d07f64bdde2e3658108db7d6dc87"
    ),
}


@dataclass
class DebianHost(ScriptedHost):
    """Keeps what was done to it: packages, files, kernel, users of Proxmox."""

    suite: str = "trixie"
    packages: set[str] = field(default_factory=lambda: {"curl"})
    files: dict[str, str] = field(default_factory=dict)
    boots: int = 1
    timezone: str = "Etc/UTC"
    contents: str = "iso,vztmpl,backup"
    bridges: list[dict[str, object]] = field(default_factory=list)
    roles: dict[str, str] = field(
        default_factory=lambda: {"Administrator": "Datastore.Audit,VM.Allocate,VM.Audit,VM.GuestAgent.Audit"}
    )
    users: list[str] = field(default_factory=lambda: ["root@pam"])
    tokens: list[str] = field(default_factory=list)
    key_is_good: bool = True
    # Whether apt knows Proxmox VE already, from a mirror.
    is_offered: bool = False
    # How often it has to boot until the API of Proxmox VE runs.
    boots_needed: int = 0

    def __post_init__(self) -> None:
        """Say how it answers."""
        self.answer(r"^cat /proc/sys/kernel/random/boot_id$", lambda ran: (0, f"boot-{self.boots}"))
        self.answer(r"^systemctl reboot$", self._reboot)
        self.answer(r"pveversion && pvesh get /version$", self._version)
        self.answer(r"systemctl is-enabled", 0)
        self.answer(r"^\. /etc/os-release && echo \"\$ID", lambda ran: (0, f"debian {self.suite}\namd64"))
        self.answer(r"^\. /etc/os-release && echo \"\$VERSION_CODENAME", lambda ran: (0, self.suite))
        self.answer(
            r"^uname -r$", lambda ran: (0, "6.14.8-2-pve" if self._runs_pve else "6.12.41+deb13-amd64")
        )
        self.answer(r"^name=\$\(hostname\)", 0)
        self.answer(r"^apt-cache policy proxmox-ve ", lambda ran: (0 if self.is_offered else 1, ""))
        self.answer(r"^curl -fsSL https://enterprise\.proxmox\.com/debian/proxmox-", 0)
        self.answer(r"sum -c -", self._key)
        self.answer(r"^set -e; mkdir -p .*; cat > ", self._write)
        self.answer(r"apt-get .* (update|full-upgrade)$", 0)
        self.answer(r"apt-get .* install ", self._install)
        self.answer(r"apt-get .* remove ", 0)
        self.answer(r"debconf-set-selections$", 0)
        self.answer(r"^update-grub$", 0)
        self.answer(r"^test -f /usr/share/keyrings", lambda ran: (0 if self._has_key else 1, ""))
        self._setup_answers()
        self._token_answers()

    def _setup_answers(self) -> None:
        self.answer(r"^for file in ", lambda ran: (0, "moved" if "pve-enterprise" in ran.script else ""))
        self.answer(r"^grep -rqs pve-no-subscription", lambda ran: (0 if self._has_sources else 1, ""))
        self.answer(
            r"^dpkg-query ", lambda ran: (0, "\n".join(f"{name} installed" for name in self.packages))
        )
        self.answer(r"^cat /etc/timezone", lambda ran: (0, self.timezone))
        self.answer(r"^timedatectl set-timezone (\S+)", self._set_timezone)
        self.answer(r"^pvesh get /storage/local", lambda ran: (0, json.dumps({"content": self.contents})))
        self.answer(r"^pvesm set local --content (\S+)", self._set_contents)
        self.answer(r"^hostname -s$", "father")
        self.answer(r"^pvesh get /nodes/father/network", lambda ran: (0, json.dumps(self.bridges)))
        self.answer(r"^ip -j route show default", json.dumps([{"dev": "eno1", "gateway": "10.0.12.1"}]))
        self.answer(
            r"^ip -j -4 address show dev eno1",
            json.dumps([{"addr_info": [{"local": "10.0.12.61", "prefixlen": 24, "scope": "global"}]}]),
        )
        self.answer(r"^pvesh set /nodes/father/network", 0)
        self.answer(r"^pvesh create /nodes/father/network ", self._make_bridge)
        self.answer(r"^test -f /usr/share/javascript", 0)
        self.answer(r"^sed -i\.stackyard ", 0)
        self.answer(r"^systemctl restart pveproxy", 0)
        storages = [{"storage": "local", "active": 1}, {"storage": "local-zfs", "active": 1}]
        self.answer(r"^pvesh get /nodes/father/storage", json.dumps(storages))
        certificates = [
            {"filename": "pve-root-ca.pem", "fingerprint": "00"},
            {"filename": "pve-ssl.pem", "fingerprint": ":".join(["AB"] * 32)},
        ]
        self.answer(r"^pvesh get /nodes/father/certificates", json.dumps(certificates))

    def _token_answers(self) -> None:
        self.answer(
            r"^pveum role list",
            lambda ran: (
                0,
                json.dumps([{"roleid": name, "privs": privs} for name, privs in self.roles.items()]),
            ),
        )
        self.answer(r"^pveum role (add|modify) (\S+) --privs (\S+)", self._role)
        self.answer(
            r"^pveum user list", lambda ran: (0, json.dumps([{"userid": user} for user in self.users]))
        )
        self.answer(r"^pveum user add (\S+)", self._user)
        self.answer(r"^pveum acl list", "[]")
        self.answer(
            r"^pveum acl modify / (--users stackyard@pve|--tokens 'stackyard@pve!stackyard') "
            r"--roles Stackyard$",
            0,
        )
        self.answer(
            r"^pveum user token list",
            lambda ran: (0, json.dumps([{"tokenid": name, "privsep": 1} for name in self.tokens])),
        )
        self.answer(r"^pveum user token delete", self._delete_token)
        self.answer(r"^pveum user token add stackyard@pve stackyard --privsep 1", self._add_token)

    @property
    def _runs_pve(self) -> bool:
        return self.boots > 1 and "proxmox-default-kernel" in self.packages

    @property
    def _has_key(self) -> bool:
        return any("sum -c -" in ran.script for ran in self.ran)

    @property
    def _has_sources(self) -> bool:
        return any("pve-no-subscription" in text for text in self.files.values())

    def _reboot(self, ran: Ran) -> None:
        del ran
        self.boots += 1

    def _version(self, ran: Ran) -> tuple[int, str]:
        del ran
        return (
            (0, "pve-manager/9.0.3/abc (running kernel: 6.14.8-2-pve)")
            if "proxmox-ve" in self.packages and self.boots >= self.boots_needed
            else (1, "")
        )

    def _key(self, ran: Ran) -> tuple[int, str]:
        return (0, "OK") if self.key_is_good and _KEYS[self.suite] in ran.script else (1, "FAILED")

    def _write(self, ran: Ran) -> tuple[int, str]:
        place = re.search(r"mv -f \S+ (\S+)$", ran.script)
        assert place is not None
        self.files[place[1]] = ran.stdin
        return 0, ""

    def _install(self, ran: Ran) -> tuple[int, str]:
        names = ran.script.partition(" install ")[2].split()
        if "proxmox-ve" in names and not (self._runs_pve and (self._has_sources or self.is_offered)):
            return 100, "E: Unable to locate package proxmox-ve"
        self.packages.update(names)
        return 0, ""

    def _set_timezone(self, ran: Ran) -> tuple[int, str]:
        self.timezone = ran.script.split()[-1]
        return 0, ""

    def _set_contents(self, ran: Ran) -> tuple[int, str]:
        self.contents = ran.script.split()[-1]
        return 0, ""

    def _make_bridge(self, ran: Ran) -> tuple[int, str]:
        words = ran.script.split()
        given = dict(zip(words[3::2], words[4::2], strict=True))
        cidr = given["--cidr"]
        self.bridges.append(
            {"iface": given["--iface"], "type": "bridge", "cidr": cidr, "address": cidr.partition("/")[0]}
        )
        return 0, ""

    def _role(self, ran: Ran) -> tuple[int, str]:
        words = ran.script.split()
        self.roles[words[3]] = words[5]
        return 0, ""

    def _user(self, ran: Ran) -> tuple[int, str]:
        self.users.append(ran.script.split()[3])
        return 0, ""

    def _delete_token(self, ran: Ran) -> tuple[int, str]:
        self.tokens.remove(ran.script.split()[-1])
        return 0, ""

    def _add_token(self, ran: Ran) -> tuple[int, str]:
        del ran
        self.tokens.append("stackyard")
        return 0, json.dumps(
            {"full-tokenid": "stackyard@pve!stackyard", "value": "01234567-89ab-cdef-0123-456789abcdef"}
        )
