"""A cluster whose names, tags and descriptions somebody hostile has written: import, plan and drift."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from tests.support.engine import real_engine
from tests.support.import_seed import SEED
from tests.support.lab_forging import Forgery, forged
from tests.support.path import Yard, lasting_home, make_yard

from stackyard import lab
from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

EVIL = (
    "{{ lookup('pipe','touch canary') }} ${file(\"/etc/passwd\")} $(touch canary) "
    "\x1b[2J\u202e\n- x: y\n'\"\\"
)
CONFIG = "GET /nodes/*/qemu/*/config"


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """Give a site for all tests: each imports into an env of its own, or nothing."""
    folder, engine = tmp_path_factory.mktemp("hostile"), str(real_engine(Flavour.TOFU).path)
    with lasting_home(folder) as env, lab.running(nodes=("pve1", "pve2"), ssh_port=0, seed=SEED) as running:
        yield make_yard(running, folder / "site", STACKYARD_TOFU=engine, **env)


def described(answer: Any) -> Any:
    return {**answer, "description": EVIL} if isinstance(answer, dict) else answer


def test_a_description_is_imported_planned_and_shown_as_the_text_that_it_is(yard: Yard) -> None:
    with forged({CONFIG: described}) as done:
        yard.run("import", "env:home", "-H", "lab", "--filter", "web")
        assert done
        (entry,) = yaml.safe_load((yard.folder / "envs" / "home.yaml").read_text())["vms"]
        assert entry["description"] == EVIL
        assert yard.json("plan", "home")["has_changes"] is False
    # It is gone there now, so that every view has something to show.
    for arguments in (("plan", "home"), ("drift", "home")):
        shown = yard.run(*arguments)
        for text in (shown.stdout, shown.stderr):
            assert "\x1b[2J" not in text
            assert "\u202e" not in text
            assert "root:" not in text
    assert "lookup(" in yard.run("drift", "home").stdout
    assert not (yard.folder / "canary").exists()


FORGERIES: dict[str, dict[str, Forgery]] = {
    "a name": {"GET /cluster/resources": lambda rows: [{**row, "name": EVIL} for row in rows]},
    "tags": {"GET /cluster/resources": lambda rows: [{**row, "tags": EVIL} for row in rows]},
    "ids": {"GET /cluster/resources": lambda rows: [{**row, "vmid": EVIL} for row in rows]},
    "rows": {"GET /cluster/resources": lambda _: [EVIL]},
    "a configuration": {CONFIG: lambda _: [EVIL]},
    "values": {CONFIG: lambda answer: {key: [EVIL] for key in answer}},
    "keys": {CONFIG: lambda answer: {**answer, EVIL: EVIL}},
}


@pytest.mark.parametrize("forgeries", FORGERIES.values(), ids=FORGERIES.keys())
def test_an_import_from_a_hostile_cluster_ends_with_an_error_of_ours(
    yard: Yard, forgeries: dict[str, Forgery]
) -> None:
    with forged(forgeries) as done:
        ended = yard.run("import", "env:other", "-H", "lab", "--filter", "nas,win11", status=None)
        assert done
    for text in (ended.stdout, ended.stderr):
        assert "Traceback" not in text
        assert "\x1b[2J" not in text
        assert "\u202e" not in text
    assert ended.status in (1, 65)
    assert "E-BUG" not in ended.stderr
    assert not (yard.folder / "canary").exists()
