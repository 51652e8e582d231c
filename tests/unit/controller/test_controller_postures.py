"""What cannot be read about who may ask for a spec means that it is given to no one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.controller import REPO_TOKEN, asking, make_site, repository, running

from stackyard.base import events
from stackyard.base.errors import FileError
from stackyard.controller import ControllerOptions, controller

WEB1 = "node-token-of-web1"
NESTED = "v2/postures/prod.yaml"
FLAT = "postures/prod.yaml"


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replace_by_link_to_nowhere(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere.yaml")


def hide_from(path: Path) -> None:
    path.chmod(0)
    try:
        path.read_bytes()
    except OSError:
        return
    pytest.skip("this user may read everything")


# Each leaves the flat form of the posture as it was, which by itself asks for no token.
BREAKS: dict[str, Callable[[Path], object]] = {
    "no YAML": lambda site: (site / NESTED).write_text("auth: {method: node_token\n"),
    "an unknown method": lambda site: (site / NESTED).write_text("auth: {method: node_tokens}\n"),
    "an unknown key": lambda site: (site / NESTED).write_text("auth: {method: node_token}\nsshd: {}\n"),
    "a list": lambda site: (site / NESTED).write_text("- auth\n"),
    "empty": lambda site: (site / NESTED).write_text(""),
    "not UTF-8": lambda site: (site / NESTED).write_bytes(b"\xff\xfe\0"),
    "not readable": lambda site: hide_from(site / NESTED),
    "another extension": lambda site: (site / NESTED).rename(site / "v2/postures/prod.yml"),
    "a folder": lambda site: replace_by_folder(site / NESTED),
    "a link to nowhere": lambda site: replace_by_link_to_nowhere(site / NESTED),
    "two that differ": lambda site: (site / FLAT).write_text("auth: {method: network}\nsudo: {}\n"),
    "the flat form is broken": lambda site: (site / FLAT).write_text("ssh_port: [\n"),
}


@pytest.mark.parametrize("how", BREAKS)
def test_a_posture_of_which_one_form_is_broken_opens_nothing(tmp_path: Path, how: str) -> None:
    """Without a token and with the right one, at the start and after a reload."""
    site = make_site(tmp_path)

    async def run() -> list[tuple[int, str]]:
        async with running(site) as found, asking(found) as client:
            assert (await client("/spec/web1")).refusal == (401, "E300")
            BREAKS[how](site)
            await found.reload()
            reloaded = [(await client("/spec/web1", token)).refusal for token in (None, WEB1)]
        async with running(site) as found, asking(found) as client:
            return [*reloaded, *[(await client("/spec/web1", token)).refusal for token in (None, WEB1)]]

    assert asyncio.run(run()) == [(404, "E201")] * 4


def replace_by_file(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.write_text("")


def replace_by_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("not-there")


@pytest.mark.parametrize("lost", ["v2", "v2/postures"])
@pytest.mark.parametrize("replace", [replace_by_file, replace_by_link])
async def test_a_folder_of_postures_that_cannot_be_read_is_no_empty_folder(
    tmp_path: Path, lost: str, replace: Callable[[Path], None]
) -> None:
    site = make_site(tmp_path)

    async with running(site) as found, asking(found) as client:
        replace(site / lost)
        with pytest.raises(FileError):
            await found.reload()
        assert (await client("/spec/web1")).refusal == (401, "E300")
        assert (await client("/spec/web1", WEB1)).status == 200


def test_a_reload_reports_what_is_wrong_with_the_site(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    told: list[events.Event] = []

    async def run() -> None:
        options = ControllerOptions(site=site, bind="127.0.0.1", port=0, repo_token=REPO_TOKEN)
        async with controller(options, emit=told.append) as found:
            (site / NESTED).write_text("auth: {method: node_tokens}\n")
            await found.reload()

    asyncio.run(run())
    files = [one.file for one in told if isinstance(one, events.DiagnosticFound)]
    assert [file for file in files if file is not None and file.endswith(NESTED)]


async def test_a_repository_token_that_is_taken_out_of_the_secrets_opens_nothing_any_more(
    tmp_path: Path,
) -> None:
    site, path = make_site(tmp_path), "/bootstrap.git/install.sh"
    repository(tmp_path / "bootstrap")
    secrets = site / "secrets.yaml"
    before = secrets.read_text()
    secrets.write_text(f"{before}  repo_token: token-in-the-secrets\n")

    async with running(site, repos=True, repo_token=None) as found, asking(found) as client:
        assert (await client(path, "token-in-the-secrets")).status == 200
        secrets.write_text(before)
        await found.reload()
        assert (await client(path, "token-in-the-secrets")).status == 403
        assert (await client(path, found.repo_token)).status == 200
