"""Run the acceptance tests of the bpg/proxmox provider against a lab, and print or publish the score.

The tests are the provider's own, compiled elsewhere: a folder of `*.test` programs, named by argument or by
STACKYARD_TEST_BPG_SUITE. They are driven by environment variables alone and know nothing of the lab.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import dataclasses
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from pvelab.seeds import STOCK_STORAGES, Seed, SeedCall
from stackyard import lab


def _posted(path: str, **parameters: str) -> SeedCall:
    return SeedCall(method="POST", path=path, parameters=parameters)


PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "lab-score.md"
RESULT = re.compile(r"^( *)--- (PASS|FAIL|SKIP): (\S+)", re.MULTILINE)
ENGINE = re.compile(r"^(Terraform|OpenTofu) v\S+", re.MULTILINE)
PACKAGE_LIMIT_S = 3600
# The tests hang on bridges and storages of these names; see the provider's own description of its tests.
NODES = ("pve", "pve2")
# What some tests need beside that, and ask for by name: storages of two more kinds, an ACME account, Ceph.
ZFS, NFS, NFS_SERVER, NFS_EXPORT, ACME = "zfs1", "nfs1", "10.31.0.9", "/srv/nfs", "default"
_IMAGES = {"content": "images,rootdir"}
SEED = Seed(
    name="acceptance",
    # The provider's description of its tests asks for a `local` that takes all of these.
    storages={
        **STOCK_STORAGES,
        "local": {**STOCK_STORAGES["local"], "content": "iso,vztmpl,snippets,import,images,backup,rootdir"},
    },
    calls=(
        _posted("/storage", storage=ZFS, type="zfspool", pool="tank", **_IMAGES),
        _posted("/storage", storage=NFS, type="nfs", server=NFS_SERVER, export=NFS_EXPORT, **_IMAGES),
        _posted("/cluster/acme/account", name=ACME, contact="admin@example.org", tos_url="agreed"),
        _posted("/nodes/{node1}/ceph/init"),
        _posted("/nodes/{node1}/ceph/mon/{node1}"),
        _posted("/nodes/{node1}/ceph/osd", dev="/dev/sdc"),
    ),
)
# Measured by hand: each wants to be compiled, and a lab with the names that are fixed in it.
OTHER_CLIENTS = """\
## Other clients

- **Telmate/proxmox-api-go (98ffd4b), `test/api`: 58 pass, 1 fail of 59.** `Test_Cloud_Init_VM` adds the
  bridge `vmbr0`, which every node has, and imports a file from the folder /tmp of the node.
- **luthermonson/go-proxmox 0.8.0 (c85962e), `tests/integration`: 11 pass, 3 fail of 14.**
  `TestClusterResources` does not know the resources of type `network` that Proxmox VE 9 lists,
  `TestNode_TermProxy` wants a console, `TestNode_VncProxy` a VM that is named to it.
  Its tests with the tag `nodes` do not compile.
"""
# Their tests run at once by default and write the same description of the same node: one undoes the other.
ONE_AT_A_TIME = frozenset(("fwprovider-nodes-config",))


def main(argv: list[str]) -> int:
    """Run what was asked for; the status is 1 when a test fails."""
    asked = arguments(argv)
    suite = Path(asked.suite or "")
    engines = asked.engine or [shutil.which("terraform") or shutil.which("tofu")]
    if not asked.suite or not suite.is_dir() or None in engines:
        say("Name a terraform or tofu, and the folder of the compiled tests (or STACKYARD_TEST_BPG_SUITE).")
        return 64
    programs = [path for path in sorted(suite.glob("*.test")) if asked.package in path.stem]
    scores = [score(engine, programs, asked) for engine in engines]
    if asked.publish:
        PAGE.write_text(page(scores, asked.provider))
    return 1 if any("FAIL" in found.results.values() for found in scores) else 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How the tests ended with one engine."""

    engine: str
    results: Mapping[str, str]
    subtests: Mapping[str, int]

    def summary(self) -> str:
        """Return the score in a line."""
        counts = collections.Counter(self.results.values())
        tests = ", ".join(f"{counts[outcome]} {outcome.lower()}" for outcome in ("PASS", "FAIL", "SKIP"))
        inner = ", ".join(
            f"{self.subtests.get(outcome, 0)} {outcome.lower()}" for outcome in ("PASS", "FAIL", "SKIP")
        )
        return f"{self.engine}: {tests} of {len(self.results)}; sub-tests: {inner}"


