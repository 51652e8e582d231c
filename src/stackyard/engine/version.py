"""Which engine we have: OpenTofu or Terraform, and which version of it.

`probe_version` asks the program itself and reads only its JSON. `require_supported` says whether we can work
with the answer. Where engines are looked for is the business of `stackyard.engine.tools`.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path

from stackyard.base import process
from stackyard.base.documents.jsontext import parse_json
from stackyard.base.documents.limits import SMALL
from stackyard.base.documents.versions import Version
from stackyard.base.errors import StackyardError

__all__ = [
    "OLDEST",
    "Engine",
    "EngineBrokenError",
    "EngineTooOldError",
    "Flavour",
    "Version",
    "probe_version",
    "require_supported",
]


class Flavour(enum.StrEnum):
    """Which of the two engines a program is."""

    TOFU = "tofu"
    TERRAFORM = "terraform"

    @property
    def label(self) -> str:
        """The name that its makers write."""
        return {Flavour.TOFU: "OpenTofu", Flavour.TERRAFORM: "Terraform"}[self]


# A program that has more to say of its version is no engine.
_ANSWER_LIMIT_BYTES = 2**20

# OpenTofu 1.10 and Terraform 1.11 are the first with native S3 locking, which `state` renders.
OLDEST = {Flavour.TOFU: Version(1, 10, 0), Flavour.TERRAFORM: Version(1, 11, 0)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A program that can plan and apply."""

    path: Path
    flavour: Flavour
    version: Version

    def __str__(self) -> str:
        return f"{self.flavour.label} {self.version} ({self.path})"


class EngineBrokenError(StackyardError):
    """OpenTofu or Terraform was found but does not work: it fails, hangs or answers with nonsense."""

    code = "E-ENGINE-BROKEN"
    summary = "The engine does not work"
    default_remedy = (
        "Install a working one with `stackyard tools install tofu`, or name another with STACKYARD_TOFU."
    )


class EngineTooOldError(StackyardError):
    """OpenTofu or Terraform was found but is older than what stackyard works with."""

    code = "E-ENGINE-OLD"
    summary = "The engine is too old"
    default_remedy = "Install a newer one with `stackyard tools install tofu`."


def require_supported(engine: Engine) -> Engine:
    """Return the engine if we can work with its version.

    Raises:
        EngineTooOldError: It is too old.
    """
    oldest = OLDEST[engine.flavour]
    if engine.version < oldest:
        raise EngineTooOldError(
            f"{engine} is too old: stackyard needs {engine.flavour.label} {oldest} or newer."
        )
    return engine


async def probe_version(path: Path, timeout_s: float) -> tuple[Flavour, Version]:
    """Ask a program which engine it is.

    Args:
        path: The program.
        timeout_s: How long it may take to answer.

    Raises:
        ProgramMissingError: There is no such program.
        EngineBrokenError: It cannot be started, fails, hangs, or does not answer as an engine does.
    """
    command = process.Command(
        argv=(str(path), "version", "-json"),
        # The user's own settings file, when it is broken, makes the engine print text before its JSON.
        env=process.environment({"TF_CLI_CONFIG_FILE": "/dev/null", "CHECKPOINT_DISABLE": "1"}),
        # The lock file of the current folder is part of the answer, and may be broken too.
        cwd=Path("/"),
        timeout_s=timeout_s,
        grace_s=1.0,
        output_limit_bytes=_ANSWER_LIMIT_BYTES,
    )
    try:
        completed = await process.run(command)
    except (
        process.ProcessFailedError,
        process.ProcessOutputError,
        process.ProcessTimeoutError,
        process.ProgramUnusableError,
    ) as err:
        raise EngineBrokenError(err.detail) from err
    return _read_answer(command.shown, completed.stdout)


def _read_answer(shown: str, text: str) -> tuple[Flavour, Version]:
    """Read the answer of `version -json`."""
    try:
        answer = parse_json(text, SMALL)
        version = Version.parse(answer["terraform_version"])
    except (ValueError, KeyError, TypeError, AttributeError) as err:
        said = text.strip()[:200] or "nothing"
        raise EngineBrokenError(f"`{shown}` did not answer with a version, but with: {said}") from err
    # Both spell the key of their version alike; only Terraform says whether it is outdated (seen in OpenTofu
    # 1.12.6 and Terraform 1.11.4).
    flavour = Flavour.TERRAFORM if "terraform_outdated" in answer else Flavour.TOFU
    return flavour, version
