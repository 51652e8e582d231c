"""A resolved spec as a shell script that makes a machine what the spec says.

It needs a POSIX shell and the tools of the system, and may be run again at any time: what is already so is
left alone. Guests that pull get the script from the controller, and `stackyard spec apply` makes and runs the
same. With STACKYARD_ROOT it works below another folder, and writes down what it would run.
"""

from __future__ import annotations

import hashlib
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["apply_script", "list_packages", "marker_script", "spec_digest", "spec_text"]

_FUNCTIONS = Path(__file__).with_name("apply.sh")
_NOPASSWD = "ALL=(ALL) NOPASSWD:ALL"
_WITH_PASSWORD = "ALL=(ALL) ALL"  # noqa: S105 - a rule of sudo
_END = "END-OF-TEXT"


def spec_text(resolved: Mapping[str, Any]) -> str:
    """Return a resolved spec as the file that a guest keeps: JSON, which is YAML."""
    return orjson.dumps(resolved, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def spec_digest(resolved: Mapping[str, Any]) -> str:
    """Return what tells a resolved spec from every other; the marker of a guest says it."""
    return hashlib.sha256(spec_text(resolved).encode()).hexdigest()


def list_packages(resolved: Mapping[str, Any]) -> list[str]:
    """Return every package that applying a resolved spec installs."""
    has_fail2ban = bool(resolved["access"]["_posture"]["fail2ban"]["enabled"])
    return list(dict.fromkeys([*resolved["platform"]["packages"], *(["fail2ban"] if has_fail2ban else [])]))


def apply_script(resolved: Mapping[str, Any], *, mode: str = "pull") -> str:
    """Return the script that applies a resolved spec.

    Args:
        resolved: The spec.
        mode: Who applies it, for the marker: the guest itself (`pull`), or the operator (`push`).
    """
    return "\n".join(
        [_FUNCTIONS.read_text(), *_write_prologue(resolved, mode), *_steps(resolved), "finish", ""]
    )


def marker_script(resolved: Mapping[str, Any], *, mode: str) -> str:
    """Return the script that leaves word that a spec was applied, for who applied it in another way."""
    return "\n".join([_FUNCTIONS.read_text(), *_write_prologue(resolved, mode), "finish", ""])


def _write_prologue(resolved: Mapping[str, Any], mode: str) -> Iterator[str]:
    yield _document("save_spec", spec_text(resolved))
    yield _document("begin", _report(resolved, mode))


def _steps(resolved: Mapping[str, Any]) -> Iterator[str]:
    access, platform = resolved["access"], resolved["platform"]
    posture = access["_posture"]
    enabled, disabled = platform["services"]["enable"], platform["services"]["disable"]
    has_fail2ban = bool(posture["fail2ban"]["enabled"])
    yield _call("set_hostname", resolved["identity"]["hostname"], resolved["identity"]["domain"] or "")
    yield _call("set_timezone", resolved["config"]["timezone"])
    yield _call("install_packages", *list_packages(resolved))
    for user in access["users"]:
        yield from _user(user, is_nopasswd=bool(posture["sudo"]["nopasswd"]))
    yield _document("set_sshd", _sshd(posture["ssh"]))
    for service in dict.fromkeys([*enabled, *(["fail2ban"] if has_fail2ban else [])]):
        yield _call("enable_service", service)
    for service in disabled:
        yield _call("disable_service", service)


def _user(user: Mapping[str, Any], *, is_nopasswd: bool) -> Iterator[str]:
    name = user["name"]
    yield _call("add_user", name, user.get("shell") or "/bin/bash", ",".join(user.get("groups", ())))
    yield _document(f"authorize_keys {shlex.quote(name)}", "".join(f"{key}\n" for key in user["ssh_keys"]))
    # The user that the operator works as has no password to give.
    is_free = is_nopasswd or user.get("automation", False)
    rule = (_NOPASSWD if is_free else _WITH_PASSWORD) if user["sudo"] else ""
    yield _call("set_sudo", name, f"{name} {rule}" if rule else "")


def _sshd(settings: Mapping[str, Any]) -> str:
    return (
        "# Written by stackyard from the posture of this guest.\n"
        f"Port {settings['port']}\n"
        f"PermitRootLogin {settings['permit_root_login']}\n"
        f"PasswordAuthentication {settings['password_authentication']}\n"
    )


def _report(resolved: Mapping[str, Any], mode: str) -> str:
    """Return what the marker of a finished run says, without its time."""
    services = resolved["platform"]["services"]
    report = {
        "spec": resolved["identity"]["hostname"],
        "mode": mode,
        "digest": spec_digest(resolved),
        "packages": list_packages(resolved),
        "services_enabled": services["enable"],
        "services_disabled": services["disable"],
        "users": [user["name"] for user in resolved["access"]["users"]],
    }
    return orjson.dumps(report).decode() + "\n"


def _call(function: str, *arguments: Any) -> str:
    return shlex.join([function, *(str(argument) for argument in arguments)])


def _document(call: str, text: str) -> str:
    end, lines = _END, set(text.splitlines())
    while end in lines:
        end += "_"
    return f"{call} <<'{end}'\n{text}{end}"
