"""No commit picks up `.stackyard`: neither in a site nor beside a deployment object."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli import stackyard
from tests.support.deployment import SMALL, text_of
from tests.support.engine import real_engine
from tests.support.path import Yard, make_yard
from tests.support.repositories import git, new_repository
from tests.support.site import write_site

from stackyard import lab
from stackyard.base.serving.certificate import read_or_create_certificate
from stackyard.engine.version import Flavour
from stackyard.sources.site.pull import CERTIFICATE_FOLDER

DNS: dict[str, Any] = {
    "name": "dns",
    "type": "ct",
    "vmid": 501,
    "image": "debian-13-ct",
    "cores": 1,
    "memory": 512,
    "disk": 4,
}


def staged(folder: Path) -> list[str]:
    git(folder, "add", "--all")
    return git(folder, "ls-files").stdout.splitlines()


def require_hidden(folder: Path) -> None:
    assert (folder / ".stackyard").is_dir()
    assert [path for path in staged(folder) if ".stackyard" in path] == []


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    engine = real_engine(Flavour.TOFU)
    with lab.running(nodes=("pve1",), ssh_port=0) as running:
        made = make_yard(running, tmp_path / "site", STACKYARD_TOFU=str(engine.path))
        # What `init` adds to a site of its own, a site of somebody else does not have.
        (made.folder / ".gitignore").unlink()
        shutil.rmtree(made.folder / ".stackyard", ignore_errors=True)
        new_repository(made.folder)
        yield made


@pytest.mark.tofu
@pytest.mark.timeout(300)
def test_a_site_that_init_did_not_make(yard: Yard) -> None:
    yard.write_env("t", [DNS])
    yard.run("apply", "t", "--no-verify")
    require_hidden(yard.folder)


def test_a_deployment_folder(tmp_path: Path) -> None:
    folder = new_repository(tmp_path / "deployment")
    (folder / "deployment.yaml").write_text("{}\n")
    (folder / "object.json").write_text(text_of(SMALL))
    done = stackyard("deployment", "put", "object.json", cwd=folder)
    assert done.status == 0, done.stderr
    require_hidden(folder)
    assert staged(folder) == ["deployment.yaml", "object.json"]


def test_the_tokens_of_a_controller(tmp_path: Path) -> None:
    folder = new_repository(write_site(tmp_path / "site"))
    made = stackyard("serve", "token", "issue", "--node", "web1", cwd=folder)
    assert made.status == 0, made.stderr
    require_hidden(folder)


def test_the_private_key_of_a_controller(tmp_path: Path) -> None:
    folder = new_repository(write_site(tmp_path / "site"))
    read_or_create_certificate(folder / CERTIFICATE_FOLDER, ("localhost",))
    assert (folder / CERTIFICATE_FOLDER / "server.crt").is_file()
    require_hidden(folder)
