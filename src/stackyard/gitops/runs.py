"""Runs of targets: the verbs of stackyard, each a program of its own in the checkout of a commit.

A run gets the credentials of its target, and no others. What comes back is what it prints for programs.
"""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base import directories, process
from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.documents.limits import LARGE
from stackyard.base.errors import ExitStatus, StackyardError
from stackyard.base.redaction import Redactor
from stackyard.gitops.model import Credentials
from stackyard.sources.site.store_choice import STORE_VARIABLE
from stackyard.sources.store.keys import KEY_FILE_VARIABLE, made_key_file, read_keys, ring_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.gitops.context import GitopsContext
    from stackyard.gitops.model import Checkout

__all__ = ["PROJECT_LINK", "TargetRun", "TargetRunError", "VerbAnswer", "run_verb", "share_store"]

# What is in a checkout in place of the embedded store.
PROJECT_LINK = ".stackyard"
# What of our own environment every run needs: how the engine and its settings are found.
_PASSED = (
    "STACKYARD_TOFU",
    "STACKYARD_TOFU_CONFIG",
    "STACKYARD_PROVIDER",
    "STACKYARD_SITE_KEY_FILE",
    "TF_CLI_CONFIG_FILE",
    "TF_PLUGIN_CACHE_DIR",
    "SSL_CERT_FILE",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
)
# By how the address of a store begins, the variables that log in to it.
_LOGINS = {
    "postgres": ("PG",),
    "s3": ("AWS_",),
    "http": ("STACKYARD_STORE_TOKEN",),
}
_SHORTEST_SECRET = 6
_LARGEST_BYTES = 512 * 2**20


class TargetRunError(StackyardError):
    """A run of a target ended without an answer that a program can read."""

    code = "E-GITOPS-RUN"
    summary = "A run ended without a result"
    default_remedy = "Run the command by hand in a checkout of the commit to see what it says."


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRun:
    """A verb to run on a target.

    Attributes:
        verb: `plan`, `apply`, `destroy`.
        target: The target.
        words: The options.
        credentials: Which credentials it gets.
        host: The node that a manifest is for; where it has several, it is behind an `@` of the target too.
    """

    verb: str
    target: str
    words: tuple[str, ...] = ()
    credentials: Credentials = Credentials.PLAN
    host: str = ""

    @property
    def arguments(self) -> tuple[str, ...]:
        """The command line behind the name of the program."""
        if not self.host:
            return (self.verb, self.target, "--json", *self.words)
        return (self.verb, self.target.partition("@")[0], "--json", "-H", self.host, *self.words)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbAnswer:
    """How a run ended.

    Attributes:
        status: Its exit status.
        document: What it printed; empty where it failed.
        error: What it printed of an error; empty where there was none.
        secrets: The values that it logged in with.
    """

    status: int
    document: Mapping[str, Any] = field(default_factory=dict, repr=False)
    error: Mapping[str, Any] = field(default_factory=dict)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @property
    def is_refused(self) -> bool:
        """Whether the guard refuses the plan as it is."""
        return self.status == ExitStatus.REFUSED


async def run_verb(context: GitopsContext, checkout: Checkout, run: TargetRun) -> VerbAnswer:
    """Run a verb on a target in a checkout.

    Args:
        context: What the work needs.
        checkout: The files.
        run: The verb.

    Raises:
        TargetRunError: It said nothing that a program can read.
        FileError: The checkout or the credentials cannot be used.
    """
    given = dict(context.credentials.environment(run.target, run.credentials))
    secrets = tuple(value for value in given.values() if len(value) >= _SHORTEST_SECRET)
    argv = (sys.executable, "-m", "stackyard", *run.arguments)
    with _store_for(context, checkout, run.credentials) as (store, descriptors):
        command = process.Command(
            argv=argv,
            env={**process.environment(), **_passed(), **store, **given, **_fixed(store)},
            cwd=checkout.folder,
            output_limit_bytes=_LARGEST_BYTES,
            grace_s=60.0,
            pass_fds=descriptors if checkout.hold < 0 else (checkout.hold, *descriptors),
        )
        ended = await process.run(command, check=False)
    try:
        said = parse_json(ended.stdout.strip(), LARGE)
    except JsonError as err:
        told = Redactor(secrets)(ended.stderr.strip())[-1000:]
        raise TargetRunError(
            f"`stackyard {run.verb} {run.target}` ended with {ended.returncode} and no result.\n{told}"
        ) from err
    if not isinstance(said, dict):
        raise TargetRunError(f"`stackyard {run.verb} {run.target}` printed no object.")
    error = said.get("error")
    if isinstance(error, dict):
        return VerbAnswer(status=ended.returncode, error=error, secrets=secrets)
    return VerbAnswer(status=ended.returncode, document=said, secrets=secrets)


def _passed() -> dict[str, str]:
    return {name: os.environ[name] for name in _PASSED if name in os.environ}


def _fixed(store: Mapping[str, str]) -> dict[str, str]:
    """Return what no credentials of a target change: which store it is, and its key."""
    return {name: store[name] for name in (STORE_VARIABLE, KEY_FILE_VARIABLE) if name in store}


def _login_of(address: str) -> dict[str, str]:
    """Return the variables of ours that log in to a store."""
    prefixes = next((names for start, names in _LOGINS.items() if address.startswith(start)), ())
    return (
        {name: value for name, value in os.environ.items() if name.startswith(prefixes)} if prefixes else {}
    )


def share_store(context: GitopsContext, checkout: Checkout) -> None:
    """Let runs in a checkout use the embedded store, which is in a folder beside the files of a site.

    Raises:
        TargetRunError: The repository has something in its place.
    """
    if context.store.address is not None:
        return
    base = os.path.realpath(directories.ensure_private(context.store.base))
    link = checkout.folder / PROJECT_LINK
    with contextlib.suppress(FileExistsError):
        link.symlink_to(base, target_is_directory=True)
    if not link.is_symlink() or os.readlink(link) != base:
        raise TargetRunError(
            f"The repository has a `{PROJECT_LINK}`, where the folder for keys and states has to be.",
            remedy=f"Remove {PROJECT_LINK} from the repository.",
        )


@contextlib.contextmanager
def _store_for(
    context: GitopsContext, checkout: Checkout, credentials: Credentials
) -> Iterator[tuple[Mapping[str, str], tuple[int, ...]]]:
    """Let a run use our store; one without credentials gets none, and sees nothing that was applied."""
    store = context.store
    if credentials is Credentials.NONE:
        yield {}, ()
        return
    share_store(context, checkout)
    if store.address is None:
        yield {}, ()
        return
    own = {**_login_of(store.address), STORE_VARIABLE: store.address}
    made = made_key_file(store)
    if os.environ.get(KEY_FILE_VARIABLE):
        yield own, ()
    elif store.site_key is None and made.is_file():
        yield {**own, KEY_FILE_VARIABLE: str(made)}, ()
    else:
        with _lent_key(context) as descriptor:
            yield {**own, KEY_FILE_VARIABLE: f"/proc/self/fd/{descriptor}"}, (descriptor,)


@contextlib.contextmanager
def _lent_key(context: GitopsContext) -> Iterator[int]:
    """Give a descriptor from which a program reads the key of the site; no disk ever has it.

    Raises:
        TargetRunError: There is no key here.
    """
    keys = read_keys(context.store)
    if keys is None:
        raise TargetRunError("There is no site key here, with which plans are saved.")
    descriptor = os.memfd_create("site key")
    try:
        os.fchmod(descriptor, 0o600)
        os.write(descriptor, ring_text(keys.ring).encode())
        yield descriptor
    finally:
        os.close(descriptor)
