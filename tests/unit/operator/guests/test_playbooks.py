"""The site's playbook is run by ansible-runner, which is told everything by files of ours alone."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.site import SEED, write_site
from tests.support.ssh_hosts import real_shell

from stackyard.base import events
from stackyard.clients import ssh
from stackyard.operator.guests import GuestContext, guest_context
from stackyard.operator.guests.ansible import AnsibleMissingError, find_playbook, run_playbook
from stackyard.operator.guests.phases import GuestConfigError
from stackyard.sources.manifest.read import ManifestRequest, find_manifest
from stackyard.sources.site.resolver import ConfigResolver

PLAYBOOK = "- hosts: all\n  tasks: []\n"
MANIFEST = {
    "schema_version": 2,
    "name": "one",
    "nodes": [{"name": "web", "type": "vm", "image": "debian-12", "preset": "vm-small", "spec": "base"}],
}

# What is run in the place of ansible-runner: it writes down what it was given, and by which modes.
RUNNER = """\
#!/bin/sh
out={out}
printf '%s\\n' "$@" >"$out/arguments"
cp -r "$2" "$out/given"
find "$2" -type f -perm /077 >"$out/open"
find "$2" -type d -perm /077 >>"$out/open"
env >"$out/environment"
echo 'PLAY [all] canary-word'
echo 'fatal: [web]: FAILED! canary-word' >&2
exit {status}
"""


def site(folder: Path, **changed: str) -> ConfigResolver:
    return ConfigResolver(write_site(folder / "site", {**SEED}, **changed))


def runner(folder: Path, monkeypatch: pytest.MonkeyPatch, *, status: int = 0) -> Path:
    """Put a runner on the PATH; return where it writes."""
    out, programs = folder / "out", folder / "bin"
    out.mkdir()
    programs.mkdir()
    program = programs / "ansible-runner"
    program.write_text(RUNNER.format(out=out, status=status))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return out


@contextlib.asynccontextmanager
async def at_work(resolver: ConfigResolver, folder: Path) -> AsyncIterator[tuple[GuestContext, ssh.Shell]]:
    manifest = find_manifest(resolver.site, ManifestRequest(text=json.dumps(MANIFEST)))
    async with (
        guest_context(resolver, manifest, "pve") as context,
        real_shell(folder) as host,
        ssh.connect(host) as shell,
    ):
        yield context, shell


def play(resolver: ConfigResolver, folder: Path, emit: events.Emit = events.ignore) -> dict[str, Any]:
    """Run the playbook of a site against a machine; return where that machine was."""
    playbook = find_playbook(resolver.site)
    assert playbook is not None

    async def scenario() -> dict[str, Any]:
        async with at_work(resolver, folder) as (context, shell):
            document = context.document(context.manifest.by_name["web"])
            assert document is not None
            await run_playbook(playbook, shell, document, context, emit=emit)
            return {"port": shell.host.port, "key": shell.host_key}

    return asyncio.run(scenario())


def with_playbook(resolver: ConfigResolver, folder: str = "ansible") -> ConfigResolver:
    path = resolver.site.root / folder / "playbooks" / "config-apply.yml"
    path.parent.mkdir(parents=True)
    path.write_text(PLAYBOOK)
    return resolver


def test_the_playbook_of_the_site_is_found_in_its_folder_or_in_the_one_it_names(tmp_path: Path) -> None:
    resolver = site(tmp_path)
    assert find_playbook(resolver.site) is None
    with_playbook(resolver)
    assert find_playbook(resolver.site) == resolver.site.root / "ansible/playbooks/config-apply.yml"
    text = SEED["site.yaml"].replace("defaults:\n", "defaults:\n  ansible: ../roles\n", 1)
    named = ConfigResolver(write_site(tmp_path / "named", {**SEED, "site.yaml": text}))
    with pytest.raises(GuestConfigError, match=r"ansible: \.\./roles"):
        find_playbook(named.site)
    with_playbook(named, "../roles")
    assert find_playbook(named.site) is not None


def test_the_runner_is_told_by_files_of_ours_alone_and_nothing_by_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, lines = runner(tmp_path, monkeypatch), list[str]()

    def emit(event: events.Event) -> None:
        if isinstance(event, events.LogLine):
            lines.append(event.text)

    resolver = with_playbook(site(tmp_path))
    place = play(resolver, tmp_path, emit)
    assert (out / "open").read_text() == ""
    arguments = (out / "arguments").read_text().splitlines()
    assert [arguments[0], *arguments[2:]] == [
        *("run", "--project-dir", str(resolver.site.root / "ansible")),
        *("--playbook", "playbooks/config-apply.yml", "--ident", "run"),
    ]
    hosts = json.loads((out / "given/inventory/hosts.json").read_text())["all"]["hosts"]
    assert (hosts["web"]["ansible_host"], hosts["web"]["ansible_port"]) == ("127.0.0.1", place["port"])
    assert "StrictHostKeyChecking=yes" in hosts["web"]["ansible_ssh_common_args"]
    assert (out / "given/known_hosts").read_text() == f"web {place['key']}\n"
    variables = json.loads((out / "given/env/extravars").read_text())
    assert (variables["hostname"], variables["local_user"]) == ("web", "homestak")
    assert "PLAY [all] canary-word" in lines
    assert not Path(arguments[1]).exists()


def test_a_playbook_that_fails_is_quoted_and_a_runner_that_is_missing_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolver = with_playbook(site(tmp_path))
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(tmp_path / "nothing"))
        with pytest.raises(AnsibleMissingError) as missing:
            play(resolver, tmp_path)
        assert "ansible-runner" in missing.value.remedy
    runner(tmp_path, monkeypatch, status=2)
    with pytest.raises(GuestConfigError, match=r"config-apply\.yml failed: .*canary-word"):
        play(resolver, tmp_path)
