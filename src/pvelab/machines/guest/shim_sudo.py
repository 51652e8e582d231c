"""`sudo`, `su`, `runuser`: the guest's init starts the program, if the sudoers or a password allow it."""

from __future__ import annotations

import getpass
import os
import signal
import socket
import sys
from typing import Any, Optional

from . import accounts, wire

__all__ = ["run"]

_WITH_VALUE = ("u", "g", "p", "C", "h", "r", "t", "T", "U", "R", "D")
_SECURE_PATH = "/run/lab/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_TRIES = 3


def run(name: str, words: list[str]) -> int:
    """Become someone else."""
    if name == "visudo":
        return 0
    if name == "sudoedit":
        sys.stderr.write("sudoedit: not in the lab\n")
        return 1
    return _sudo(words) if name == "sudo" else _su(name, words)


def _own() -> str:
    found = accounts.find_user(str(os.geteuid()))
    return found.name if found else str(os.geteuid())


def _sudo(words: list[str]) -> int:
    options, rest, env = _options(words)
    if "V" in options:
        print("Sudo version 1.9.13p3")
        return 0
    if "k" in options or "K" in options or "v" in options:
        return 0 if not rest else _start_sudo(options, rest, env)
    if "l" in options:
        return _list()
    if not rest and not {"i", "s"} & set(options):
        sys.stderr.write(
            "usage: sudo -h | -K | -k | -V\nusage: sudo [-ABbEHnPS] [-u user] [VAR=value] [command]\n"
        )
        return 1
    return _start_sudo(options, rest, env)


def _start_sudo(options: dict[str, str], rest: list[str], env: dict[str, str]) -> int:
    target = options.get("u", "root").lstrip("#")
    user = accounts.find_user(target)
    if user is None:
        sys.stderr.write(
            f"sudo: unknown user {target}\nsudo: error initializing audit plugin sudoers_audit\n"
        )
        return 1
    caller = _own()
    argv = rest
    if {"i", "s"} & set(options):
        shell = user.shell or "/bin/sh"
        argv = [shell, *(["-l"] if "i" in options else []), *(["-c", _join_words(rest)] if rest else [])]
    kept = dict(os.environ) if "E" in options else {}
    kept |= {
        key: os.environ[key] for key in ("TERM", "LANG", "DISPLAY", "SSH_AUTH_SOCK") if key in os.environ
    }
    kept |= {key: value for key, value in os.environ.items() if key.startswith("LC_")}
    kept |= env
    uid = str(os.geteuid())
    kept |= {
        "SUDO_USER": caller,
        "SUDO_UID": uid,
        "SUDO_GID": str(os.getegid()),
        "SUDO_COMMAND": _join_words(rest),
    }
    kept["PATH"] = _SECURE_PATH
    kept["HOME"] = user.home
    message = {
        "do": "run",
        "how": "sudo",
        "argv": argv,
        "user": user.name,
        "env": kept,
        "cwd": user.home if "i" in options else os.getcwd(),
        "login": False,
    }
    return _with_password(message, options, caller)


def _with_password(message: dict[str, Any], options: dict[str, str], caller: str) -> int:
    answer = _start(message)
    tries = 0
    while answer.get("refused") in ("password-needed", "password"):
        if answer["refused"] == "password":
            sys.stderr.write("Sorry, try again.\n")
        if "n" in options:
            sys.stderr.write("sudo: a password is required\n")
            return 1
        if tries == _TRIES:
            sys.stderr.write(f"sudo: {tries} incorrect password attempts\n")
            return 1
        prompt = (
            options.get("p", f"[sudo] password for {caller}: ").replace("%u", caller).replace("%p", caller)
        )
        password = _password(prompt, from_stdin="S" in options)
        if password is None:
            sys.stderr.write("\nsudo: no password was provided\nsudo: a password is required\n")
            return 1
        tries += 1
        answer = _start({**message, "password": password})
    if answer.get("refused") == "not-allowed":
        sys.stderr.write(f"{caller} is not in the sudoers file.\n")
        return 1
    return _end("sudo", answer)


def _password(prompt: str, *, from_stdin: bool) -> Optional[str]:
    if not from_stdin:
        if not os.isatty(0):
            sys.stderr.write(
                "sudo: a terminal is required to read the password; either use the -S option to read"
            )
            sys.stderr.write(" from standard input or configure an askpass helper\n")
            return None
        return getpass.getpass(prompt)
    sys.stderr.write(prompt)
    sys.stderr.flush()
    # Not a byte more than the line: the rest is for the program.
    found = b""
    while not found.endswith(b"\n"):
        one = os.read(0, 1)
        if not one:
            break
        found += one
    return found.rstrip(b"\n").decode(errors="replace") if found else None


