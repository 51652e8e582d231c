"""Which machine is meant: this one, an address, or a name of the site."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from tests.support.site import SEED, write_site

from stackyard.base.errors import StackyardError, UsageError
from stackyard.scenario.catalogue import find_scenario
from stackyard.scenario.failures import RootNeededError
from stackyard.scenario.find_machine import FoundMachine, find_machine
from stackyard.scenario.machines import Local, Remote
from stackyard.scenario.options import ScenarioOptions
from stackyard.sources.site.hosts import HostNotFoundError
from stackyard.sources.site.load import Site


def found(site: Site | None = None, scenario: str = "pve-setup", **options: object) -> FoundMachine:
    return find_machine(find_scenario(scenario), ScenarioOptions(**options), site)  # type: ignore[arg-type]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    assert "hosts/father.yaml" in SEED
    write_site(tmp_path)
    (tmp_path / "hosts" / "fresh.yaml").write_text(
        "ip: 10.0.12.77\naccess: {ssh_user: deb, ssh_port: 2222}\n"
    )
    return Site.load(tmp_path)


def remote(place: FoundMachine) -> tuple[str, str, int]:
    assert isinstance(place.machine, Remote)
    return place.machine.host.username, place.machine.host.address, place.machine.host.port


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("10.0.12.5", ("root", "10.0.12.5", 22)),
        ("deb@10.0.12.5:2222", ("deb", "10.0.12.5", 2222)),
        ("fd00::5", ("root", "fd00::5", 22)),
        ("[fd00::5]:2222", ("root", "fd00::5", 2222)),
        ("box.example", ("root", "box.example", 22)),
    ],
)
def test_a_machine_is_given_by_its_address(said: str, expected: tuple[str, str, int]) -> None:
    place = found(remote=said)
    assert remote(place) == expected
    assert place.name is None


@pytest.mark.parametrize("said", ["", "a b", "deb@", "x:99999", "user@host:port"])
def test_what_is_no_address_is_refused(said: str) -> None:
    with pytest.raises(UsageError):
        found(remote=said)


def test_a_name_of_the_site_goes_to_its_node_or_its_host_with_user_and_port(site: Site) -> None:
    place = found(site, host="father")
    assert remote(place) == ("root", "10.0.12.61", 22)
    assert place.name == "father"
    assert remote(found(site, host="fresh")) == ("deb", "10.0.12.77", 2222)
    assert remote(found(site, host="ops@10.9.9.9")) == ("ops", "10.9.9.9", 22)
    with pytest.raises(HostNotFoundError, match="father"):
        found(site, host="fathr")


def test_this_machine_is_called_as_it_calls_itself_or_as_the_user_says(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Who is not root needs a sudo, which not every machine has.
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sudo").touch(mode=0o755)
    place = found(site, local=True)
    assert isinstance(place.machine, Local)
    assert place.name
    assert found(site, local=True, host="father").name == "father"


def test_who_can_not_become_root_on_this_machine_is_refused_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with contextlib.nullcontext() if os.geteuid() == 0 else pytest.raises(RootNeededError, match="no sudo"):
        found(local=True)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"local": True, "remote": "10.0.0.1"},
        {"remote": "10.0.0.1", "host": "father"},
        {"remote": "10.0.0.1", "identity": Path("/nowhere/key")},
    ],
)
def test_nothing_too_much_and_what_is_not_there_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(StackyardError):
        found(None, "pve-setup", **options)


def test_what_runs_on_another_machine_only_does_not_run_on_this_one() -> None:
    with pytest.raises(UsageError, match="another machine"):
        found(scenario="packer-sync", local=True)


def test_the_password_of_a_node_is_used_and_never_shown(tmp_path: Path) -> None:
    write_site(
        tmp_path, secrets=SEED["secrets.yaml"].replace("passwords:", "passwords:\n  node_father: hunter-2-pw")
    )
    place = found(Site.load(tmp_path), host="father")
    assert isinstance(place.machine, Remote)
    assert place.machine.host.password == "hunter-2-pw"
    assert "hunter-2-pw" not in repr(place)
    assert place.machine.redactor("it is hunter-2-pw") == "it is ********"
