"""The script that applies a spec: run by real shells below another root, twice, and with hostile values."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from stackyard.sources.site.apply_script import apply_script, marker_script, spec_digest

SHELLS = ("sh", "dash", "bash")
KEY = "ssh-ed25519 AAAAC3 one"


def spec(**changed: Any) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "identity": {"hostname": "web1", "domain": "example.com"},
        "network": {"ip": None, "gateway": None, "dns": []},
        "access": {
            "posture": "prod",
            "users": [
                {"name": "ops", "sudo": True, "ssh_keys": [KEY], "groups": ["adm"], "shell": "/bin/bash"}
            ],
            "_posture": {
                "auth": {"method": "node_token"},
                "ssh": {"port": 2222, "permit_root_login": "no", "password_authentication": "no"},
                "sudo": {"nopasswd": False},
                "fail2ban": {"enabled": True},
                "packages": [],
            },
        },
        "platform": {"packages": ["nginx"], "services": {"enable": ["nginx"], "disable": ["rpcbind"]}},
        "config": {"timezone": "Europe/Zurich"},
        **changed,
    }


def apply(root: Path, document: dict[str, Any], shell: str = "sh") -> subprocess.CompletedProcess[str]:
    """Run the script below a root."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    return subprocess.run(
        [shell, "-s"],
        input=apply_script(document),
        env={"PATH": os.environ["PATH"], "STACKYARD_ROOT": str(root)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def made(root: Path) -> Path:
    """Make a root with one user in it."""
    (root / "etc").mkdir(parents=True)
    (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\nops:x:1000:1000::/srv/ops:/bin/bash\n")
    return root


@pytest.mark.parametrize("shell", SHELLS)
def test_a_machine_becomes_what_the_spec_says(tmp_path: Path, shell: str) -> None:
    root = made(tmp_path / "root")
    ended = apply(root, spec(), shell)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert (root / "etc/hostname").read_text() == "web1\n"
    assert (root / "etc/timezone").read_text() == "Europe/Zurich\n"
    assert os.readlink(root / "etc/localtime") == "/usr/share/zoneinfo/Europe/Zurich"
    sshd = (root / "etc/ssh/sshd_config.d/50-stackyard.conf").read_text()
    assert sshd.splitlines()[1:] == ["Port 2222", "PermitRootLogin no", "PasswordAuthentication no"]
    sudo = root / "etc/sudoers.d/50-stackyard-ops"
    assert (sudo.read_text(), stat.S_IMODE(sudo.stat().st_mode)) == ("ops ALL=(ALL) ALL\n", 0o440)
    keys = root / "srv/ops/.ssh/authorized_keys"
    assert KEY in keys.read_text().splitlines()
    assert stat.S_IMODE(keys.stat().st_mode) == 0o600
    commands = (root / "var/lib/stackyard/commands.log").read_text()
    assert "install nginx fail2ban\n" in commands
    assert "systemctl enable --now fail2ban\n" in commands
    assert "systemctl disable --now rpcbind\n" in commands
    assert "useradd" not in commands
    saved = json.loads((root / "var/lib/stackyard/spec.yaml").read_text())
    assert saved == spec()
    complete = json.loads((root / "var/lib/stackyard/complete.json").read_text())
    assert complete.keys() == {
        *(
            "phase",
            "status",
            "timestamp",
            "spec",
            "mode",
            "digest",
            "packages",
            "services_enabled",
            "services_disabled",
            "users",
        ),
    }
    assert (complete["phase"], complete["status"], complete["users"]) == ("config", "complete", ["ops"])
    assert (complete["mode"], complete["digest"]) == ("pull", spec_digest(spec()))


def test_a_second_run_changes_nothing_and_keeps_no_previous_spec(tmp_path: Path) -> None:
    root = made(tmp_path / "root")
    apply(root, spec())
    before = {path: path.stat().st_mtime_ns for path in (root / "etc").rglob("*") if path.is_file()}
    assert apply(root, spec()).returncode == 0
    assert {path: path.stat().st_mtime_ns for path in (root / "etc").rglob("*") if path.is_file()} == before
    assert not (root / "var/lib/stackyard/spec.yaml.prev").exists()


def test_another_spec_replaces_what_the_first_one_gave_and_the_first_is_kept(tmp_path: Path) -> None:
    root = made(tmp_path / "root")
    (root / "srv/ops/.ssh").mkdir(parents=True)
    (root / "srv/ops/.ssh/authorized_keys").write_text("ssh-rsa OWN key of the user\n")
    apply(root, spec())
    changed = spec()
    changed["access"]["users"][0] |= {"sudo": False, "ssh_keys": ["ssh-ed25519 BBBB two"]}
    assert apply(root, changed).returncode == 0
    assert not (root / "etc/sudoers.d/50-stackyard-ops").exists()
    lines = (root / "srv/ops/.ssh/authorized_keys").read_text().splitlines()
    assert lines == [
        "ssh-rsa OWN key of the user",
        "# stackyard begins",
        "ssh-ed25519 BBBB two",
        "# stackyard ends",
    ]
    assert json.loads((root / "var/lib/stackyard/spec.yaml.prev").read_text()) == spec()
    assert json.loads((root / "var/lib/stackyard/spec.yaml").read_text()) == changed


def test_a_user_that_is_not_there_is_made(tmp_path: Path) -> None:
    root = tmp_path / "root"
    assert apply(root, spec()).returncode == 0
    commands = (root / "var/lib/stackyard/commands.log").read_text()
    assert "useradd --create-home --shell /bin/bash ops\n" in commands
    assert "usermod --append --groups adm ops\n" in commands
    assert (root / "home/ops/.ssh/authorized_keys").exists()


@pytest.mark.parametrize("shell", SHELLS)
def test_no_value_is_ever_run(tmp_path: Path, shell: str) -> None:
    root, trap = made(tmp_path / "root"), tmp_path / "trap"
    evil = f"x'; touch {trap}; $(touch {trap}) `touch {trap}` \\ \" *"
    document = spec(
        identity={"hostname": evil, "domain": evil}, config={"timezone": "UTC", "note": f"a\n{evil}"}
    )
    document["access"]["users"][0]["ssh_keys"] = [evil, "END-OF-TEXT", "END-OF-TEXT_"]
    document["platform"] = {"packages": [evil], "services": {"enable": [evil], "disable": []}}
    ended = apply(root, document, shell)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert not trap.exists()
    assert (root / "etc/hostname").read_text() == f"{evil}\n"
    assert "END-OF-TEXT_" in (root / "srv/ops/.ssh/authorized_keys").read_text()


def test_a_step_that_fails_is_reported_and_leaves_word(tmp_path: Path) -> None:
    root = made(tmp_path / "root")
    # A folder in the place of a file that has to be written.
    (root / "etc/hostname.new").mkdir()
    ended = apply(root, spec())
    assert ended.returncode != 0
    failed = json.loads((root / "var/lib/stackyard/failed.json").read_text())
    assert (failed["status"], failed["users"]) == ("failed", ["ops"])
    assert not (root / "var/lib/stackyard/complete.json").exists()


def test_the_user_of_automation_needs_no_password_whatever_the_posture_says(tmp_path: Path) -> None:
    root, document = made(tmp_path / "root"), spec()
    document["access"]["users"].append({"name": "auto", "sudo": True, "ssh_keys": [KEY], "automation": True})
    assert apply(root, document).returncode == 0
    rules = {path.name: path.read_text() for path in (root / "etc/sudoers.d").iterdir()}
    assert rules == {
        "50-stackyard-ops": "ops ALL=(ALL) ALL\n",
        "50-stackyard-auto": "auto ALL=(ALL) NOPASSWD:ALL\n",
    }


def test_who_applied_a_spec_in_another_way_leaves_the_same_word(tmp_path: Path) -> None:
    root = made(tmp_path / "root")
    subprocess.run(
        ["sh", "-s"],
        input=marker_script(spec(), mode="push"),
        env={"PATH": os.environ["PATH"], "STACKYARD_ROOT": str(root)},
        text=True,
        timeout=60,
        check=True,
    )
    complete = json.loads((root / "var/lib/stackyard/complete.json").read_text())
    assert (complete["status"], complete["mode"], complete["digest"]) == (
        "complete",
        "push",
        spec_digest(spec()),
    )
    assert not (root / "etc/hostname").exists()
