"""How long work takes in the lab: nothing, as long as on hardware, or what the user says."""

from __future__ import annotations

import contextlib
import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Latency", "Speed", "Work", "parse_latency"]


class Speed(enum.StrEnum):
    """The pace of the whole lab."""

    INSTANT = "instant"
    REAL = "real"


class Work(enum.StrEnum):
    """The kinds of work that can take time."""

    ALLOCATE = "allocate"
    APISERVER = "apiserver"
    AUTH = "auth"
    BACKUP = "backup"
    BOOT = "boot"
    BOOTSTRAP = "bootstrap"
    CLONE = "clone"
    CONFIG = "config"
    CREATE = "create"
    DELETE = "delete"
    DOWNLOAD = "download"
    FENCE = "fence"
    HA = "ha"
    INSTALL = "install"
    MIGRATE = "migrate"
    MOVE = "move"
    REBOOT = "reboot"
    RELOAD = "reload"
    REPLICATE = "replicate"
    RESIZE = "resize"
    RESTORE = "restore"
    RESUME = "resume"
    ROLLBACK = "rollback"
    SHUTDOWN = "shutdown"
    SNAPSHOT = "snapshot"
    START = "start"
    STOP = "stop"
    SUSPEND = "suspend"
    TEMPLATE = "template"
    UPLOAD = "upload"


# Seconds as seen on ordinary servers; `auth` is Proxmox's own delay of refused logins, `ha` that of
# its manager until it notices something.
_REAL_S: Mapping[Work, float] = {
    Work.ALLOCATE: 0.3,
    Work.APISERVER: 45.0,
    Work.AUTH: 3.0,
    Work.BACKUP: 20.0,
    Work.BOOT: 20.0,
    Work.BOOTSTRAP: 15.0,
    Work.CLONE: 8.0,
    Work.CONFIG: 0.2,
    Work.CREATE: 2.0,
    Work.DELETE: 1.0,
    Work.DOWNLOAD: 5.0,
    Work.FENCE: 60.0,
    Work.HA: 5.0,
    Work.INSTALL: 40.0,
    Work.MIGRATE: 10.0,
    Work.MOVE: 8.0,
    Work.REBOOT: 5.0,
    Work.RELOAD: 2.0,
    Work.REPLICATE: 5.0,
    Work.RESIZE: 0.5,
    Work.RESTORE: 15.0,
    Work.RESUME: 0.5,
    Work.ROLLBACK: 2.0,
    Work.SHUTDOWN: 4.0,
    Work.SNAPSHOT: 2.0,
    Work.START: 1.5,
    Work.STOP: 0.5,
    Work.SUSPEND: 0.5,
    Work.TEMPLATE: 0.5,
    Work.UPLOAD: 0.5,
}


@dataclass(slots=True, kw_only=True)
class Latency:
    """The seconds that each kind of work takes; may be changed while the lab runs."""

    speed: Speed = Speed.INSTANT
    overrides_s: Mapping[Work, float] = field(default_factory=dict)

    def seconds(self, work: Work) -> float:
        """Return how long one piece of work takes."""
        override = self.overrides_s.get(work)
        if override is not None:
            return override
        return _REAL_S[work] if self.speed is Speed.REAL else 0.0

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        """Let no work take any time for the length of the block."""
        before = self.speed, self.overrides_s
        self.speed, self.overrides_s = Speed.INSTANT, {}
        try:
            yield
        finally:
            self.speed, self.overrides_s = before


def parse_latency(text: str) -> dict[Work, float]:
    """Read `create=4,boot=12`.

    Raises:
        UsageError: A kind does not exist or a number of seconds is none.
    """
    overrides: dict[Work, float] = {}
    for part in filter(None, text.split(",")):
        name, _, seconds = part.partition("=")
        try:
            overrides[Work(name.strip())] = max(0.0, float(seconds))
        except ValueError as err:
            kinds = ", ".join(Work)
            raise UsageError(
                f"'{part}' is no latency: write KIND=SECONDS, a kind being one of {kinds}."
            ) from err
    return overrides
