from __future__ import annotations

from pathlib import Path

import pytest

from stackyard.engine.version import Engine, Flavour, Version
from stackyard.engine.workdir import Workdir

ENGINE = Engine(path=Path("/opt/tofu"), flavour=Flavour.TOFU, version=Version(1, 12, 6))


def test_the_environment_holds_what_was_passed_and_nothing_by_accident(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in (
        "TF_LOG",
        "TF_CLI_ARGS_plan",
        "TF_VAR_size",
        "TF_WORKSPACE",
        "TF_REATTACH_PROVIDERS",
        "AWS_PROFILE",
    ):
        monkeypatch.setenv(name, "from the user's session")
    monkeypatch.setenv("TF_CLI_CONFIG_FILE", "/home/ann/.terraformrc")
    env = Workdir(engine=ENGINE, folder=Path("/srv/site")).env()
    assert {name: value for name, value in env.items() if name.startswith(("TF_", "AWS_", "CHECKPOINT"))} == {
        "TF_IN_AUTOMATION": "1",
        "TF_INPUT": "0",
        "CHECKPOINT_DISABLE": "1",
        "TF_CLI_CONFIG_FILE": "/dev/null",
    }


def test_the_environment_can_be_added_to_but_never_asks_questions() -> None:
    env = Workdir(
        engine=ENGINE,
        folder=Path("/srv/site"),
        environment={"TF_HTTP_PASSWORD": "p", "TF_INPUT": "1", "TF_VAR_size": "environment"},
        variables={"size": "variables"},
        reattach="{}",
        data_dir=Path("data"),
        cli_config=Path("/etc/tofurc"),
    ).env()
    assert env["TF_HTTP_PASSWORD"] == "p"
    assert env["TF_INPUT"] == "0"
    assert env["TF_VAR_size"] == "variables"
    assert env["TF_REATTACH_PROVIDERS"] == "{}"
    assert env["TF_DATA_DIR"] == str(Path.cwd() / "data")
    assert env["TF_CLI_CONFIG_FILE"] == "/etc/tofurc"
