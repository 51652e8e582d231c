"""Applying user data to the guest: what cloud-init's modules do, in the order in which they do it."""

from __future__ import annotations

import base64
import binascii
import contextlib
import gzip
import os
import zlib
from typing import TYPE_CHECKING, Any, Callable

from . import accounts, cloudusers, packages, wire
from .accounts import replace_file
from .facts import load as load_facts

if TYPE_CHECKING:
    from .cloudlog import Journal

__all__ = ["apply", "apply_container"]

Config = dict[str, Any]


def apply_container(data: Config) -> None:
    """Do what Proxmox does to a container before it starts: its name, the password and keys of root."""
    _write_names(str(data["hostname"]), str(data["hostname"]), manages_hosts=False)
    hashed = data.get("password")
    with accounts.lock_records():
        if hashed and accounts.shadow().get("root", ["*"])[0] in ("*", "!"):
            cloudusers.give_password("root", str(hashed))
            # Proxmox's templates let root in with a password.
            replace_file("/etc/ssh/sshd_config.d/50-root.conf", "PermitRootLogin yes\n")
        cloudusers.give_keys("root", [str(key) for key in data.get("keys", [])])


def apply(data: Config, journal: Journal, *, is_new: bool) -> None:
    """Apply user and vendor data; what fails is logged and the rest continues."""
    config, scripts, hooks = _merge(data, journal)
    steps: list[tuple[str, Callable[[Config, Journal], None]]] = []
    if is_new:
        steps += [("boothook", lambda *_: _run_scripts(hooks, "boothooks", journal))]
    steps += [("bootcmd", _bootcmd)]
    if is_new:
        steps += [
            ("growpart", _ignore),
            ("set-hostname", lambda found, _: _hostname(found, data)),
            ("write-files", lambda found, log: _write_files(found, log, deferred=False)),
            ("users-groups", cloudusers.users_and_groups),
            ("ssh", cloudusers.ssh),
            ("set-passwords", cloudusers.set_passwords),
            ("locale", _locale),
            ("timezone", _timezone),
            ("ntp", _ntp),
            ("apt-configure", _apt_configure),
            ("package-update-upgrade-install", _packages),
            ("write-files-deferred", lambda found, log: _write_files(found, log, deferred=True)),
            ("runcmd", _runcmd),
            ("scripts-user", lambda *_: _run_scripts(scripts, "scripts", journal)),
            ("final-message", _final_message),
            ("power-state-change", _power),
        ]
    for name, step in steps:
        try:
            step(config, journal)
        except Exception as err:
            journal.warn("util.py", f"Running module {name} failed: {type(err).__name__}: {err}")
        else:
            journal.debug("modules", f"Ran module {name}")


def _merge(data: Config, journal: Journal) -> tuple[Config, list[Config], list[Config]]:
    config: Config = {}
    scripts: list[Config] = []
    hooks: list[Config] = []
    for source in ("vendor", "user"):
        found = data.get(source) or {}
        for problem in found.get("problems", []):
            journal.warn("__init__.py", problem)
        for part in found.get("parts", []):
            if part["kind"] == "config":
                # The later part wins, as with cloud-init's own default.
                config.update(part["data"])
            elif part["kind"] == "script":
                scripts.append(part)
            else:
                hooks.append(part)
    for key in config:
        if key in ("swap", "disk_setup", "fs_setup", "mounts", "growpart", "resize_rootfs"):
            journal.info(
                "cc_disk.py", f"{key} is noted and not applied: a guest of the lab has no disks of its own"
            )
    return config, scripts, hooks


def _ignore(_config: Config, _journal: Journal) -> None:
    """Leave disks alone."""


def _hostname(config: Config, data: Config) -> None:
    facts = load_facts()
    if config.get("preserve_hostname"):
        return
    fqdn = str(config.get("fqdn") or "")
    short = str(
        config.get("hostname") or fqdn.partition(".")[0] or data.get("hostname") or facts.get("hostname")
    )
    manages = str(config.get("manage_etc_hosts", False)).lower() in ("true", "localhost", "template")
    _write_names(short.partition(".")[0], fqdn or short, manages_hosts=manages)


def _write_names(short: str, full: str, *, manages_hosts: bool) -> None:
    replace_file("/etc/hostname", f"{short}\n")
    with contextlib.suppress(OSError):
        wire.ask({"do": "hostname", "name": short})
    if manages_hosts or not os.path.exists("/etc/hosts"):
        names = f"{full} {short}" if full != short else short
        text = f"127.0.1.1 {names}\n127.0.0.1 localhost\n\n::1 localhost ip6-localhost ip6-loopback\n"
        replace_file("/etc/hosts", text)


def _write_files(config: Config, journal: Journal, *, deferred: bool) -> None:
    for number, entry in enumerate(_list(config.get("write_files"))):
        if not isinstance(entry, dict) or bool(entry.get("defer")) != deferred:
            continue
        path = entry.get("path")
        if not path:
            journal.warn(
                "cc_write_files.py", f"No path provided to write for entry {number + 1} in module write-files"
            )
            continue
        try:
            _write_file(str(path), entry)
        except (OSError, ValueError, KeyError) as err:
            journal.warn("cc_write_files.py", f"Failed writing {path}: {err}")


def _write_file(path: str, entry: Config) -> None:
    content = _decode(entry.get("content", ""), str(entry.get("encoding", "")))
    os.makedirs(os.path.dirname(path) or "/", exist_ok=True)
    with open(path, "ab" if entry.get("append") else "wb") as stream:
        stream.write(content)
    mode = entry.get("permissions", "0644")
    os.chmod(path, mode if isinstance(mode, int) else int(str(mode), 8))
    owner, _, group = str(entry.get("owner", "root:root")).partition(":")
    user = accounts.find_user(owner)
    if user is None:
        raise ValueError(f"Unknown user or group: \"getpwnam(): name not found: '{owner}'\"")
    found = next((one.gid for one in accounts.groups() if one.name == group), None) if group else user.gid
    if found is None:
        raise ValueError(f"Unknown user or group: \"getgrnam(): name not found: '{group}'\"")
    with contextlib.suppress(PermissionError):
        os.chown(path, user.uid, found)