def _list() -> int:
    rules = wire.ask({"do": "sudo-rules"}).get("answer") or []
    caller, host = _own(), socket.gethostname()
    if not rules and os.geteuid():
        print(f"Sorry, user {caller} may not run sudo on {host}.")
        return 1
    print(f"User {caller} may run the following commands on {host}:")
    print("\n".join(f"    {rule}" for rule in rules or ["(ALL : ALL) ALL"]))
    return 0


def _su(name: str, words: list[str]) -> int:
    login = False
    line: Optional[str] = None
    shell: Optional[str] = None
    names: list[str] = []
    argv: list[str] = []
    waiting = iter(words)
    for word in waiting:
        if word in ("-", "-l", "--login"):
            login = True
        elif word in ("-c", "--command", "-lc"):
            login = login or word == "-lc"
            line = next(waiting, "")
        elif word in ("-s", "--shell"):
            shell = next(waiting, None)
        elif word == "-u" and name == "runuser":
            names.append(next(waiting, "root"))
        elif word == "--":
            argv = list(waiting)
        elif not word.startswith("-"):
            (names if not names else argv).append(word)
    target = accounts.find_user(names[0] if names else "root")
    if target is None:
        sys.stderr.write(
            f"{name}: user {names[0]} does not exist or the user entry does not"
            " contain all the required fields\n"
        )
        return 1
    return _start_su(name, target, line, (shell, argv), login=login)


def _start_su(
    name: str,
    target: accounts.User,
    line: Optional[str],
    how: tuple[Optional[str], list[str]],
    *,
    login: bool,
) -> int:
    shell = how[0] or target.shell or "/bin/sh"
    argv = [shell, *(["-l"] if login else []), *(["-c", line] if line is not None else []), *how[1]]
    if name == "runuser" and how[1] and line is None:
        argv = how[1]
    message = {
        "do": "run",
        "how": "su",
        "argv": argv,
        "user": target.name,
        "env": {key: os.environ[key] for key in ("TERM", "LANG") if key in os.environ},
        "cwd": target.home if login else os.getcwd(),
        "login": login,
    }
    answer = _start(message)
    if answer.get("refused"):
        password = _password("Password: ", from_stdin=not os.isatty(0))
        answer = _start({**message, "password": password or ""})
    if answer.get("refused"):
        sys.stderr.write(f"{name}: Authentication failure\n")
        return 1
    return _end(name, answer)


def _start(message: dict[str, Any]) -> dict[str, Any]:
    """Have it started on our own descriptors; signals that reach us are passed on."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
        sock.connect(wire.BROKER)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, lambda found, _: wire.send(sock, {"do": "signal", "number": found}))
        wire.send(sock, message, (0, 1, 2))
        answer: dict[str, Any] = {}
        while True:
            found, _ = wire.receive(sock)
            if found is None:
                return answer
            answer = found
            if "started" not in answer:
                return answer


def _end(name: str, answer: dict[str, Any]) -> int:
    if answer.get("error") or answer.get("refused"):
        sys.stderr.write(f"{name}: {answer.get('error') or answer.get('refused')}\n")
    return int(answer.get("status", 1))


def _options(words: list[str]) -> tuple[dict[str, str], list[str], dict[str, str]]:
    options: dict[str, str] = {}
    env: dict[str, str] = {}
    long = {"--user": "u", "--non-interactive": "n", "--login": "i", "--shell": "s", "--preserve-env": "E"}
    long |= {
        "--set-home": "H",
        "--stdin": "S",
        "--prompt": "p",
        "--list": "l",
        "--validate": "v",
        "--version": "V",
    }
    rest = list(words)
    while rest:
        word = rest[0]
        if word == "--":
            rest.pop(0)
            break
        if word.startswith("--"):
            key, equals, value = rest.pop(0).partition("=")
            letter = long.get(key, "")
            options[letter] = value if equals else (rest.pop(0) if letter in _WITH_VALUE and rest else "")
        elif word.startswith("-") and len(word) > 1:
            _short(rest.pop(0)[1:], rest, options)
        elif "=" in word and not word.startswith("/") and word.partition("=")[0].isidentifier():
            key, _, value = rest.pop(0).partition("=")
            env[key] = value
        else:
            break
    return options, rest, env


def _short(letters: str, rest: list[str], options: dict[str, str]) -> None:
    for at, letter in enumerate(letters):
        if letter in _WITH_VALUE:
            options[letter] = letters[at + 1 :] or (rest.pop(0) if rest else "")
            return
        options[letter] = ""


def _join_words(words: list[str]) -> str:
    return " ".join(
        word
        if word.replace("/", "").replace("-", "").replace(".", "").isalnum()
        else "'" + word.replace("'", "'\"'\"'") + "'"
        for word in words
    )
