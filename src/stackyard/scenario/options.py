"""What the user says of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DEFAULT_IMAGES_FOLDER", "ScenarioOptions"]

# Where images that are fetched go, as homestak has it.
DEFAULT_IMAGES_FOLDER = Path("/tmp/packer-images")  # noqa: S108 -- the name that existing users know


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioOptions:
    """What the user says of a run.

    Attributes:
        local: Whether it runs on this machine.
        remote: The machine it runs on, as `[USER@]ADDRESS[:PORT]`.
        host: The machine it runs on, as the site calls it; also `[USER@]ADDRESS`.
        identity: The private key to log in with; the user's own when absent.
        user: The user to make.
        templates: Which images of packer; all when empty.
        packer_release: Which release images come from; what the site says, else `latest`, when absent.
        packer_source: The folder of packer on this machine.
        packer_dir: The folder of packer on the machine that builds.
        images_folder: Where images that are fetched go.
        source: Where the installer of `bootstrap-install` comes from; our own archive when absent.
        vm_ids: Ids for guests, in place of those of the site.
        env: The env whose guest the scenario makes, where it makes one; its own choice when absent.
        force: Whether files of the site that say something else are changed.
        skip: Phases that are left out.
        timeout_s: When the run is stopped; what the scenario says when absent.
        phase_timeouts_s: When single phases are stopped; never before the run where absent.
        skip_preflight: Whether a node is not looked at before guests are created on it.
    """

    local: bool = False
    remote: str | None = None
    host: str | None = None
    identity: Path | None = None
    user: str | None = None
    templates: tuple[str, ...] = ()
    packer_release: str | None = None
    packer_source: Path | None = None
    packer_dir: str | None = None
    images_folder: Path = DEFAULT_IMAGES_FOLDER
    source: str | None = None
    vm_ids: Mapping[str, int] = field(default_factory=dict)
    env: str | None = None
    force: bool = False
    skip: tuple[str, ...] = ()
    timeout_s: float | None = None
    phase_timeouts_s: Mapping[str, float] = field(default_factory=dict)
    skip_preflight: bool = False
