"""What the user asks for becomes the options of a lab, or an error that says what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackyard import lab
from stackyard.base.errors import FileError, UsageError
from stackyard.cli.commands.lab.launch import LabRequest
from stackyard.cli.commands.lab.options import lab_options


def test_nothing_asked_for_is_the_usual_lab(tmp_path: Path) -> None:
    options = lab_options(LabRequest(), tmp_path)
    assert (options.bind, options.port, options.ssh_port) == ("127.0.0.1", 8006, 8022)
    assert (options.data, options.identity, options.nodes) == (None, tmp_path, None)
    assert (options.speed, options.seed.name, options.allow_downloads) == (lab.Speed.INSTANT, "empty", False)


def test_any_port_for_the_one_is_any_port_for_the_other(tmp_path: Path) -> None:
    assert lab_options(LabRequest(port=0), tmp_path).ssh_port == 0
    assert lab_options(LabRequest(port=0, ssh_port=2222), tmp_path).ssh_port == 2222


def test_everything_asked_for_is_passed_on(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("ssh-ed25519 A\nssh-ed25519 B\n")
    wanted = LabRequest(
        nodes="a, b",
        data=str(tmp_path / "data"),
        speed="real",
        latency="create=4,boot=12",
        seed="demo",
        authorized_keys=str(tmp_path / "keys"),
        allow_downloads=True,
    )
    options = lab_options(wanted, tmp_path)
    assert (options.nodes, options.data, options.identity) == (("a", "b"), tmp_path / "data", None)
    assert options.latency_s == {lab.Work.CREATE: 4.0, lab.Work.BOOT: 12.0}
    assert options.authorized_keys == ("ssh-ed25519 A", "ssh-ed25519 B")
    assert (options.speed, options.seed.name, options.allow_downloads) == (lab.Speed.REAL, "demo", True)


@pytest.mark.parametrize(
    ("wanted", "kind"),
    [
        (LabRequest(nodes="a,a"), UsageError),
        (LabRequest(nodes="a b"), UsageError),
        (LabRequest(nodes=","), UsageError),
        (LabRequest(nodes="-x"), UsageError),
        (LabRequest(latency="x=1"), UsageError),
        (LabRequest(latency="create=fast"), UsageError),
        (LabRequest(seed="nothing"), lab.SeedError),
        (LabRequest(seed="missing.json"), FileError),
        (LabRequest(authorized_keys="missing"), FileError),
    ],
)
def test_what_cannot_be_is_refused(wanted: LabRequest, kind: type[Exception], tmp_path: Path) -> None:
    with pytest.raises(kind):
        lab_options(wanted, tmp_path)


def test_what_was_given_is_told_by_the_name_of_the_option() -> None:
    wanted = LabRequest(port=0, ssh_port=5, nodes="a", allow_downloads=True)
    assert wanted.list_given_options() == {"port": 0, "ssh-port": 5, "nodes": "a", "allow-downloads": True}
