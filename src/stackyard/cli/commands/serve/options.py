"""The options that say how a controller is to run, for whatever runs or starts one."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stackyard.controller import ControllerOptions

__all__ = ["REPO_TOKEN_VARIABLE", "ServeOptions", "serve_options"]

Function = TypeVar("Function", bound="Callable[..., Any]")

REPO_TOKEN_VARIABLE = "STACKYARD_REPO_TOKEN"  # noqa: S105 - its name
_PORT = 44443
_EVERYWHERE = "0.0.0.0"  # noqa: S104 - guests on the network are whom it is for

_OPTIONS = (
    click.option(
        "--site",
        metavar="DIR",
        help="The folder of the site (default: search from the current folder upwards).",
    ),
    click.option(
        "--bind",
        "-b",
        metavar="ADDR",
        default=_EVERYWHERE,
        show_default=True,
        help="Listen on this address.",
    ),
    click.option(
        "--port",
        "-p",
        type=click.IntRange(0, 65535),
        default=_PORT,
        show_default=True,
        help="Listen on this port; 0: any free port.",
    ),
    click.option("--cert", metavar="FILE", help="Use this certificate (PEM) instead of a generated one."),
    click.option("--key", metavar="FILE", help="The private key of --cert."),
    click.option(
        "--cert-dir",
        metavar="DIR",
        help="The folder of the generated certificate (default: .stackyard of the site).",
    ),
    click.option(
        "--name",
        "names",
        metavar="NAME",
        multiple=True,
        help="An additional name by which guests reach the controller.",
    ),
    click.option("--repos", "-r", is_flag=True, help="Also serve git repositories."),
    click.option(
        "--repos-dir",
        metavar="DIR",
        help="The folder that contains them (default: the one that contains the site).",
    ),
    click.option(
        "--exclude", metavar="REPO", multiple=True, help="Do not serve this repository. Repeatable."
    ),
    click.option(
        "--repo-token",
        metavar="TOKEN",
        help=f"The token for all repositories (also: {REPO_TOKEN_VARIABLE}; default: a random one).",
    ),
    click.option(
        "--state",
        metavar="DIR|URL",
        help="The states to serve below /state/: a folder, s3://..., postgresql://... or https://..."
        " (default: the store of the site).",
    ),
    click.option("--no-state", is_flag=True, help="Do not serve states."),
    click.option("--key-file", metavar="FILE", help="The keys of a state store that is encrypted at rest."),
    click.option(
        "--gitops",
        is_flag=True,
        help="Also plan and apply pull requests as `stackyard gitops serve` does, set up by the same"
        " variables; webhooks go to /gitops/webhook.",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """How the user wants a controller to run."""

    site: str | None = None
    bind: str = _EVERYWHERE
    port: int = _PORT
    cert: str | None = None
    key: str | None = None
    cert_dir: str | None = None
    names: tuple[str, ...] = ()
    repos: bool = False
    repos_dir: str | None = None
    exclude: tuple[str, ...] = ()
    repo_token: str | None = field(default=None, repr=False)
    state: str | None = None
    no_state: bool = False
    key_file: str | None = None
    gitops: bool = False

    def arguments(self) -> tuple[str, ...]:
        """Return the command line that says the same, from the root folder, without its secret."""
        said: list[str] = ["--site", str(self.site_folder()), f"--bind={self.bind}", f"--port={self.port}"]
        for name in ("cert", "key", "cert_dir", "repos_dir", "key_file"):
            value = getattr(self, name)
            if value is not None:
                said.append(f"--{name.replace('_', '-')}={Path(value).absolute()}")
        if self.state is not None:
            said.append(f"--state={self.state if '://' in self.state else Path(self.state).absolute()}")
        said += [f"--name={name}" for name in self.names] + [f"--exclude={name}" for name in self.exclude]
        flags = {"--repos": self.repos, "--no-state": self.no_state, "--gitops": self.gitops}
        return (*said, *(flag for flag, is_said in flags.items() if is_said))

    def environment(self) -> Mapping[str, str]:
        """Return what has to be in the environment beside: arguments can be read by everyone."""
        return {} if self.repo_token is None else {REPO_TOKEN_VARIABLE: self.repo_token}

    def site_folder(self) -> Path:
        """Return the folder of the site."""
        from stackyard.sources.site.discovery import find_site  # lazy: only when a controller is started

        return find_site(self.site)

    def controller_options(self) -> ControllerOptions:
        """Return the options for the controller itself."""
        from stackyard.controller import ControllerOptions  # lazy: a server, only when it runs
        from stackyard.sources.site.store_choice import find_store  # lazy: as above

        site = self.site_folder()
        chosen = find_store(site)
        store = self.state or chosen.address or str(chosen.folder)
        token = self.repo_token or os.environ.get(REPO_TOKEN_VARIABLE) or None
        return ControllerOptions(
            site=site,
            bind=self.bind,
            port=self.port,
            cert=_path(self.cert),
            key=_path(self.key),
            cert_dir=_path(self.cert_dir),
            names=self.names,
            # Who says which token opens them wants them served.
            repos=self.repos or token is not None,
            repos_dir=_path(self.repos_dir),
            exclude=self.exclude,
            repo_token=token,
            state=None if self.no_state else store if "://" in store else Path(store),
            state_key_file=_path(self.key_file),
        )


def _path(given: str | None) -> Path | None:
    return None if given is None else Path(given)


def serve_options(function: Function) -> Function:
    """Add the options to a command, which is given them by their names."""
    decorated: Any = function
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]
