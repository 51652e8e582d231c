"""What a guest does: real curl with the pinned key, the bootstrap in real shells, `spec get|apply`."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asyncssh
import pytest
import yaml
from tests.support.cli import Ended, stackyard
from tests.support.controller import make_site, running
from tests.support.processes import PATIENCE_S

from stackyard.base.serving import make_certificate
from stackyard.controller import RunningController
from stackyard.desired import Vm
from stackyard.render.userdata import cloud_config
from stackyard.sources.site.resolver import ConfigResolver

WEB1 = "node-token-of-web1"
OTHER_PIN = make_certificate(["x"]).pin


def with_controller(site: Path, work: Callable[[RunningController], Any], **options: Any) -> Any:
    """Run a controller in this process, and something that blocks in a thread beside it."""

    async def run() -> Any:
        async with running(site, **options) as found:
            return await asyncio.to_thread(work, found)

    return asyncio.run(run())


def require(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")


# --- curl


def curl(found: RunningController, *options: str) -> subprocess.CompletedProcess[str]:
    command = ["curl", "--silent", "--show-error", *options, f"{found.url}/spec/web1"]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def test_curl_knows_the_controller_by_its_pinned_key_and_refuses_another(tmp_path: Path) -> None:
    require("curl")

    def work(found: RunningController) -> None:
        bearer = ("--header", f"Authorization: Bearer {WEB1}")
        right = curl(found, "--insecure", "--pinnedpubkey", found.pin, *bearer)
        assert json.loads(right.stdout)["identity"]["hostname"] == "web1"
        wrong = curl(found, "--insecure", "--pinnedpubkey", OTHER_PIN, *bearer)
        assert (wrong.returncode, wrong.stdout) == (90, "")
        authority = tmp_path / "server.crt"
        authority.write_bytes(found.certificate_pem)
        assert json.loads(curl(found, "--cacert", str(authority), *bearer).stdout)["schema_version"] == 1
        assert curl(found, *bearer).returncode == 60

    with_controller(make_site(tmp_path), work)


# --- The bootstrap


def boot(
    root: Path, found: RunningController, *, shell: str = "sh", **changed: str
) -> subprocess.CompletedProcess[str]:
    """Write what cloud-init would write below a root, and run what it would run."""
    site = {"STACKYARD_SERVER": found.url, "STACKYARD_IDENTITY": "web1", "STACKYARD_PIN": found.pin}
    values = {**site, "STACKYARD_TOKEN": WEB1, **changed}
    settings = root / "etc/stackyard/guest.env"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
    script = Path(__file__).parents[2] / "src/stackyard/sources/site/bootstrap.sh"
    return subprocess.run(
        [shell, str(script)],
        env={"PATH": os.environ["PATH"], "STACKYARD_ROOT": str(root), "STACKYARD_RETRIES": "0"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.mark.parametrize("shell", ["sh", "dash", "bash"])
def test_the_bootstrap_fetches_and_applies_the_spec(tmp_path: Path, shell: str) -> None:
    require("curl")
    require(shell)
    root = tmp_path / "root"

    def work(found: RunningController) -> None:
        ended = boot(root, found, shell=shell)
        assert (ended.returncode, ended.stderr) == (0, "")
        state = root / "var/lib/stackyard"
        assert json.loads((state / "complete.json").read_text())["status"] == "complete"
        assert json.loads((state / "spec.yaml").read_text())["identity"]["hostname"] == "web1"
        assert (root / "etc/hostname").read_text() == "web1\n"
        # The posture is applied in pull as in push.
        assert "PermitRootLogin no" in (root / "etc/ssh/sshd_config.d/50-stackyard.conf").read_text()
        assert [path for path in state.iterdir() if stat.S_IMODE(path.stat().st_mode) & 0o022] == []
        assert boot(root, found, shell=shell).returncode == 0

    with_controller(make_site(tmp_path), work)


@pytest.mark.parametrize(
    ("changed", "status", "said"),
    [
        ({"STACKYARD_TOKEN": "wrong"}, 1, "403"),
        ({"STACKYARD_TOKEN": ""}, 1, "401"),
        ({"STACKYARD_TOKEN": "a\"b\\c'd$(x)"}, 1, "403"),
        ({"STACKYARD_IDENTITY": "web2"}, 1, "403"),
        ({"STACKYARD_IDENTITY": "nobody"}, 2, "404"),
        ({"STACKYARD_IDENTITY": "wrong"}, 3, "not valid"),
        ({"STACKYARD_IDENTITY": ""}, 1, "STACKYARD_IDENTITY"),
        ({"STACKYARD_SERVER": ""}, 1, "STACKYARD_SERVER"),
        ({"STACKYARD_SERVER": "https://127.0.0.1:1"}, 2, "cannot be reached"),
        ({"STACKYARD_SERVER": "http://127.0.0.1:1"}, 2, "cannot be reached"),
        ({"STACKYARD_PIN": OTHER_PIN}, 2, "not the one that is known"),
        ({"STACKYARD_PIN": ""}, 2, "not the one that is known"),
    ],
)
def test_a_bootstrap_that_fails_says_whose_fault_it_is_and_applies_nothing(
    tmp_path: Path, changed: dict[str, str], status: int, said: str
) -> None:
    require("curl")
    root = tmp_path / "root"

    def work(found: RunningController) -> None:
        ended = boot(root, found, **changed)
        assert (ended.returncode, said in ended.stderr) == (status, True), ended
        assert not (root / "var/lib/stackyard/spec.yaml").exists()
        assert not (root / "etc/hostname").exists()

    with_controller(make_site(tmp_path, is_broken=True), work)


def test_the_token_is_in_no_argument_of_curl(tmp_path: Path) -> None:
    """A curl that writes down how it was called stands before the real one."""
    require("curl")
    root, spy = tmp_path / "root", tmp_path / "bin" / "curl"
    spy.parent.mkdir()
    spy.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$*" >>"{tmp_path}/called"\nexec {shutil.which("curl")} "$@"\n'
    )
    spy.chmod(0o755)

    def work(found: RunningController) -> None:
        path = os.environ["PATH"]
        os.environ["PATH"] = f"{spy.parent}:{path}"
        try:
            assert boot(root, found).returncode == 0
        finally:
            os.environ["PATH"] = path
        assert "--config -" in (tmp_path / "called").read_text()
        assert WEB1 not in (tmp_path / "called").read_text()

    with_controller(make_site(tmp_path), work)


# --- A host that boots with the cloud-init that was generated


class Host(asyncssh.SSHServer):
    """A host that lets everybody in; its commands are run by a real shell below a root of its own."""

    def begin_auth(self, username: str) -> bool:
        del username
        return False


def user_data(site: Path, found: RunningController, name: str) -> str:
    """Return the user data of a guest of the site as its hypervisor would hand it over."""
    resolver = ConfigResolver(site)
    vm = next(guest for guest in resolver.resolve_desired("shop").vms if guest.name == name)
    assert isinstance(vm, Vm)
    assert vm.cloud_init is not None
    text = cloud_config(vm, vm.cloud_init)
    parts = (text,) if isinstance(text, str) else text
    secrets = resolver.secrets()
    whole = "".join(
        part if isinstance(part, str) else json.dumps(secrets.reveal(part))[1:-1] for part in parts
    )
    assert found.pin in whole
    return whole


async def boot_over_ssh(connection: asyncssh.SSHClientConnection, config: dict[str, Any]) -> int:
    """Do what cloud-init does with `write_files` and `runcmd`."""
    for file in config["write_files"]:
        path = f'"$STACKYARD_ROOT"{file["path"]}'
        command = f'mkdir -p "$(dirname {path})" && cat >{path} && chmod {file["permissions"]} {path}'
        assert (await connection.run(command, input=file["content"], check=True)).exit_status == 0
    status = 0
    for command in config["runcmd"]:
        ended = await connection.run(f'sh "$STACKYARD_ROOT"{command}', stdin=asyncssh.DEVNULL)
        status = status or int(ended.exit_status or 0)
    return status


async def test_a_host_boots_with_the_generated_cloud_init_and_becomes_what_its_spec_says(
    tmp_path: Path,
) -> None:
    require("curl")
    site, root = make_site(tmp_path), tmp_path / "host"
    root.mkdir()

    async def handle(session: asyncssh.SSHServerProcess[str]) -> None:
        shell = await asyncio.create_subprocess_exec(
            *("sh", "-c", session.command or "true"),
            env={"PATH": os.environ["PATH"], "STACKYARD_ROOT": str(root), "STACKYARD_RETRIES": "0"},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await shell.communicate((await session.stdin.read()).encode())
        session.stdout.write(out.decode())
        session.stderr.write(err.decode())
        session.exit(shell.returncode or 0)

    key = asyncssh.generate_private_key("ssh-ed25519")
    async with running(site) as found:
        # The address of the site's own controller, which is known once it runs.
        text = (site / "site.yaml").read_text().replace("https://controller:44443", found.url)
        (site / "site.yaml").write_text(text)
        config = yaml.safe_load(user_data(site, found, "web1"))
        server = await asyncssh.listen(
            "127.0.0.1", 0, server_factory=Host, server_host_keys=[key], process_factory=handle
        )
        async with (
            server,
            asyncssh.connect("127.0.0.1", server.get_port(), known_hosts=None) as connection,
        ):
            assert await boot_over_ssh(connection, config) == 0
    complete = json.loads((root / "var/lib/stackyard/complete.json").read_text())
    assert (complete["status"], complete["spec"], complete["users"]) == ("complete", "web1", ["ops"])
    assert "nginx" in complete["packages"]
    assert stat.S_IMODE((root / "etc/stackyard/guest.env").stat().st_mode) == 0o600


# --- spec get and spec apply


def get(found: RunningController, *options: str, token: str = WEB1, identity: str = "web1") -> Ended:
    words = ("--server", found.url, "--identity", identity, *options, "--json")
    return stackyard("spec", "get", *words, env={"STACKYARD_TOKEN": token} if token else None)


async def test_get_keeps_the_spec_and_the_one_before(tmp_path: Path) -> None:
    site, saved = make_site(tmp_path), tmp_path / "kept" / "spec.yaml"

    async with running(site) as found:
        options = ("--pin", found.pin, "--out", str(saved))
        first = await asyncio.to_thread(get, found, *options)
        assert (first.status, first.document["changed"]) == (0, True)
        assert stat.S_IMODE(saved.stat().st_mode) == 0o600
        again = await asyncio.to_thread(get, found, *options)
        assert (again.document["changed"], saved.with_name("spec.yaml.prev").exists()) == (False, False)
        before = saved.read_text()
        spec = site / "v2/specs/web.yaml"
        spec.write_text(spec.read_text().replace("[nginx]", "[apache2]", 1))
        await found.reload()
        assert (await asyncio.to_thread(get, found, *options)).document["changed"] is True
        assert saved.with_name("spec.yaml.prev").read_text() == before
        assert "apache2" in saved.read_text()


def test_get_ends_with_the_status_that_says_whose_fault_it_is(tmp_path: Path) -> None:
    saved = tmp_path / "spec.yaml"

    def work(found: RunningController) -> None:
        pin = ("--pin", found.pin, "--out", str(saved))
        fingerprint = ("--fingerprint", found.fingerprint, "--out", "-")
        authority = tmp_path / "ca.pem"
        authority.write_bytes(found.certificate_pem)
        cases: list[tuple[Ended, int, str | None]] = [
            (get(found, *fingerprint), 0, None),
            (get(found, "--ca-cert", str(authority), "--out", "-"), 0, None),
            (get(found, "--insecure", "--out", "-"), 0, None),
            (get(found, *pin, token="wrong"), 1, "E-SPEC-REFUSED"),
            (get(found, *pin, token=""), 1, "E-SPEC-REFUSED"),
            (get(found, *pin, identity="web2"), 1, "E-SPEC-REFUSED"),
            (get(found, *pin, identity="nobody"), 2, "E-SPEC-UNREACHABLE"),
            (get(found, *pin, identity="wrong"), 3, "E-SPEC-INVALID"),
            (get(found, "--out", str(saved)), 2, "E-SPEC-UNREACHABLE"),
            (get(found, "--pin", OTHER_PIN, "--out", str(saved)), 2, "E-SPEC-UNREACHABLE"),
            (get(found, "--fingerprint", "AB:CD", "--out", str(saved)), 2, "E-SPEC-UNREACHABLE"),
            (
                stackyard("spec", "get", "--server", "http://x", "--out", str(saved), "--json"),
                1,
                "E-SPEC-REFUSED",
            ),
            (stackyard("spec", "get", "--settings", str(tmp_path / "none"), "--json"), 64, "E-USAGE"),
        ]
        for ended, status, code in cases:
            assert ended.status == status, ended
            assert ended.document.get("error", {}).get("code") == code
        assert not saved.exists()

    with_controller(make_site(tmp_path, is_broken=True), work)


def test_get_reads_what_cloud_init_wrote(tmp_path: Path) -> None:
    settings, saved = tmp_path / "guest.env", tmp_path / "spec.yaml"

    def work(found: RunningController) -> None:
        settings.write_text(
            f"STACKYARD_SERVER={found.url}\nSTACKYARD_IDENTITY=web1\n"
            f"STACKYARD_PIN={found.pin}\nSTACKYARD_TOKEN={WEB1}\n"
        )
        ended = stackyard("spec", "get", "--settings", str(settings), "--out", str(saved), "--json")
        assert (ended.status, saved.exists()) == (0, True), ended
        old = {"HOMESTAK_SPEC_SERVER": found.url, "HOMESTAK_IDENTITY": "web1", "HOMESTAK_AUTH_TOKEN": WEB1}
        again = stackyard("spec", "get", "--fingerprint", found.fingerprint, "--out", "-", "--json", env=old)
        assert again.status == 0, again

    with_controller(make_site(tmp_path), work)


def test_apply_makes_a_root_what_the_saved_spec_says(tmp_path: Path) -> None:
    saved, root = tmp_path / "spec.yaml", tmp_path / "root"

    def work(found: RunningController) -> None:
        assert get(found, "--pin", found.pin, "--out", str(saved)).status == 0

    with_controller(make_site(tmp_path), work)
    dry = stackyard("spec", "apply", str(saved), "--root", str(root), "--dry-run", "--json")
    assert (dry.status, dry.document["dry_run"], root.exists()) == (0, True, False)
    ended = stackyard("spec", "apply", str(saved), "--root", str(root), "--json")
    assert (ended.status, ended.document["success"], ended.document["users"]) == (0, True, ["ops"]), ended
    assert (root / "etc/hostname").read_text() == "web1\n"


def test_apply_ends_with_the_status_that_says_what_is_wrong(tmp_path: Path) -> None:
    site, saved, root = make_site(tmp_path), tmp_path / "spec.yaml", tmp_path / "root"
    missing = stackyard("spec", "apply", str(tmp_path / "none.yaml"), "--json")
    assert (missing.status, missing.document["error"]["code"]) == (1, "E-SPEC-MISSING")
    unresolved = stackyard("spec", "apply", str(site / "v2/specs/web.yaml"), "--json")
    assert (unresolved.status, unresolved.document["error"]["code"]) == (3, "E-SPEC-INVALID")
    saved.write_text(json.dumps(stackyard("spec", "show", "web", "--site", str(site), "--json").document))
    root.write_text("a file where a folder is needed")
    failed = stackyard("spec", "apply", str(saved), "--root", str(root), "--json")
    assert (failed.status, failed.document["error"]["code"]) == (2, "E-SPEC-APPLY")
