"""The scenarios of packer on a machine behind real SSH, with a program that builds as packer does."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from pathlib import Path

import pytest
from tests.support.releases import ReleaseServer, whole
from tests.support.scenarios import run_on, site_of
from tests.support.ssh_hosts import real_shell

from stackyard.scenario.machines import Remote
from stackyard.scenario.options import ScenarioOptions
from stackyard.scenario.outcome import ScenarioOutcome
from stackyard.sources.site.load import Site

PACKER = """\
#!/bin/sh
[ "$1" = version ] && {{ echo "Packer v1.11.2"; exit 0; }}
echo "$@" >> {log}
[ "$1" = init ] && exit 0
for last; do :; done
name=$(basename "$last" .pkr.hcl)
[ "$name" = template ] && name=$(basename "$(dirname "$last")")
[ "$name" = broken ] && {{ echo "Build 'qemu.debian' errored: no kvm" >&2; exit 1; }}
mkdir -p images/$name
cat "$last" > images/$name/$name.qcow2
"""


class Rig:
    """A folder of packer here, a machine over there, and the programs of that."""

    def __init__(self, folder: Path) -> None:
        self.here, self.there = folder / "here" / "packer", folder / "there" / "packer"
        self.images, self.iso, self.log = folder / "images", folder / "iso", folder / "log"
        self.programs = folder / "bin"
        self.folder = folder
        for made in (
            self.here / "templates",
            self.here / ".git",
            self.here / "images",
            self.iso,
            self.programs,
        ):
            made.mkdir(parents=True)
        self.there.parent.mkdir()
        for name in ("debian-12-custom", "debian-13-pve"):
            (self.here / "templates" / f"{name}.pkr.hcl").write_text(f"# {name}\n" * 10_000)
        (self.here / ".git" / "config").write_text("not sent")
        self.program("packer", PACKER.format(log=self.log))
        self.program("pvesm", f'#!/bin/sh\necho {self.iso}/"${{2#local:iso/}}"\n')

    def program(self, name: str, text: str) -> None:
        path = self.programs / name
        path.write_text(text)
        path.chmod(0o755)

    def run(self, scenario: str, *, site: Site | None = None, **options: object) -> ScenarioOutcome:
        chosen = {
            "packer_source": self.here,
            "packer_dir": str(self.there),
            "images_folder": self.images,
            **options,
        }

        async def go() -> ScenarioOutcome:
            async with real_shell(self.folder / scenario, programs=self.programs) as host:
                return await run_on(Remote(host), scenario, site=site, options=ScenarioOptions(**chosen))  # type: ignore[arg-type]

        return asyncio.run(go())


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def test_packer_is_brought_over_built_and_the_images_are_fetched(rig: Rig) -> None:
    outcome = rig.run("packer-sync-build-fetch")
    assert outcome.error is None, outcome.error.detail
    assert [phase.status for phase in outcome.phases] == ["passed"] * 3
    assert not (rig.there / ".git").exists()
    for name in ("debian-12-custom", "debian-13-pve"):
        image = rig.images / f"{name}.qcow2"
        assert image.read_text() == f"# {name}\n" * 10_000
        published = (rig.there / "images" / name / f"{name}.qcow2.sha256").read_text()
        assert published.startswith(hashlib.sha256(image.read_bytes()).hexdigest())
    assert rig.log.read_text().splitlines()[:2] == [
        "init templates/debian-12-custom.pkr.hcl",
        "build -color=false -force templates/debian-12-custom.pkr.hcl",
    ]


def test_a_sync_removes_what_is_gone_here_and_keeps_what_was_built_there(rig: Rig) -> None:
    assert rig.run("packer-sync").success
    (rig.there / "stale.txt").write_text("old")
    (rig.there / "images").mkdir(exist_ok=True)
    (rig.there / "images" / "big.qcow2").write_text("built")
    (rig.here / "templates" / "debian-12-custom.pkr.hcl").unlink()
    (rig.here / "new.sh").write_text("new")
    (rig.here / "new.sh").chmod(0o755)
    outcome = rig.run("packer-sync")
    assert outcome.error is None, outcome.error.detail
    names = {str(path.relative_to(rig.there)) for path in rig.there.rglob("*") if path.is_file()}
    assert names == {"templates/debian-13-pve.pkr.hcl", "images/big.qcow2", "new.sh"}
    assert (rig.there / "new.sh").stat().st_mode & 0o111
    assert [path.name for path in rig.there.parent.iterdir()] == ["packer"]


def test_only_the_templates_that_are_named_are_built_and_unknown_ones_are_refused(rig: Rig) -> None:
    outcome = rig.run("packer-sync-build-fetch", templates=("debian-13-pve",))
    assert outcome.error is None, outcome.error.detail
    assert [path.name for path in rig.images.iterdir()] == ["debian-13-pve.qcow2"]
    outcome = rig.run("packer-build", templates=("debian-11",))
    assert outcome.error is not None
    assert outcome.status == 64
    assert "there is debian-12-custom, debian-13-pve" in outcome.error.detail


def test_a_template_that_does_not_build_fails_the_run_after_the_others_were_built(rig: Rig) -> None:
    (rig.here / "templates" / "broken.pkr.hcl").write_text("x")
    outcome = rig.run("packer-sync-build-fetch")
    assert outcome.error is not None
    assert "broken: `cd " in outcome.error.detail
    assert "no kvm" in outcome.error.detail
    assert set(outcome.context["images"]) == {"debian-12-custom", "debian-13-pve"}
    assert [phase.status for phase in outcome.phases] == ["passed", "failed", "skipped"]


def test_images_are_published_into_the_storage_of_proxmox(rig: Rig) -> None:
    rig.run("packer-sync")
    outcome = rig.run("packer-build-publish")
    assert outcome.error is None, outcome.error.detail
    assert sorted(path.name for path in rig.iso.iterdir()) == ["debian-12-custom.img", "debian-13-pve.img"]


def test_a_fetch_goes_on_where_an_earlier_one_ended_and_begins_anew_where_the_image_is_another(
    rig: Rig,
) -> None:
    rig.run("packer-sync-build-fetch", templates=("debian-13-pve",))
    image, partial = rig.images / "debian-13-pve.qcow2", rig.images / "debian-13-pve.qcow2.partial"
    whole_image = image.read_bytes()
    for left in (whole_image[:100], b"something else altogether"):
        image.unlink()
        partial.write_bytes(left)
        outcome = rig.run("packer-build-fetch", templates=("debian-13-pve",), skip=("build_images",))
        assert outcome.error is None, outcome.error.detail
        assert image.read_bytes() == whole_image
        assert not partial.exists()


def test_a_machine_without_packer_is_told_what_it_needs(rig: Rig) -> None:
    rig.run("packer-sync")
    (rig.programs / "packer").unlink()
    outcome = rig.run("packer-build")
    assert outcome.error is not None
    assert outcome.error.code == "E-SCENARIO-MACHINE"


def test_images_of_a_release_go_into_the_storage_of_a_node(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    image = bytes(range(256)) * 2000
    site = site_of(rig.folder / "site", {"site.yaml": "defaults: {packer_release: v0.8.0}\n"})
    with ReleaseServer() as server:
        monkeypatch.setenv("STACKYARD_IMAGES_URL", server.url)
        for tag in ("v0.8.0", "v0.9.0-rc1"):
            folder = f"/releases/{tag}"
            server.answers[f"{folder}/SHA256SUMS"] = whole(
                f"{hashlib.sha256(image).hexdigest()}  d.qcow2\n".encode()
            )
            server.answers[f"{folder}/d.qcow2.partaa"] = whole(image[:300_000])
            server.answers[f"{folder}/d.qcow2.partab"] = whole(image[300_000:])
        outcome = rig.run("image-publish", site=site, templates=("d",))
        assert outcome.error is None, outcome.error.detail
        assert outcome.context["release"] == "v0.8.0"
        assert (rig.iso / "d.img").read_bytes() == image
        outcome = rig.run("image-publish", site=site, templates=("d",), packer_release="v0.9.0-rc1")
        assert outcome.context["release"] == "v0.9.0-rc1"
        outcome = rig.run("image-publish", templates=("d",))
        assert outcome.error is not None
        assert "/releases/latest" in outcome.error.detail


REAL = """\
variable "ssh_private_key_file" {
  type = string
}
variable "ssh_public_key" {
  type = string
}
source "null" "it" {
  communicator = "none"
}
build {
  sources = ["source.null.it"]
  provisioner "shell-local" {
    inline = [
      "test -s ${var.ssh_private_key_file}",
      "mkdir -p images/NAME",
      "echo '${var.ssh_public_key}' > images/NAME/NAME.qcow2",
    ]
  }
}
"""


def in_folders(rig: Rig, *names: str, text: str) -> None:
    """Lay the templates out as they are today: a folder each."""
    for path in (rig.here / "templates").iterdir():
        path.unlink()
    for name in names:
        (rig.here / "templates" / name).mkdir()
        (rig.here / "templates" / name / "template.pkr.hcl").write_text(text.replace("NAME", name))
        (rig.here / "templates" / name / "cleanup.sh").write_text("true\n")


def test_templates_in_folders_are_built_with_a_key_of_their_own(rig: Rig) -> None:
    in_folders(rig, "debian-12", "pve-9", text=REAL)
    outcome = rig.run("packer-sync-build-fetch")
    assert outcome.error is None, outcome.error.detail
    assert sorted(path.name for path in rig.images.iterdir()) == ["debian-12.qcow2", "pve-9.qcow2"]
    init, build = rig.log.read_text().splitlines()[:2]
    assert init == "init templates/debian-12/template.pkr.hcl"
    assert "-var ssh_public_key=ssh-ed25519 " in build
    key = build.partition("ssh_private_key_file=")[2].split()[0]
    assert not Path(key).exists(), "the key goes with the build"


def test_an_old_packer_is_told_where_a_template_names_plugins(rig: Rig) -> None:
    in_folders(rig, "debian-12", text="packer {\n  required_plugins {\n  }\n}\n")
    rig.program("packer", "#!/bin/sh\necho Packer v1.6.6\n")
    outcome = rig.run("packer-sync-build-fetch")
    assert outcome.error is not None
    assert "packer 1.6.6" in outcome.error.detail
    assert "older than 1.7" in outcome.error.detail


def test_a_real_packer_builds_a_template(rig: Rig) -> None:
    program = shutil.which("packer")
    if program is None:
        pytest.skip("packer is not installed")
    in_folders(rig, "debian-12", text=REAL)
    rig.program("packer", f'#!/bin/sh\nexec {program} "$@"\n')
    outcome = rig.run("packer-sync-build-fetch")
    assert outcome.error is None, outcome.error.detail
    assert (rig.images / "debian-12.qcow2").read_text().startswith("ssh-ed25519 ")