def score(engine: str, programs: Sequence[Path], asked: argparse.Namespace) -> Score:
    """Run the tests with one engine."""
    results: dict[str, str] = {}
    subtests: collections.Counter[str] = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        for found in pool.map(lambda program: run_program(program, asked.run, engine), programs):
            for name, outcome, depth in found:
                # The same programs hold some tests that need no Proxmox at all: they say nothing of the lab.
                if not name.startswith("TestAcc"):
                    continue
                if depth:
                    subtests[outcome] += 1
                else:
                    results[name] = outcome
    version = subprocess.run([engine, "version"], capture_output=True, text=True, check=True)
    # Before its name, an engine may warn of settings that are not there.
    title = ENGINE.search(version.stdout)
    ended = Score(engine=title[0] if title else engine, results=results, subtests=subtests)
    say(ended.summary())
    if asked.list:
        say("\n".join(f"{outcome} {name}" for name, outcome in sorted(results.items())))
    return ended


def arguments(argv: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("suite", nargs="?", default=os.environ.get("STACKYARD_TEST_BPG_SUITE"))
    parser.add_argument("--package", default="", help="only programs whose name has this in it")
    parser.add_argument("--run", default=".", help="only tests that match this pattern")
    parser.add_argument("--engine", action="append", help="a terraform or tofu to use; may be repeated")
    parser.add_argument("--provider", default="bpg/proxmox", help="version of the provider, for the page")
    parser.add_argument("--jobs", type=int, default=2, help="how many packages to run at once")
    parser.add_argument("--list", action="store_true", help="print each test with how it ended")
    parser.add_argument("--publish", action="store_true", help="write docs/reference/lab-score.md")
    return parser.parse_args(argv)


def run_program(program: Path, pattern: str, engine: str) -> list[tuple[str, str, int]]:
    """Run one compiled package of tests on a lab of its own; a result of depth 0 is a test itself."""
    began = time.monotonic()
    with lab.running(nodes=NODES, ssh_port=0, seed=SEED) as running, tempfile.TemporaryDirectory() as scratch:
        limits = ["-test.timeout", f"{PACKAGE_LIMIT_S}s"]
        if program.stem in ONE_AT_A_TIME:
            limits += ["-test.parallel", "1"]
        done = subprocess.run(
            [program, "-test.v", "-test.run", pattern, *limits],
            cwd=scratch,
            env={**os.environ, **suite_environment(running, engine, scratch)},
            capture_output=True,
            text=True,
            check=False,
        )
    found = [(match[3], match[2], len(match[1])) for match in RESULT.finditer(done.stdout)]
    failed = [name for name, outcome, depth in found if outcome == "FAIL" and not depth]
    took = f"{time.monotonic() - began:.0f} s"
    say(f"{program.stem}: {len(found)} results in {took}, failed: {', '.join(failed) or 'none'}")
    if failed or done.returncode:
        log = Path(tempfile.gettempdir()) / f"provider-{program.stem}.log"
        log.write_text(done.stdout + done.stderr)
        say(f"  its output is in {log}")
    return found


def suite_environment(running: lab.Running, engine: str, scratch: str) -> Mapping[str, str]:
    """Return what the tests need to find the lab; nothing of the user's own settings may reach them."""
    return {
        "TF_ACC": "1",
        "TF_ACC_TERRAFORM_PATH": engine,
        **provider_address(engine, scratch),
        "CHECKPOINT_DISABLE": "1",
        "TF_CLI_CONFIG_FILE": os.devnull,
        "HOME": scratch,
        "TMPDIR": scratch,
        "PROXMOX_VE_ENDPOINT": f"{running.url}/",
        "PROXMOX_VE_INSECURE": "true",
        "PROXMOX_VE_API_TOKEN": running.api_token,
        "PROXMOX_VE_USERNAME": running.username,
        "PROXMOX_VE_PASSWORD": running.password,
        "PROXMOX_VE_SSH_USERNAME": "root",
        "PROXMOX_VE_SSH_PASSWORD": running.password,
        "PROXMOX_VE_ACC_NODE_NAME": NODES[0],
        "PROXMOX_VE_ACC_NODE_2_NAME": NODES[1],
        "PROXMOX_VE_ACC_NODE_SSH_ADDRESS": "127.0.0.1",
        "PROXMOX_VE_ACC_NODE_SSH_PORT": str(running.ssh_port or 22),
        "PROXMOX_VE_ACC_IFACE_NAME": "eno1",
        "PROXMOX_VE_ACC_BOND_SLAVE1": "eno2",
        "PROXMOX_VE_ACC_BOND_SLAVE2": "eno3",
        "PROXMOX_VE_ACC_ZFS_DATASTORE_ID": ZFS,
        "PROXMOX_VE_ACC_ZFS_DISK": "/dev/sdb",
        "PROXMOX_VE_ACC_NFS_DATASTORE_ID": NFS,
        "PROXMOX_VE_ACC_NFS_SERVER": NFS_SERVER,
        "PROXMOX_VE_ACC_NFS_EXPORT": NFS_EXPORT,
        "PROXMOX_VE_ACC_ACME_ACCOUNT_NAME": ACME,
        "PROXMOX_VE_ACC_ACME_DOMAIN": "lab.example.org",
        "PROXMOX_VE_ACC_VM_MIGRATE_HOSTPCI_ID": "0000:01:00.0",
    }


def provider_address(engine: str, scratch: str) -> Mapping[str, str]:
    """Return what the tests need to serve the provider under the address that an unqualified name has.

    They take Terraform's by themselves; OpenTofu has another default, which it is asked for.
    """
    if "tofu" not in Path(engine).name:
        return {}
    module = Path(scratch) / "asked"
    module.mkdir()
    (module / "main.tf").write_text('terraform {\n required_providers { x = { source = "a/x" } }\n}\n')
    asked = subprocess.run([engine, "providers"], cwd=module, capture_output=True, text=True, check=True)
    host = re.search(r"provider\[([^/]+)/a/x\]", asked.stdout)
    if host is None:
        raise RuntimeError(f"{engine} does not say where it looks for providers: {asked.stdout}")
    return {"TF_ACC_PROVIDER_NAMESPACE": "hashicorp", "TF_ACC_PROVIDER_HOST": host[1]}


def page(scores: Sequence[Score], provider: str) -> str:
    """Return the published page."""
    lines = [
        "<!-- Made by scripts/provider_score.py --publish; do not edit. -->\n",
        "# What the bpg/proxmox provider says of the lab\n",
        "The provider's own acceptance tests, unchanged, against a lab of two nodes with validation and",
        "permissions on. They prove that the provider is content, not that Proxmox would do the same.\n",
        f"Provider: {provider}.\n",
        *(f"- **{found.summary()}**" for found in scores),
        "",
    ]
    for outcome, title in (("FAIL", "Failing"), ("SKIP", "Skipped"), ("PASS", "Passing")):
        names = sorted({name for found in scores for name in found.results if found.results[name] == outcome})
        rows = [f"- `{name}`{only(name, outcome, scores)}" for name in names]
        lines += [f"## {title} ({len(names)})\n", *(rows or ["None."]), ""]
    return "\n".join([*lines, OTHER_CLIENTS])


def only(name: str, outcome: str, scores: Sequence[Score]) -> str:
    """Return with which engines a test ended so, where it was not with all of them."""
    engines = [found.engine for found in scores if found.results.get(name) == outcome]
    return "" if len(engines) == len(scores) else f" (with {' and '.join(engines)} alone)"


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