def _decode(content: Any, encoding: str) -> bytes:
    data = (
        content.encode() if isinstance(content, str) else str(content if content is not None else "").encode()
    )
    words = encoding.lower().replace("-", "").replace("+", " ").split()
    if any(word in ("b64", "base64", "gzb64", "gzbase64", "gzipb64", "gzipbase64") for word in words) or (
        words and words[0] in ("gz", "gzip") and words[1:] and words[1] in ("b64", "base64")
    ):
        try:
            data = base64.b64decode(data)
        except (binascii.Error, ValueError) as err:
            raise ValueError(f"not base64: {err}") from err
    if any(word.startswith("gz") for word in words):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as err:
            raise ValueError(f"not gzip: {err}") from err
    return data


def _packages(config: Config, journal: Journal) -> None:
    if config.get("package_update") or config.get("apt_update") or config.get("packages"):
        journal.run(["apt-get", "update"])
    if config.get("package_upgrade") or config.get("apt_upgrade"):
        journal.run(["apt-get", "-y", "dist-upgrade"])
    wanted = []
    for entry in _list(config.get("packages")):
        if isinstance(entry, list):
            wanted.append("=".join(str(one) for one in entry[:2]))
        elif isinstance(entry, dict):
            wanted += [str(one) for one in _list(entry.get("apt"))]
        else:
            wanted.append(str(entry))
    known = packages.catalogue()
    unknown = [name for name in wanted if name.partition("=")[0] not in known]
    status = journal.run(["apt-get", "-y", "install", *wanted]) if wanted else 0
    if status:
        journal.warn(
            "cc_package_update_upgrade_install.py", f"Failed to install packages: {unknown or wanted}"
        )


def _runcmd(config: Config, journal: Journal) -> None:
    commands = _list(config.get("runcmd"))
    if not commands:
        return
    lines = ["#!/bin/sh"]
    for command in commands:
        if isinstance(command, list):
            lines.append(" ".join(_quote(str(word)) for word in command))
        elif isinstance(command, str):
            lines.append(command)
        else:
            raise TypeError(
                f"Unable to shellify type '{type(command).__name__}'. Expected list, string, tuple."
            )
    _run_scripts([{"name": "runcmd", "text": "\n".join(lines) + "\n"}], "scripts", journal)


def _bootcmd(config: Config, journal: Journal) -> None:
    for command in _list(config.get("bootcmd")):
        status = journal.run(command)
        if status:
            journal.warn("cc_bootcmd.py", f"Failed to run bootcmd {command}: exit code {status}")


def _run_scripts(scripts: list[Config], folder: str, journal: Journal) -> None:
    place = f"/var/lib/cloud/instance-{folder}"
    os.makedirs(place, exist_ok=True)
    failed = []
    for script in scripts:
        path = f"{place}/{os.path.basename(str(script['name'])) or 'part'}"
        replace_file(path, str(script["text"]), 0o700)
        status = journal.run([path])
        if status == 127 and not str(script["text"]).startswith("#!"):
            status = journal.run(["/bin/sh", path])
        if status:
            failed.append(f"{os.path.basename(path)} exited {status}")
    if failed:
        journal.warn("cc_scripts_user.py", f"Failed to run module scripts-user ({', '.join(failed)})")


def _locale(config: Config, _journal: Journal) -> None:
    if config.get("locale"):
        replace_file("/etc/default/locale", f"LANG={config['locale']}\n")


def _timezone(config: Config, journal: Journal) -> None:
    zone = config.get("timezone")
    if not zone:
        return
    path = f"/usr/share/zoneinfo/{zone}"
    if not os.path.isfile(path) or ".." in str(zone):
        journal.warn("cc_timezone.py", f"Invalid timezone {zone}, no file found at {path}")
        return
    replace_file("/etc/timezone", f"{zone}\n")
    with contextlib.suppress(FileNotFoundError):
        os.unlink("/etc/localtime")
    os.symlink(path, "/etc/localtime")


def _ntp(config: Config, journal: Journal) -> None:
    found = config.get("ntp")
    if not found and found != {}:
        return
    options = found if isinstance(found, dict) else {}
    if options.get("enabled", True):
        client = {"chrony": "chrony", "ntp": "ntp"}.get(
            str(options.get("ntp_client", "auto")), "systemd-timesyncd"
        )
        journal.run(["apt-get", "-y", "install", client])


def _apt_configure(config: Config, _journal: Journal) -> None:
    sources = (config.get("apt") or {}).get("sources") if isinstance(config.get("apt"), dict) else None
    for name, entry in (sources or {}).items():
        if isinstance(entry, dict) and entry.get("source"):
            plain = name if name.endswith((".list", ".sources")) else f"{name}.list"
            replace_file(f"/etc/apt/sources.list.d/{os.path.basename(plain)}", f"{entry['source']}\n")


def _final_message(config: Config, journal: Journal) -> None:
    if config.get("final_message"):
        journal.say(str(config["final_message"]))


def _power(config: Config, journal: Journal) -> None:
    found = config.get("power_state")
    if isinstance(found, dict) and found.get("condition", True) is not False:
        mode = {"poweroff": "poweroff", "halt": "halt"}.get(str(found.get("mode")), "reboot")
        journal.run([mode])


def _quote(word: str) -> str:
    return "'" + word.replace("'", "'\"'\"'") + "'"


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
