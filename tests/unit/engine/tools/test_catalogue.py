from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.support.programs import LONG_S, engine_script, write_program

from stackyard.engine.tools.catalogue import CATALOGUE, ToolBrokenError, VersionOutput

TOOLS = {tool.name: tool for tool in CATALOGUE}

ANSWERS = (
    ("git", "git version 2.39.5", "2.39.5"),
    ("git", "git version 2.50.1 (Apple Git-155)", "2.50.1"),
    ("git", "git version 2.47.1.windows.1", "2.47.1.windows.1"),
    ("ssh", "OpenSSH_9.2p1 Debian-2+deb12u6, OpenSSL 3.0.19 27 Jan 2026", "9.2p1"),
    ("ansible-playbook", "ansible-playbook [core 2.15.3]\n  config file = None", "2.15.3"),
    ("ansible-playbook", "ansible-playbook [core 2.19.0rc1]", "2.19.0rc1"),
    ("ansible-playbook", "ansible-playbook 2.9.27", "2.9.27"),
    ("sops", "sops 3.10.2 (latest)", "3.10.2"),
    ("packer", "Packer v1.11.2", "1.11.2"),
    ("packer", "1.9.4", "1.9.4"),
    ("talosctl", "Client:\nTalos v1.12.1", "1.12.1"),
    ("task", "3.54.0", "3.54.0"),
    ("kube-apiserver", "Kubernetes v1.36.3", "1.36.3"),
    ("etcd", "etcd Version: 3.6.16\nGit SHA: Not provided", "3.6.16"),
    ("task", "Task version: v3.39.2 (h1:abc=)", "3.39.2"),
    ("qemu", "QEMU emulator version 7.2.11 (Debian 1:7.2+dfsg-7+deb12u7)", "7.2.11"),
)


@pytest.mark.parametrize(("name", "answer", "version"), ANSWERS)
@pytest.mark.parametrize("redirect", ["", " >&2"])
def test_the_version_is_read_from_what_the_program_really_prints(
    name: str, answer: str, version: str, redirect: str, tmp_path: Path
) -> None:
    program = write_program(tmp_path / "program", f"echo '{answer}'{redirect}")
    assert asyncio.run(TOOLS[name].ask(program, LONG_S)) == VersionOutput(product=name, version=version)


@pytest.mark.parametrize("name", [name for name in TOOLS if name not in ("tofu", "terraform")])
def test_nonsense_is_quoted_and_not_taken_for_a_version(name: str, tmp_path: Path) -> None:
    program = write_program(tmp_path / "program", "echo 'the answer is forty-two'")
    with pytest.raises(ToolBrokenError, match="the answer is forty-two"):
        asyncio.run(TOOLS[name].ask(program, LONG_S))


@pytest.mark.parametrize("name", ["tofu", "terraform"])
@pytest.mark.parametrize("terraform", [False, True])
def test_an_engine_is_what_its_answer_says_whatever_its_file_is_called(
    name: str, terraform: bool, tmp_path: Path
) -> None:
    program = write_program(tmp_path / name, engine_script("1.11.4", terraform=terraform))
    said = asyncio.run(TOOLS[name].ask(program, LONG_S))
    assert said == VersionOutput(product="terraform" if terraform else "tofu", version="1.11.4")


def test_the_catalogue_has_each_program_once_and_says_what_needs_it() -> None:
    names = [tool.name for tool in CATALOGUE]
    first = ["tofu", "terraform", "git", "ssh", "ansible-playbook", "sops", "packer", "qemu", "opa"]
    assert names == [*first, "talosctl", "task", "kube-apiserver", "etcd", "gitea"]
    assert all(tool.needed_for and tool.programs for tool in CATALOGUE)
