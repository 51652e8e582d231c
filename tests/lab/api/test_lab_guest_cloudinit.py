"""Cloud-init in sandboxed guests: what user data says is done once, and what fails is in the log."""

from __future__ import annotations

import base64
import gzip
import json

import asyncssh
from tests.support.lab_inside import Inside, make_guest, open_guest, with_sandbox

from pvelab.world.storage.contents import put_stand_in

USER_DATA = f"""#cloud-config
hostname: app1
fqdn: app1.lab.example
manage_etc_hosts: true
timezone: Europe/Rome
locale: en_US.UTF-8
groups:
  - cloud-users
  - ops: [games]
users:
  - default
  - name: deploy
    uid: 1500
    gecos: The deployer
    groups: [cloud-users, www-data]
    shell: /bin/bash
    sudo: ALL=(ALL) NOPASSWD:ALL
    ssh_authorized_keys: [ssh-ed25519 AAAAdeploy deploy@home]
  - name: robot
    system: true
    no_create_home: true
chpasswd:
  expire: false
  list: |
    deploy:open-sesame
ssh_pwauth: true
packages: [nginx, [jq, 1.6-2.1+deb12u3], no-such-package]
package_update: true
bootcmd:
  - echo boot >> /root/boots
write_files:
  - path: /etc/app/plain.conf
    content: "a = 1\\n"
    permissions: "0600"
    owner: deploy:www-data
    defer: true
  - path: /etc/app/coded.conf
    encoding: b64
    content: {base64.b64encode(b"b = 2").decode()}
  - path: /etc/app/packed.conf
    encoding: gz+b64
    content: {base64.b64encode(gzip.compress(b"c = 3")).decode()}
  - path: /etc/motd
    content: "welcome\\n"
    append: true
  - path: /etc/app/nobodys.conf
    content: x
    owner: nosuchuser:root
runcmd:
  - [sh, -c, "echo list >> /root/ran"]
  - echo line >> /root/ran; hostname >> /root/ran
  - "false"
  - echo last >> /root/ran
swap: {{filename: /swap, size: 1G}}
final_message: the guest is ready
"""


async def check_users(guest: Inside) -> None:
    assert await guest.out("getent passwd deploy") == "deploy:x:1500:1500:The deployer:/home/deploy:/bin/bash"
    assert set((await guest.out("id -Gn deploy")).split()) == {"deploy", "cloud-users", "www-data"}
    assert await guest.out("cat /home/deploy/.ssh/authorized_keys") == "ssh-ed25519 AAAAdeploy deploy@home"
    assert await guest.out("sudo -n id -un", user="deploy") == "root"
    assert "ops" in await guest.out("id -Gn games")
    assert (
        await guest.out("getent passwd robot | cut -d: -f7; ls /home") == "/usr/sbin/nologin\ndebian\ndeploy"
    )
    assert await guest.machine.accepts_password("deploy", "open-sesame")
    assert not await guest.machine.accepts_password("deploy", "wrong")
    assert "deploy" in await guest.machine.users()


async def check_files(guest: Inside) -> None:
    assert await guest.out("cat /etc/app/plain.conf; stat -c %a /etc/app/plain.conf") == "a = 1\n600"
    assert await guest.out("cat /etc/app/coded.conf /etc/app/packed.conf") == "b = 2c = 3"
    assert await guest.out("cat /etc/motd") == "welcome"
    assert (
        await guest.out("hostname; hostname -f; cat /etc/timezone") == "app1\napp1.lab.example\nEurope/Rome"
    )
    assert await guest.out("cat /root/ran") == "list\nline\napp1\nlast"
    assert await guest.out("dpkg-query -W -f '${Status}' curl") == "install ok installed"


async def test_user_data_is_applied_once_and_what_fails_is_logged_while_the_guest_boots() -> None:
    async with with_sandbox() as api:
        await make_guest(api, user_data=USER_DATA)
        guest = await open_guest(api)
        await check_users(guest)
        await check_files(guest)
        status, out, _ = await guest.sh("cloud-init status --wait --long")
        assert status == 1
        assert "status: error" in out
        result = json.loads(await guest.out("cat /run/cloud-init/result.json"))
        problems = " ".join(result["v1"]["errors"])
        assert "no-such-package" in problems
        assert "nosuchuser" in problems
        log = await guest.out("cat /var/log/cloud-init.log /var/log/cloud-init-output.log")
        assert "Unable to locate package no-such-package" in log
        assert "swap is noted and not applied" in log
        assert "the guest is ready" in log
        # A restart runs what is for each boot, and nothing else again.
        await api.done(await api.post("/nodes/pve1/qemu/100/status/stop"))
        await api.done(await api.post("/nodes/pve1/qemu/100/status/start"))
        again = await open_guest(api)
        assert await again.out("cat /root/boots") == "boot\nboot"
        assert await again.out("cat /root/ran") == "list\nline\napp1\nlast"


MULTIPART = """Content-Type: multipart/mixed; boundary="xx"
MIME-Version: 1.0

--xx
Content-Type: text/cloud-config

#cloud-config
write_files: [{path: /root/from-config, content: config}]
--xx
Content-Type: text/x-shellscript
Content-Disposition: attachment; filename="setup.sh"

#!/bin/sh
echo "script as $(id -un)" > /root/from-script
--xx
Content-Type: text/x-include-url

https://example.invalid/more.yaml
--xx--
"""


async def test_scripts_and_messages_of_several_parts_are_run_and_includes_are_refused_in_the_log() -> None:
    async with with_sandbox() as api:
        await make_guest(api, user_data=MULTIPART)
        await make_guest(api, 101, user_data="#!/bin/sh\necho alone > /root/alone\nexit 3\n")
        await make_guest(api, 102, user_data="#cloud-config\nusers: [\n")
        first, second, third = [await open_guest(api, vmid) for vmid in (100, 101, 102)]
        assert await first.out("cat /root/from-config /root/from-script") == "configscript as root"
        assert "#include is not followed" in await first.out("cat /var/log/cloud-init.log")
        assert await second.out("cat /root/alone") == "alone"
        assert (await second.sh("cloud-init status"))[0] == 1
        assert "Failed loading yaml blob" in await third.out("cat /var/log/cloud-init.log")
        # As with the real one, the default user is there all the same.
        assert "debian" in await third.machine.users()


async def test_proxmox_own_settings_give_the_user_and_its_keys_and_password_and_containers_root() -> None:
    async with with_sandbox() as api:
        key = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
        await make_guest(api, ciuser="ops", cipassword="secret-word", sshkeys=key)
        guest = await open_guest(api)
        assert [line.split()[1] for line in await guest.machine.authorized_keys("ops")] == [key.split()[1]]
        assert await guest.machine.accepts_password("ops", "secret-word")
        assert await guest.machine.authorized_keys("root") == ()
        assert (await guest.sh("cloud-init status"))[1] == "status: done\n"
        world = api.running.world
        with world.store.transaction():
            put_stand_in(world, "local:vztmpl/debian-12-standard_12.7-1_amd64.tar.zst", "pve1", 2**20)
        given = {"ostemplate": "local:vztmpl/debian-12-standard_12.7-1_amd64.tar.zst", "hostname": "box"}
        given |= {"password": "root-word", "rootfs": "local-lvm:1", "ssh-public-keys": key}
        await api.done(await api.post("/nodes/pve1/lxc", vmid=200, start=1, **given))
        box = await open_guest(api, 200)
        assert await box.machine.accepts_password("root", "root-word")
        assert len(await box.machine.authorized_keys("root")) == 1
        assert await box.out("hostname; systemd-detect-virt") == "box\nlxc"
