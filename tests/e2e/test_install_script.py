"""install.sh: what it fetches is checked before any of it is used; what it makes it can replace and remove.

The release is a small one of our own, so that nothing else is fetched; test_readme_walk.py installs the real
one.
"""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from scripts.release import write_sums
from tests.support.web import served

SCRIPT = Path(__file__).parents[2] / "install.sh"
MODULE = "import sys\ndef run():\n    print('stackyard {version}')\nif __name__ == '__main__':\n    run()\n"


def make_release(folder: Path, version: str = "1.2.3") -> Path:
    """Write a release of a program that only says its version."""
    folder.mkdir(exist_ok=True)
    info = f"stackyard-{version}.dist-info"
    files = {
        "stackyard/__init__.py": "",
        "stackyard/__main__.py": MODULE.format(version=version),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: stackyard\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\nstackyard = stackyard.__main__:run\n"
        "pvelab = stackyard.__main__:run\n",
    }
    record = "".join(
        f"{name},sha256={_record_sum(text)},{len(text.encode())}\n" for name, text in files.items()
    )
    with zipfile.ZipFile(folder / f"stackyard-{version}-py3-none-any.whl", "w") as wheel:
        for name, text in {**files, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items():
            wheel.writestr(name, text)
    for name in ("requirements.txt", "requirements-s3.txt"):
        (folder / name).write_text("# nothing\n")
    write_sums(folder)
    return folder


def _record_sum(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


class Machine:
    """A home without anything, and the script in it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.app = home / ".local" / "share" / "stackyard" / "app"
        self.bin = home / ".local" / "bin"
        home.mkdir()

    def run(self, *arguments: str, script: str | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        base = {"HOME": str(self.home), "PATH": "/usr/bin:/bin", "STACKYARD_INSTALL_PYTHON": sys.executable}
        base |= {key: value for key, value in os.environ.items() if key.startswith(("PIP_", "SSL_"))}
        command = ["sh", str(SCRIPT)] if script is None else ["sh", "-s", "--"]
        return subprocess.run(
            [*command, *arguments],
            cwd=self.home,
            env={**base, **env},
            input=script,
            stdin=None if script is not None else subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def version(self) -> str:
        done = subprocess.run([self.bin / "stackyard"], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def files(self) -> list[Path]:
        return sorted(path for path in self.home.rglob("*") if not path.is_dir())


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "a home")


def test_it_installs_from_an_address_replaces_an_older_one_and_removes_all_of_it(
    machine: Machine, tmp_path: Path
) -> None:
    release = make_release(tmp_path / "release")
    with served(release) as address:
        done = machine.run("--from", address, script=SCRIPT.read_text())
        assert done.returncode == 0, done.stderr
        assert machine.version() == "stackyard 1.2.3"
        assert "is not in PATH" in done.stderr
        for path in release.iterdir():
            path.unlink()
        make_release(release, "2.0.0")
        sums = hashlib.sha256((release / "SHA256SUMS").read_bytes()).hexdigest()
        done = machine.run("--sums", sums, "--extras", "s3", STACKYARD_INSTALL_FROM=address)
    assert done.returncode == 0, done.stderr
    assert machine.version() == "stackyard 2.0.0"
    assert "extras s3" in (machine.app / "stackyard-install.txt").read_text()
    assert [path.name for path in machine.app.parent.iterdir()] == ["app"]
    done = machine.run("--uninstall")
    assert (done.returncode, machine.files()) == (0, [])


def damage_wheel(release: Path) -> None:
    wheel = next(release.glob("*.whl"))
    wheel.write_bytes(wheel.read_bytes()[:-1] + b"x")


def damage_requirements(release: Path) -> None:
    (release / "requirements.txt").write_text("evil==1\n")


def leave_out(release: Path) -> None:
    sums = release / "SHA256SUMS"
    sums.write_text(
        "".join(line for line in sums.read_text().splitlines(True) if "requirements.txt" not in line)
    )


@pytest.mark.parametrize(
    ("damage", "options", "said"),
    [
        (damage_wheel, [], "is not what was published"),
        (damage_requirements, [], "requirements.txt is not what was published"),
        (leave_out, [], "has no requirements.txt"),
        (lambda release: None, ["--sums", "0" * 64], "SHA256SUMS is not the one you asked for"),
        (lambda release: make_release(release, "1.2.4"), [], "several versions"),
        (lambda release: None, ["--version", "9.9"], "no wheel of stackyard 9.9"),
        (lambda release: None, ["--extras", "s4"], "no extra s4"),
        (lambda release: None, ["--extras", "postgres"], "has no requirements-postgres.txt"),
        (lambda release: None, ["--python", "/bin/false"], "needs Python 3.11"),
        (lambda release: None, ["--upgrade"], "no option --upgrade"),
        (lambda release: None, ["--prefix"], "--prefix needs a value"),
    ],
)
def test_what_is_wrong_is_refused_and_nothing_is_left(
    machine: Machine, tmp_path: Path, damage: object, options: list[str], said: str
) -> None:
    release = make_release(tmp_path / "release")
    assert callable(damage)
    damage(release)
    with served(release) as address:
        done = machine.run("--from", address, *options)
    assert done.returncode == 1
    assert said in done.stderr
    assert machine.files() == []


def test_an_address_without_encryption_and_a_release_that_is_not_there_are_refused(machine: Machine) -> None:
    for place, said in [
        ("http://192.0.2.1/x", "is not encrypted"),
        ("/nowhere", "there is no folder"),
        ("http://127.0.0.1:1", "cannot be fetched"),
    ]:
        done = machine.run("--from", place)
        assert done.returncode == 1
        assert said in done.stderr
    assert "--from https://HOST/PATH" in machine.run(script=SCRIPT.read_text()).stderr
    assert machine.files() == []


def test_what_others_put_there_is_neither_replaced_nor_removed(machine: Machine, tmp_path: Path) -> None:
    release = make_release(tmp_path / "release")
    machine.app.mkdir(parents=True)
    (machine.app / "precious").touch()
    for options in (["--from", str(release)], ["--uninstall"]):
        done = machine.run(*options)
        assert done.returncode == 1
        assert "was not made by install.sh" in done.stderr
    assert [path.name for path in machine.files()] == ["precious"]


def test_a_script_that_was_cut_off_does_nothing(machine: Machine, tmp_path: Path) -> None:
    release, text = make_release(tmp_path / "release"), SCRIPT.read_text()
    for part in (0.3, 0.6, 0.9):
        machine.run("--from", str(release), script=text[: int(len(text) * part)])
    machine.run("--from", str(release), script=text[: text.rindex("main")])
    assert machine.files() == []


def test_help_names_every_option_and_its_variable(machine: Machine) -> None:
    said = machine.run("--help").stdout
    for name in ("from", "version", "extras", "prefix", "bin", "python", "sums"):
        assert f"--{name} " in said
        assert f"STACKYARD_INSTALL_{name.upper()}" in said


def test_modules_of_the_current_folder_are_not_run(machine: Machine, tmp_path: Path) -> None:
    release = make_release(tmp_path / "release")
    for name in ("hashlib", "venv", "pip", "stackyard", "sys"):
        (machine.home / f"{name}.py").write_text("open('ran', 'w')\nraise SystemExit(1)\n")
    done = machine.run("--from", str(release))
    assert done.returncode == 0, done.stderr
    assert not (machine.home / "ran").exists()
    assert machine.version() == "stackyard 1.2.3"


@pytest.mark.soak
def test_an_upgrade_keeps_the_extras_and_odd_folders_work(machine: Machine, tmp_path: Path) -> None:
    release = make_release(tmp_path / "release")
    prefix, bin_folder = machine.home / "a & b|c" / "app", machine.home / "own bin"
    places = ("--from", str(release), "--prefix", f"{prefix}/", "--bin", f"{bin_folder}/")
    prefix.mkdir(parents=True)
    assert machine.run(*places, "--extras", "s3").returncode == 0
    done = machine.run(*places)
    assert done.returncode == 0, done.stderr
    assert "extras s3" in (prefix / "stackyard-install.txt").read_text()
    shown = subprocess.run([bin_folder / "stackyard"], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "stackyard 1.2.3"


def test_a_program_of_the_same_name_is_not_replaced(machine: Machine, tmp_path: Path) -> None:
    release = make_release(tmp_path / "release")
    machine.bin.mkdir(parents=True)
    (machine.bin / "pvelab").write_text("mine")
    done = machine.run("--from", str(release))
    assert done.returncode == 1
    assert "pvelab is there and was not made by install.sh" in done.stderr
    assert (machine.bin / "pvelab").read_text() == "mine"
    assert not machine.app.exists()
