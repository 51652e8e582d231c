"""How a controller is to run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.base.serving import ServerLimits
from stackyard.state.http.throttle import ThrottleLimits

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stackyard.base.serving import Handler

__all__ = ["DEFAULT_PORT", "ControllerOptions"]

DEFAULT_PORT = 44443
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerOptions:
    """How a controller is to run.

    Attributes:
        site: The folder of the site; found as usual when absent.
        bind: The address to listen on.
        port: The port, 0 for any free one.
        cert: A certificate to show, in place of one of our own.
        key: Its private key.
        cert_dir: Where the certificate of our own is kept; with the site when absent.
        names: More names and addresses by which clients reach us, for that certificate.
        repos: Whether repositories are served.
        repos_dir: The folder that holds them; the one that the site is in when absent.
        exclude: Names of repositories that are not served.
        repo_token: Opens every repository; that of the site, or a random one, when absent.
        state: The store of the state service below /state/; None serves none.
        state_key_file: The keys of a store that is encrypted at rest.
        gitops: What answers below /gitops/; None answers nothing there.
        guests: The specs of guests that the files of the site need not name, by the names of the guests.
        run_tokens: Whether signed tokens are of this run alone: no key and no list outlives it.
        limits: What clients are granted.
        throttle: How many wrong tokens are too many.
    """

    site: Path | None = None
    bind: str = "0.0.0.0"  # noqa: S104 - guests on the network are whom it is for
    port: int = DEFAULT_PORT
    cert: Path | None = None
    key: Path | None = None
    cert_dir: Path | None = None
    names: tuple[str, ...] = ()
    repos: bool = False
    repos_dir: Path | None = None
    exclude: tuple[str, ...] = ()
    repo_token: str | None = field(default=None, repr=False)
    state: Path | str | None = None
    state_key_file: Path | None = None
    gitops: Handler | None = field(default=None, repr=False)
    guests: Mapping[str, str] = field(default_factory=dict)
    run_tokens: bool = False
    limits: ServerLimits = field(
        default_factory=lambda: ServerLimits(max_connections=4096, max_body_bytes=64 * _MIB)
    )
    throttle: ThrottleLimits = field(default_factory=ThrottleLimits)
