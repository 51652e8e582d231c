"""The login to a node as OpenSSH finds it: keys, its settings, an agent. A check and a run use the same."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.engine import real_engine
from tests.support.path import Yard, make_yard

from stackyard import lab
from stackyard.clients.ssh.keys import KeyPair, new_key_pair
from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

WEB: dict[str, Any] = {"name": "web", "vmid": 500, "preset": "vm-xsmall", "image": "debian-12"}


@pytest.fixture(autouse=True)
def no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


@pytest.fixture(scope="module")
def key() -> KeyPair:
    return new_key_pair()


@pytest.fixture(scope="module")
def running(key: KeyPair) -> Iterator[lab.Running]:
    with lab.running(nodes=("pve1",), ssh_port=0, authorized_keys=(key.public,)) as it:
        yield it


@pytest.fixture
def yard(running: lab.Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    """A site whose secrets have no password for its node, and whose files do not say how to log in there."""
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True, mode=0o700)
    monkeypatch.setenv("HOME", str(home))
    made = make_yard(
        running, tmp_path / "site", HOME=str(home), STACKYARD_TOFU=str(real_engine(Flavour.TOFU).path)
    )
    secrets = {"api_tokens": {"lab": running.api_token}, "ssh_keys": {"me": new_key_pair().public}}
    (made.folder / "secrets.yaml").write_text(yaml.safe_dump(secrets))
    shutil.rmtree(made.folder / "keys", ignore_errors=True)
    made.write_env("t", [{**WEB, "started": False}])
    return made


def write_key(path: Path, pair: KeyPair) -> Path:
    path.write_text(pair.private)
    path.chmod(0o600)
    path.with_name(f"{path.name}.pub").write_text(f"{pair.public}\n")
    return path


def without(yard: Yard, *fields: str) -> None:
    """Leave out of the node's file what OpenSSH's settings are to say."""
    path = yard.folder / "nodes" / "lab.yaml"
    path.write_text(
        "".join(f"{line}\n" for line in path.read_text().splitlines() if not line.startswith(fields))
    )


def settings(home: str, text: str) -> None:
    path = Path(home) / ".ssh" / "config"
    path.write_text(text)
    path.chmod(0o600)


def ssh_check(yard: Yard) -> dict[str, Any]:
    said = yard.run("preflight", "env:t", "--json", status=None).document
    return next(check for check in said["checks"] if check["name"] == "ssh")


def test_a_run_logs_in_with_the_key_that_the_check_logged_in_with(yard: Yard, key: KeyPair) -> None:
    assert ssh_check(yard)["status"] == "fail"
    write_key(Path(yard.env["HOME"]) / ".ssh" / "id_ed25519", key)
    assert ssh_check(yard)["status"] == "ok"
    yard.run("apply", "t", "--no-verify")
    yard.run("destroy", "t", "--allow-destroy", "web")


def test_settings_of_openssh_say_the_user_the_port_and_the_key(
    yard: Yard, key: KeyPair, running: lab.Running
) -> None:
    without(yard, "ssh_user", "ssh_port")
    place = write_key(Path(yard.env["HOME"]) / ".ssh" / "for-the-lab", key)
    write_key(Path(yard.env["HOME"]) / ".ssh" / "id_ed25519", new_key_pair())
    settings(
        yard.env["HOME"],
        "Match originalhost 127.0.0.*\n  User root\n"
        f"Host lab\n  HostName 127.0.0.1\n  Port {running.ssh_port}\n  IdentityFile {place}\n"
        "Host *\n  User nobody\n",
    )
    assert ssh_check(yard)["text"] == f"logged in as root@127.0.0.1:{running.ssh_port}"
    yard.run("apply", "t", "--no-verify")
    yard.run("destroy", "t", "--allow-destroy", "web")


@contextlib.contextmanager
def agent(folder: Path, *keys: Path) -> Iterator[str]:
    program = shutil.which("ssh-agent")
    if program is None:
        pytest.skip("there is no ssh-agent")
    socket = f"{folder}/agent"
    with subprocess.Popen([program, "-D", "-a", socket], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            for path in keys:
                env = {**os.environ, "SSH_AUTH_SOCK": socket}
                subprocess.run(["ssh-add", "-q", str(path)], env=env, check=True)
            yield socket
        finally:
            process.terminate()


def test_an_agent_has_the_key_and_the_settings_choose_it(
    yard: Yard, key: KeyPair, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # Paths of sockets are short.
    place = tmp_path_factory.mktemp("a")
    mine = write_key(place / "mine", key)
    others = [write_key(place / f"other-{number}", new_key_pair()) for number in range(7)]
    with agent(place, *others, mine) as socket:
        mine.unlink()
        told = yard.with_env(SSH_AUTH_SOCK=socket)
        settings(yard.env["HOME"], f"Host 127.0.0.1\n  IdentityFile {mine}\n  IdentitiesOnly yes\n")
        assert ssh_check(told)["status"] == "ok"
        told.run("apply", "t", "--no-verify")
        told.run("destroy", "t", "--allow-destroy", "web")
        settings(yard.env["HOME"], f"Host 127.0.0.1\n  IdentityAgent {socket}\n")
        assert ssh_check(yard)["status"] == "ok", "the settings name the agent, the environment does not"
        settings(yard.env["HOME"], "Host 127.0.0.1\n  IdentityAgent none\n")
        assert ssh_check(told)["status"] == "fail"


def test_settings_that_others_may_write_or_that_are_wrong_are_refused(yard: Yard, key: KeyPair) -> None:
    write_key(Path(yard.env["HOME"]) / ".ssh" / "id_ed25519", key)
    settings(yard.env["HOME"], "Host *\n  Port many\n")
    check = ssh_check(yard)
    assert check["status"] == "fail"
    assert ".ssh/config line 2" in check["findings"][0]["detail"]
    settings(yard.env["HOME"], "Host *\n  User root\n")
    (Path(yard.env["HOME"]) / ".ssh" / "config").chmod(0o666)
    assert "is writable by others" in ssh_check(yard)["findings"][0]["detail"]
