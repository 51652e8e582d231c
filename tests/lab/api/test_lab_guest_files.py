"""What a hostile container has for `pct pull` and `pct push`: links, FIFOs, devices, huge files."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from tests.support.lab_inside import need_sandbox
from tests.support.lab_shell import with_shell

from pvelab.machines.machine import Kind

SECRET = "the-secret-of-the-machine"
# Longer than any of it takes, shorter than for ever.
PATIENCE_S = 60.0


async def test_links_lead_neither_to_the_node_nor_to_the_machine(tmp_path: Path) -> None:
    need_sandbox()
    secret = tmp_path / "secret.txt"
    secret.write_text(SECRET)
    os.chmod(secret, 0o666)

    async with with_shell(guests=Kind.SANDBOX) as (_api, say):
        assert (await say("cat > /var/lib/vz/snippets/node.yaml", b"of the node"))[0] == 0
        links = {
            "absolute": str(secret),
            "relative": f"../../../../../../..{secret}",
            "chain": "/root/absolute",
            "loop": "/root/loop",
            "proc": f"/proc/1/root{secret}",
            "node": "/var/lib/vz/snippets/node.yaml",
        }
        made = "; ".join(f"ln -s {target} /root/{name}" for name, target in links.items())
        assert (await say(f"pct exec 201 -- sh -c '{made}; ln -s {tmp_path} /root/folder'"))[0] == 0
        for path in (*links, "folder/secret.txt"):
            status, out, err = await say(f"pct pull 201 /root/{path} -")
            assert (status, out) == (255, ""), path
            assert "failed to open" in err
            assert (await say(f"pct push 201 - /root/{path}", b"overwritten"))[0] == 255, path
        # A link that changes all the time, between any look and any use.
        swap = f"while :; do ln -sfn {secret} /root/swap; rm /root/swap; echo own > /root/swap; done"
        swapping = asyncio.ensure_future(say(f"pct exec 201 -- sh -c '{swap}'"))
        for _ in range(20):
            assert (await say("pct pull 201 /root/swap -"))[1] in ("", "own\n")
            await say("pct push 201 - /root/swap", b"own\n")
        swapping.cancel()
        await asyncio.wait({swapping})
        assert secret.read_text() == SECRET
        assert (await say("cat /var/lib/vz/snippets/node.yaml"))[1] == "of the node"


async def test_what_never_ends_is_refused_and_the_lab_goes_on_answering() -> None:
    need_sandbox()

    async with with_shell(guests=Kind.SANDBOX) as (api, say):
        inside = "mkfifo /root/fifo; truncate -s 100M /root/big; mkfifo /root/held"
        result = await say(f"pct exec 201 -- sh -c '{inside}'")
        assert result[0] == 0, result
        held = asyncio.ensure_future(say("pct exec 201 -- sh -c 'exec sleep 1000 <> /root/held'"))
        async with asyncio.timeout(PATIENCE_S):
            for path in ("/root/fifo", "/root/held", "/dev/zero", "/dev/null"):
                for line in (f"pct pull 201 {path} -", f"pct push 201 - {path}"):
                    status, out, err = await say(line, b"x")
                    assert (status, out) == (255, ""), line
                    assert "Invalid argument" in err or "No such device" in err, line
            status, out, err = await say("pct pull 201 /root/big -")
            assert (status, out) == (255, "")
            assert "64 MiB at most" in err
            # The program that reads runs in the guest, and the guest cannot put another in its place.
            fake = "rm -f /run/lab/bin/lab-file; mkdir -p /usr/local/sbin; cp /bin/true /run/lab/bin/lab-file"
            await say(f"pct exec 201 -- sh -c '{fake}; cp /bin/true /usr/local/sbin/lab-file'")
            assert await say("pct pull 201 /etc/hostname -") == (0, "pihole\n", "")
            assert (await api.get("/version"))["version"]
        held.cancel()
        await asyncio.wait({held})
