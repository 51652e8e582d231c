"""A folder to run the engine in, and the exact surroundings it gets there.

Nothing is inherited by accident: no `TF_LOG`, no `TF_CLI_ARGS`, no settings file of the user. Whoever wants
one of these passes it on purpose.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base import process
from stackyard.base.redaction import NOTHING_SECRET, Redactor
from stackyard.engine import variables as input_variables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stackyard.base.errors import Location
    from stackyard.engine.failures import Finding
    from stackyard.engine.version import Engine
    from stackyard.secrets.var_file import PrivateVarFile

__all__ = ["Limits", "Workdir"]

# An empty file that is always there: the user's own ~/.tofurc or ~/.terraformrc, with what it holds or where
# it is broken, has no say in a run.
_NO_CLI_CONFIG = Path("/dev/null")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long things may take.

    Attributes:
        read_s: For a verb that only reads (validate, show, output, state list).
        work_s: For a verb that works (init, plan, apply, import); no limit when absent.
        grace_s: How long a working verb may take to save its state after an interrupt.
        lock_wait_s: How long to wait for a state lock that someone else holds.
    """

    read_s: float = 300.0
    work_s: float | None = None
    grace_s: float = 60.0
    lock_wait_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Workdir:
    """A folder with a configuration, and how the engine runs in it.

    Attributes:
        engine: The program.
        folder: The folder of the root module.
        environment: What the engine and its providers get besides the user's session: credentials, for one.
        variables: Values of input variables; they travel in the environment.
        var_files: Files with values of input variables, in the order in which the last one wins. A private
            one reaches the engine through a descriptor, and is neither a file nor an argument.
        redactor: Hides secrets in events and errors.
        reattach: The JSON of providers that run already (`TF_REATTACH_PROVIDERS`).
        data_dir: Where the engine keeps its own files; `.terraform` in the folder when absent.
        cli_config: The engine's settings file; an empty one when absent.
        limits: How long things may take.
        descriptors: Descriptors of ours that the engine has under the same numbers.
        locate: Turns a place that the engine names, and the address that it is about, into that of the user's
            input, where the configuration in the folder is generated.
        refine: Turns what the engine reports into findings about the user's input, each with its place.
    """

    engine: Engine
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, input_variables.Value] = field(default_factory=dict)
    var_files: tuple[Path | PrivateVarFile, ...] = ()
    redactor: Redactor = NOTHING_SECRET
    reattach: str | None = None
    data_dir: Path | None = None
    cli_config: Path | None = None
    limits: Limits = Limits()
    descriptors: tuple[int, ...] = ()
    locate: Callable[[Location | None, str | None], Location | None] | None = None
    refine: Callable[[Finding], Sequence[Finding]] | None = None

    @property
    def data_folder(self) -> Path:
        """Where the engine keeps its own files."""
        return (self.data_dir or self.folder / ".terraform").absolute()

    def env(self) -> dict[str, str]:
        """Return the whole environment of the engine.

        Raises:
            VariableError: An input variable cannot be passed on.
        """
        ours = {
            "TF_IN_AUTOMATION": "1",
            "TF_INPUT": "0",
            "CHECKPOINT_DISABLE": "1",
            "TF_CLI_CONFIG_FILE": str((self.cli_config or _NO_CLI_CONFIG).absolute()),
        }
        if self.data_dir is not None:
            ours["TF_DATA_DIR"] = str(self.data_folder)
        if self.reattach is not None:
            ours["TF_REATTACH_PROVIDERS"] = self.reattach
        return process.environment(
            {**self.environment, **ours, **input_variables.encode_variables(self.variables)}
        )
