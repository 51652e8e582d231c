"""The options of `stackyard scenario run`: homestak's own, under their old and newer names."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from stackyard.base.errors import UsageError
from stackyard.cli.completions import complete_hosts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stackyard.scenario.options import ScenarioOptions

__all__ = ["list_renamed_options", "options_of", "scenario_options"]

Function = TypeVar("Function", bound="Callable[..., Any]")


def _machine_options() -> tuple[Any, ...]:
    return (
        click.option("--local", is_flag=True, help="Run it on this machine."),
        click.option(
            "--remote",
            "--vm-ip",
            "remote",
            metavar="[USER@]ADDRESS[:PORT]",
            help="Run it on the machine at this address, over SSH.",
        ),
        click.option(
            "-H",
            "--host",
            metavar="NAME",
            shell_complete=complete_hosts,
            help="Run it on a machine of the site, over SSH.",
        ),
        click.option(
            "-i", "--identity", metavar="FILE", help="The private key to log in with (default: your own)."
        ),
        click.option(
            "--site",
            metavar="DIR",
            help="The folder of the site (default: search from the current folder upwards).",
        ),
    )


def _image_options() -> tuple[Any, ...]:
    return (
        click.option("--templates", metavar="NAME,...", multiple=True, help="Only these images."),
        click.option(
            "--packer-release",
            "--image-release",
            "packer_release",
            metavar="TAG",
            help="The release of the images (default: the one of the site, else `latest`).",
        ),
        click.option("--packer-source", metavar="DIR", help="The packer folder on this machine."),
        click.option("--packer-dir", metavar="DIR", help="The packer folder on the machine that builds."),
        click.option("--output", metavar="DIR", help="The folder for fetched images."),
        click.option(
            "--user",
            "--homestak-user",
            "user",
            metavar="NAME",
            help="The user (default: the one of the site).",
        ),
        click.option(
            "--source", metavar="URL", help="Install with this installer (default: an archive of stackyard)."
        ),
        click.option(
            "--vm-id", "vm_ids", metavar="NAME=ID", multiple=True, help="The VM ID of the guest `spec-vm`."
        ),
        click.option(
            "-E",
            "--env",
            metavar="NAME",
            help="The env whose guest spec-vm-push-roundtrip creates (default: the smallest preset).",
        ),
        click.option("--force", is_flag=True, help="Overwrite values in files of the site that differ."),
    )


def _run_options() -> tuple[Any, ...]:
    return (
        click.option("-s", "--skip", metavar="PHASE", multiple=True, help="Skip a phase."),
        click.option(
            "-t",
            "--timeout",
            "timeouts",
            multiple=True,
            metavar="[PHASE=]SECONDS",
            help="The time limit of the scenario (default: ten times its expected duration), or of one "
            "phase.",
        ),
        click.option(
            "-C",
            "--context-file",
            metavar="FILE",
            help="Read the context of an earlier run from this file, and write the context of this run to "
            "it.",
        ),
        click.option(
            "-r",
            "--report-dir",
            metavar="DIR",
            help="The folder for reports (default: `reports` in the site).",
        ),
        click.option("--dry-run", is_flag=True, help="Show what the command would do. Change nothing."),
        click.option("--json-output", is_flag=True, help="Like --json, with the error as one string."),
        click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation."),
        click.option(
            "--skip-preflight",
            is_flag=True,
            help="Skip the preflight checks of the host before creating guests.",
        ),
    )


def _make_retired_options() -> tuple[Any, ...]:
    from stackyard.scenario.retired import RETIRED_OPTIONS  # lazy: beside the group, only when it is used

    short = {"--manifest": ["-M"]}
    flags = ("--keep-on-failure",)
    return tuple(
        click.option(
            name,
            *short.get(name, []),
            hidden=True,
            expose_value=False,
            is_eager=True,
            is_flag=name in flags,
            callback=_refuse,
        )
        for name in RETIRED_OPTIONS
        if name != "--env"
    )


def _refuse(ctx: click.Context, param: click.Parameter, value: object) -> None:
    from stackyard.scenario.failures import RetiredError  # lazy: for those who use a legacy option
    from stackyard.scenario.retired import RETIRED_OPTIONS  # lazy: as above

    if value and not ctx.resilient_parsing:
        name = param.opts[0]
        raise RetiredError(
            f"The option {name} belongs to scenarios that were retired in v0.47.",
            remedy=f"Use: {RETIRED_OPTIONS[name]}",
        )


def scenario_options(function: Function) -> Function:
    """Add all of them."""
    for option in reversed(
        (*_machine_options(), *_image_options(), *_run_options(), *_make_retired_options())
    ):
        function = option(function)
    return function


def list_renamed_options() -> list[tuple[str, str]]:
    """Return the options of this command line that have other names now, and these."""
    from stackyard.scenario.retired import RENAMED_OPTIONS  # lazy: only when a scenario runs

    words = {word.partition("=")[0] for word in sys.argv[1:]}
    return [(old, new) for old, new in RENAMED_OPTIONS.items() if old in words]


def options_of(values: Mapping[str, Any]) -> ScenarioOptions:
    """Return what the user says.

    Raises:
        UsageError: A value does not fit.
    """
    from stackyard.scenario.options import DEFAULT_IMAGES_FOLDER, ScenarioOptions  # lazy: only when one runs

    return ScenarioOptions(
        local=values["local"],
        remote=values["remote"],
        host=values["host"],
        identity=_path(values["identity"]),
        user=values["user"],
        templates=_names(values["templates"]),
        packer_release=values["packer_release"],
        packer_source=_path(values["packer_source"]),
        packer_dir=values["packer_dir"],
        images_folder=_path(values["output"]) or DEFAULT_IMAGES_FOLDER,
        source=values["source"],
        vm_ids=_vm_ids(values["vm_ids"]),
        env=values["env"],
        force=values["force"],
        skip=_names(values["skip"]),
        timeout_s=_read_total_timeout(values["timeouts"]),
        phase_timeouts_s={
            name: _seconds(said, f"{name}={said}")
            for name, equals, said in (word.partition("=") for word in values["timeouts"])
            if equals
        },
        skip_preflight=values["skip_preflight"],
    )


def _read_total_timeout(words: tuple[str, ...]) -> float | None:
    """Return when the run is stopped: the last word that names no phase."""
    return next((_seconds(word, word) for word in reversed(words) if "=" not in word), None)


def _seconds(text: str, word: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise UsageError(
            f"`--timeout {word}` is not valid.",
            remedy="Write --timeout 600, or --timeout provision=300.",
        )
    return found


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text).expanduser()


def _names(given: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.strip() for words in given for name in words.split(",") if name.strip())


def _vm_ids(given: tuple[str, ...]) -> dict[str, int]:
    found = {}
    for word in given:
        name, _, number = word.partition("=")
        if not name or not number.isdecimal():
            raise UsageError(f"`--vm-id {word}` is not valid.", remedy="Write it as --vm-id test=99990.")
        found[name] = int(number)
    return found
