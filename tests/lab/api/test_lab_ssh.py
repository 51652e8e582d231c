"""The SSH side of nodes: who gets in, what clients run there, and what becomes of it in the API."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from tests.support.lab import ROOMY, LabClient, lab_client
from tests.support.lab_ssh import TRY_SUDO, as_bash, said, ssh_to

from pvelab.seeds import parse_seed


@contextlib.asynccontextmanager
async def with_lab(**options: Any) -> AsyncIterator[LabClient]:
    async with lab_client(ssh_port=0, **options) as api:
        yield api


IMAGE = {"files": [{"volume": "local:iso/noble.img", "size": 600_000_000}]}

IMPORT = as_bash(
    TRY_SUDO + "file_id=local:iso/noble.img; file_format=qcow2; datastore_id_target={target}; vm_id=100; "
    "disk_options=aio=io_uring,backup=1,iothread=0,ssd=0; disk_interface=scsi0; "
    "source_image=$(try_sudo /usr/sbin/pvesm path $file_id); "
    "imported_disk=$(try_sudo /usr/sbin/qm disk import $vm_id $source_image $datastore_id_target -format "
    "$file_format | grep unused0 | cut -d : -f 3 | cut -d \\' -f 1); "
    "disk_id=${{datastore_id_target}}:$imported_disk,$disk_options; "
    "try_sudo /usr/sbin/qm set $vm_id -${{disk_interface}} $disk_id"
).replace("{{", "{")


@pytest.mark.parametrize(
    ("target", "disk"),
    [
        ("local-lvm", "local-lvm:vm-100-disk-0"),
        ("local", "local:100/vm-100-disk-0.qcow2"),
    ],
)
async def test_the_import_script_of_the_provider_makes_a_disk(target: str, disk: str) -> None:
    async with with_lab(seed=parse_seed(IMAGE)) as api:
        await api.done(await api.post("/nodes/pve1/qemu", vmid=100))
        async with ssh_to(api) as ssh:
            script = IMPORT.replace("{target}", target).replace("}}", "}")
            status, out, err = await said(ssh, script)
        assert (status, err) == (0, "")
        assert out.startswith("update VM 100: -scsi0 ")
        config = await api.get("/nodes/pve1/qemu/100/config")
        assert config["scsi0"].startswith(f"{disk},aio=io_uring,backup=1")
        assert "size=3584M" in config["scsi0"]
        assert "unused0" not in config


@pytest.mark.parametrize(
    ("change", "said_so"),
    [
        (("vm_id=100", "vm_id=200"), "Configuration file 'nodes/pve1/qemu-server/200.conf' does not exist"),
        (("iso/noble.img", "iso/none.img"), "failed to stat '/var/lib/vz/template/iso/none.img'"),
        (("=local-lvm", "=nowhere"), "storage 'nowhere' does not exist"),
    ],
)
async def test_an_import_that_cannot_be_fails_with_the_reason(change: tuple[str, str], said_so: str) -> None:
    async with with_lab(seed=parse_seed(IMAGE)) as api:
        await api.done(await api.post("/nodes/pve1/qemu", vmid=100))
        async with ssh_to(api) as ssh:
            script = IMPORT.replace("{target}", "local-lvm").replace("}}", "}").replace(*change)
            status, _, err = await said(ssh, script)
        assert status == 255
        assert said_so in err
        assert "scsi0" not in await api.get("/nodes/pve1/qemu/100/config")


async def test_an_upload_by_tee_is_content_of_the_storage() -> None:
    async with with_lab() as api:
        content = b"#cloud-config\n" + bytes(range(256)) * 5000
        async with ssh_to(api) as ssh:
            script = as_bash(f"{TRY_SUDO}try_sudo /usr/bin/tee /var/lib/vz/snippets/user.yaml")
            done = await ssh.run(script, input=content, encoding=None)
            assert (done.exit_status, done.stdout) == (0, content)
        listed = await api.get("/nodes/pve1/storage/local/content", content="snippets")
        assert [(file["volid"], file["size"]) for file in listed] == [
            ("local:snippets/user.yaml", len(content))
        ]


async def test_the_lines_of_an_idmap_reach_the_container() -> None:
    async def test(api: LabClient) -> None:
        await api.done(
            await api.post(
                "/nodes/pve1/lxc",
                vmid=200,
                ostemplate="local:vztmpl/debian.tar.zst",
                rootfs="local-lvm:1",
                unprivileged=1,
                description="kept\nas it is",
                start=1,
            )
        )
        config_file = "/etc/pve/lxc/200.conf"
        script = (
            f"{TRY_SUDO}try_sudo sed -i '/^lxc\\.idmap:/d' {config_file}; echo 'lxc.idmap: u 0 100000 1000\n"
            f"lxc.idmap: g 0 100000 65536' | try_sudo tee -a {config_file} > /dev/null"
        )
        async with ssh_to(api) as ssh:
            before = await api.get("/nodes/pve1/lxc/200/config")
            for _ in range(2):
                assert await said(ssh, as_bash(script)) == (0, "", "")
            after = await api.get("/nodes/pve1/lxc/200/config")
            assert after.pop("lxc") == [
                ["lxc.idmap", "u 0 100000 1000"],
                ["lxc.idmap", "g 0 100000 65536"],
            ]
            assert {**after, "digest": ""} == {**before, "digest": ""}
            status, out, _ = await said(ssh, "/usr/sbin/pct exec 200 -- cat /proc/self/uid_map")
            assert (status, out.split()) == (0, ["0", "100000", "1000"])
            await api.done(await api.post("/nodes/pve1/lxc/200/status/stop"))
            assert "not running" in (await said(ssh, "pct exec 200 -- true"))[2]

    template = {"files": [{"volume": "local:vztmpl/debian.tar.zst", "size": 100_000_000}]}
    async with with_lab(seed=parse_seed(template)) as api:
        await test(api)


async def test_the_token_of_a_metric_server_is_in_its_file() -> None:
    async with with_lab() as api:
        command = as_bash("cat /etc/pve/priv/metricserver/influx.pw 2>/dev/null || echo MISSING")
        async with ssh_to(api) as ssh:
            assert (await said(ssh, command))[1] == "MISSING\n"
            await api.post(
                "/cluster/metrics/server/influx",
                type="influxdb",
                server="10.0.0.1",
                port=8086,
                token="secret",
            )
            assert (await said(ssh, command))[1] == "secret"


async def test_commands_of_proxmox_are_calls_of_the_api() -> None:
    async with with_lab() as api:
        async with ssh_to(api) as ssh:
            assert (await said(ssh, "qm create 100 --name web --memory 512 -scsi0 local-lvm:1"))[0] == 0
            assert (await said(ssh, "qm start 100"))[0] == 0
            assert (await said(ssh, "qm status 100"))[1] == "status: running\n"
            assert "web" in (await said(ssh, "qm list"))[1]
            assert (await said(ssh, "qm start 100"))[::2] == (255, "VM 100 already running\n")
            assert (await said(ssh, "qm set 100 --cores 2 --tags a --delete memory"))[0] == 0
            assert "cores: 2" in (await said(ssh, "qm config 100"))[1]
            status, _, err = await said(ssh, "qm set 100 --cores many")
            assert status == 255
            assert "cores: type check ('integer') failed - got 'many'" in err
            assert "not enough arguments" in (await said(ssh, "qm clone 100"))[2]
            assert "unknown command 'qm fly'" in (await said(ssh, "qm fly 100"))[2]
            assert (await said(ssh, "qm stop 100 && qm destroy 100 --purge 1"))[0] == 0
            assert (await said(ssh, "pvesh get /version --output-format json"))[1].startswith(
                '{"release":"9.'
            )
            assert (await said(ssh, "pvesh create /pools --poolid lab"))[0] == 0
            assert "No 'get' handler defined for '/nothing'" in (await said(ssh, "pvesh get /nothing"))[2]
            assert (await said(ssh, "pvesm apiinfo"))[1].startswith("APIVER ")
        assert await api.get("/nodes/pve1/qemu") == []
        assert [pool["poolid"] for pool in await api.get("/pools")] == ["lab"]


async def test_files_of_the_machine_and_other_programs_are_out_of_reach(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the machine")

    async with with_lab() as api:
        async with ssh_to(api) as ssh:
            for path in (str(secret), "/etc/passwd", f"/var/lib/vz/snippets/../../../..{secret}"):
                assert (await said(ssh, f"cat '{path}'"))[:2] == (1, "")
            status, _, err = await said(ssh, f"echo x > {tmp_path}/made")
            assert (status, "No such file or directory" in err) == (1, True)
            for program in ("python3 -c 1", "/bin/ls_real", "curl x", "ssh x", "touch /x", "eval echo"):
                assert (await said(ssh, program))[0] == 127
            assert (await said(ssh, "echo a > /var/lib/vz/template/iso/not-an-iso.txt"))[0] == 1
        assert list(tmp_path.iterdir()) == [secret]


async def test_a_large_file_is_sent_in_pieces_and_not_kept_in_a_pipe() -> None:
    async with with_lab(seed=parse_seed(IMAGE)) as api, ssh_to(api) as ssh:
        async with ssh.create_process("cat /var/lib/vz/template/iso/noble.img", encoding=None) as cat:
            first = await cat.stdout.read(1000)
            assert set(first) == {0}
            assert (await said(ssh, "hostname"))[0] == 0
            cat.close()
        status, _, err = await said(ssh, "cat /var/lib/vz/template/iso/noble.img | wc -c")
        assert (status, err) == (0, "bash: line 1: pipe: File too large\n")


async def test_each_node_has_a_port_and_files_of_its_own() -> None:
    async with with_lab(nodes=("pve1", "pve2")) as api:
        async with ssh_to(api, "pve1") as one, ssh_to(api, "pve2") as two:
            assert (await said(one, "hostname"))[1] == "pve1\n"
            assert (await said(two, "hostname"))[1] == "pve2\n"
            await said(two, "echo x > /var/lib/vz/snippets/two.yaml")
            assert (await said(one, "ls /var/lib/vz/snippets"))[1] == ""
        assert await api.get("/nodes/pve1/storage/local/content") == []
        assert len(await api.get("/nodes/pve2/storage/local/content")) == 1


async def test_a_wrong_password_a_wrong_key_and_a_wrong_user_are_refused() -> None:
    async with with_lab() as api:
        stranger = asyncssh.generate_private_key("ssh-ed25519")
        wrong: list[dict[str, Any]] = [
            {"password": "wrong"},
            {"password": None, "client_keys": [stranger]},
            {"username": "nobody"},
            {"username": "alice"},
        ]
        await api.post("/access/users", userid="alice@pve", password="secret-1")
        for options in wrong:
            with pytest.raises(asyncssh.PermissionDenied):
                async with ssh_to(api, **options):
                    pass


async def test_a_key_of_the_options_of_the_seed_or_of_the_file_lets_root_in() -> None:
    keys = [asyncssh.generate_private_key("ssh-ed25519") for _ in range(3)]
    lines = [key.export_public_key().decode().strip() for key in keys]

    async with with_lab(seed=parse_seed({"authorized_keys": lines[:1]}), authorized_keys=(lines[1],)) as api:
        async with ssh_to(api) as ssh:
            assert (await said(ssh, f"echo '{lines[2]}' >> /root/.ssh/authorized_keys"))[0] == 0
        for key in keys:
            async with ssh_to(api, password=None, client_keys=[key]) as ssh:
                assert (await said(ssh, "whoami"))[1] == "root\n"


async def test_the_password_of_root_is_the_one_of_the_api() -> None:
    async with with_lab() as api:
        root = await api.with_password("root@pam", api.running.password)
        await root.put("/access/password", userid="root@pam", password="changed-now")
        async with ssh_to(api, password="changed-now") as ssh:
            assert (await said(ssh, "id -u"))[1] == "0\n"
        with pytest.raises(asyncssh.PermissionDenied):
            async with ssh_to(api):
                pass


async def test_another_user_needs_sudo() -> None:
    async with (
        with_lab(seed=parse_seed({"system_users": [{"name": "tofu", "password": "secret-word"}]})) as api,
        ssh_to(api, username="tofu", password="secret-word") as ssh,
    ):
        assert (await said(ssh, "id -u"))[1] == "1000\n"
        probe = 'if [ "$(id -u)" = "0" ]; then echo "0"; elif [ $(sudo -n /usr/sbin/pvesm apiinfo 2>&1 | '
        probe += 'grep "APIVER" | wc -l) -gt 0 ]; then echo "1"; else echo "0"; fi'
        assert (await said(ssh, as_bash(probe)))[1] == "1\n"
        assert (await said(ssh, "qm list"))[::2] == (255, "please run as root\n")
        assert "Permission denied" in (await said(ssh, "echo x | tee /var/lib/vz/snippets/x.yaml"))[2]
        assert (await said(ssh, "echo x | sudo tee /var/lib/vz/snippets/x.yaml"))[0] == 0
        async with ssh.start_sftp_client() as sftp:
            with pytest.raises(asyncssh.SFTPPermissionDenied):
                await sftp.open("/var/lib/vz/snippets/y.yaml", "w")


async def test_the_host_key_stays_the_same_with_the_data(tmp_path: Path) -> None:
    async def host_key(data: Path | None) -> bytes:
        async with lab_client(ssh_port=0, data=data) as api, ssh_to(api) as ssh:
            key = ssh.get_server_host_key()
            assert key is not None
            return key.public_data

    first, again = await host_key(tmp_path / "a"), await host_key(tmp_path / "a")
    assert first == again
    assert first != await host_key(tmp_path / "b")
    assert await host_key(None) != await host_key(None)


async def test_a_node_that_goes_down_cuts_its_connections_and_takes_no_others() -> None:
    async with with_lab(nodes=("pve1", "pve2", "pve3")) as api, ssh_to(api, "pve1") as other:
        async with ssh_to(api, "pve2") as ssh:
            await api.raw("POST", "/faults", base="/_lab", json={"kind": "node-down", "node": "pve2"})
            await ssh.wait_closed()
        with pytest.raises((asyncssh.Error, OSError)):
            async with ssh_to(api, "pve2"):
                pass
        assert (await said(other, "hostname"))[0] == 0


async def test_commands_are_in_the_journal_without_their_secrets_and_faults_strike_them() -> None:
    async with with_lab() as api:
        fault = {"kind": "answer", "method": "ssh", "path": "qm start*", "status": 500, "reason": "broken"}
        await api.raw("POST", "/faults", base="/_lab", json=fault)
        async with ssh_to(api) as ssh:
            await said(ssh, "qm set 100 -cipassword hunter22 --name x")
            assert await said(ssh, "qm start 100") == (255, "", "broken\n")
            async with ssh.start_sftp_client() as sftp, sftp.open("/var/lib/vz/snippets/a", "w") as file:
                await file.write("x")
        reply = await api.raw("GET", "/journal?user=root@pam", base="/_lab")
        assert b"hunter22" not in reply.body
        assert [(call["method"], call["path"], call["status"]) for call in reply.json["calls"]] == [
            ("SSH", "qm set 100 -cipassword ******** --name x", 2),
            ("SSH", "qm start 100", 255),
            ("SFTP", "/var/lib/vz/snippets/a", 0),
        ]


async def test_twenty_clients_at_once_upload_and_import() -> None:
    async def one(api: LabClient, number: int) -> None:
        async with ssh_to(api) as ssh:
            vmid = 100 + number
            assert (await said(ssh, f"qm create {vmid} --name vm{number}"))[0] == 0
            upload = await said(ssh, f"tee /var/lib/vz/snippets/{number}.yaml", b"x" * number)
            assert upload[0] == 0
            script = IMPORT.replace("{target}", "local-lvm").replace("}}", "}")
            assert (await said(ssh, script.replace("vm_id=100", f"vm_id={vmid}")))[0] == 0

    async with with_lab(seed=parse_seed({**IMAGE, "storages": ROOMY.storages})) as api:
        await asyncio.gather(*(one(api, number) for number in range(1, 21)))
        listed = await api.get("/nodes/pve1/storage/local/content", content="snippets")
        assert sum(file["size"] for file in listed) == sum(range(1, 21))
        disks = await api.get("/nodes/pve1/storage/local-lvm/content")
        assert len(disks) == 20
        used = (await api.get("/nodes/pve1/storage/local-lvm/status"))["used"]
        assert used == sum(disk["size"] for disk in disks)
