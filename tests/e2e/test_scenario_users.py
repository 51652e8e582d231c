"""Users and installations on machines behind real SSH, down to each command."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.scenarios import run_scripted, site_of
from tests.support.site import KEY, KEY_2
from tests.support.ssh_hosts import ScriptedHost

from stackyard.scenario.options import ScenarioOptions

SITE = {
    "site.yaml": "defaults: {automation_user: ops}\n",
    "secrets.yaml": f"ssh_keys:\n  one: {KEY}\n  two: {KEY_2}\n",
}


def machine(**answers: int) -> ScriptedHost:
    made = ScriptedHost()
    made.answer(r"^id -u ", answers.get("id", 1))
    made.answer(r"^useradd ", answers.get("useradd", 0))
    made.answer(r"^command -v visudo", answers.get("visudo_there", 0))
    made.answer(r"apt-get .* (update|install sudo)$", 0)
    made.answer(r"^set -e; mkdir -p /run; ", 0)
    made.answer(r"^visudo -cf ", answers.get("visudo", 0))
    made.answer(r"^set -e\nhome=", 0)
    return made


def test_a_user_is_made_with_sudo_and_every_key_of_the_site(tmp_path: Path) -> None:
    host = machine(visudo_there=1)
    outcome = run_scripted(host, "user-setup", tmp_path, site=site_of(tmp_path / "site", SITE))
    assert outcome.error is None, outcome.error.detail
    assert host.unknown == []
    assert "useradd --create-home --shell /bin/bash ops" in host.scripts
    assert any(script.endswith("install sudo") for script in host.scripts)
    written = next(ran for ran in host.ran if "stackyard-sudoers-ops" in ran.script)
    assert written.stdin == "ops ALL=(ALL) NOPASSWD:ALL"
    assert host.ran[-1].stdin.splitlines() == [KEY, KEY_2]
    assert outcome.context == {"user": "ops"}
    assert all(ran.as_root for ran in host.ran)


def test_a_user_that_is_there_is_not_made_again(tmp_path: Path) -> None:
    host = machine(id=0)
    outcome = run_scripted(
        host,
        "user-setup",
        tmp_path,
        site=site_of(tmp_path / "site", SITE),
        options=ScenarioOptions(user="deploy"),
    )
    assert outcome.success
    assert outcome.context == {"user": "deploy"}
    assert not any(script.startswith("useradd") for script in host.scripts)


def test_a_rule_that_sudo_would_not_take_stops_before_it_counts(tmp_path: Path) -> None:
    host = machine(visudo=1)
    outcome = run_scripted(host, "user-setup", tmp_path, site=site_of(tmp_path / "site", SITE))
    assert outcome.error is not None
    assert outcome.error.detail.startswith("`visudo -cf /run/stackyard-sudoers-ops && ")


@pytest.mark.parametrize("name", ["Root", "a b", "x;reboot", "-x", "", "a" * 40, "$(id)"])
def test_a_name_that_is_none_never_reaches_the_machine(name: str, tmp_path: Path) -> None:
    host = machine()
    site = site_of(tmp_path / "site", {"site.yaml": "defaults: {}\n"})
    outcome = run_scripted(
        host, "user-setup", tmp_path, site=site, options=ScenarioOptions(user=name or "''")
    )
    assert outcome.status == 64
    assert host.ran == []


INSTALLER = "https://get.example/install"


def installing(**answers: int) -> ScriptedHost:
    made = ScriptedHost()
    made.answer(r"^command -v curl", 0)
    made.answer(r"^mktemp -d", "/tmp/stackyard-abc")
    made.answer(rf"^curl -fsSL {INSTALLER} -o ", answers.get("curl", 0))
    made.answer(r"^HOMESTAK_USER=ops bash /tmp/stackyard-abc/install$", answers.get("bash", 0))
    made.answer(r"^rm -rf /tmp/stackyard-abc$", 0)
    made.answer(r"^homestak status", "ansible ok\niac-driver ok\ntofu ok")
    made.answer(r"^id -u ops", answers.get("id", 0))
    made.answer(r"^su -s /bin/sh -c 'sudo -n true' ops", answers.get("sudo", 0))
    return made


def test_an_installer_is_downloaded_whole_run_and_verified(tmp_path: Path) -> None:
    host = installing()
    options = ScenarioOptions(source=INSTALLER, user="ops")
    outcome = run_scripted(host, "bootstrap-install", tmp_path, options=options)
    assert outcome.error is None, outcome.error.detail
    assert host.unknown == []
    assert [phase.status for phase in outcome.phases] == ["passed"] * 3


@pytest.mark.parametrize(
    ("broken", "phase"),
    [("curl", "run_bootstrap"), ("bash", "run_bootstrap"), ("id", "verify_user"), ("sudo", "verify_user")],
)
def test_each_way_in_which_an_installation_fails_is_found(broken: str, phase: str, tmp_path: Path) -> None:
    host = installing(**{broken: 1})
    options = ScenarioOptions(source=INSTALLER, user="ops")
    outcome = run_scripted(host, "bootstrap-install", tmp_path, options=options)
    assert [one.name for one in outcome.phases if one.status == "failed"] == [phase]
    if broken == "curl":
        assert not any(script.startswith("HOMESTAK_USER") for script in host.scripts)
