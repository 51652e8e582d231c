"""The backend of a new stack: as the stacks beside it have it, with a key of its own.

Where the stacks of a repository keep their states in one bucket, a new one does too. Where they do not agree,
or there is none, the state goes into the store of stackyard: `backend "http" {}`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.errors import InvalidInputError, Location
from stackyard.recipes.hcl_edit import WrittenBackend, find_backends, quote
from stackyard.sources.stacks.backend_secrets import list_secret_names
from stackyard.sources.stacks.isolation import state_identity
from stackyard.sources.stacks.kinds import is_code
from stackyard.sources.stacks.reads import read_stack

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from stackyard.recipes.placement import Placement
    from stackyard.sources.stacks.model import Stack
    from stackyard.sources.stacks.repository import StackRepository

__all__ = [
    "ChosenBackend",
    "NewBackendError",
    "choose_backend",
    "derive_key",
    "key_name",
    "list_written_secrets",
    "read_written_backend",
    "require_own_state",
]

STORE = 'backend "http" {}'
# The setting of each type that tells one state from the others.
_KEYS = {
    "s3": "key",
    "azurerm": "key",
    "cos": "key",
    "oss": "key",
    "gcs": "prefix",
    "consul": "path",
    "pg": "schema_name",
    "kubernetes": "secret_suffix",
    "http": "address",
    "local": "path",
    "remote": "workspaces.name",
    "cloud": "workspaces.name",
}
# Types whose key may hold neither slashes nor dots.
_ONE_WORD = {"pg": "_", "kubernetes": "-", "remote": "-", "cloud": "-"}


class NewBackendError(InvalidInputError):
    """It is not clear where a new stack is to keep its state, or another one keeps its own there."""

    code = "E-STACK-NEW-BACKEND"
    summary = "The new stack has no place of its own for its state"
    default_remedy = "Choose with --backend http (the store of stackyard) or --key KEY."


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenBackend:
    """Where a new stack keeps its state.

    Attributes:
        type: Such as `s3`.
        key: The setting that is its own; empty where it has none.
        block: The block as it is written.
        like: The stack whose settings it has; empty where it has none of another.
        reason: Why it is this one.
    """

    type: str
    key: str
    block: str
    like: str = ""
    reason: str = ""


def key_name(kind: str) -> str | None:
    """Return the setting of a backend that tells one state from the others, None where it is not known."""
    return _KEYS.get(kind)


def derive_key(kind: str, before: str, old: str, new: str) -> str:
    """Return the key of a new stack in the manner of another one.

    Args:
        kind: The type of the backend.
        before: The key of the other one.
        old: The name of the other one.
        new: The name of the new one.
    """
    joint = _ONE_WORD.get(kind, "/")
    for was, now in ((old, new), (old.rpartition("/")[2], new.rpartition("/")[2])):
        one, other = was.replace("/", joint), now.replace("/", joint)
        found = list(re.finditer(rf"(?<![\w-]){re.escape(one)}(?![\w-])", before))
        parents_differ = was != old and old.rpartition("/")[0] != new.rpartition("/")[0]
        if found and not parents_differ:
            # The last one: the first may be a folder of the same name.
            return before[: found[-1].start()] + other + before[found[-1].end() :]
    plain = new.replace("/", joint)
    if kind in ("local", "http"):
        # A path or an address has no part that could be made up.
        return before
    return plain if joint != "/" or kind == "gcs" else f"{plain}.tfstate"


def read_written_backend(folder: Path) -> tuple[Path, WrittenBackend] | None:
    """Return the one backend block of a folder and its file; None where there is none or it is JSON."""
    found = [
        (path, one)
        for path in sorted(folder.iterdir())
        if is_code(path.name) and not path.name.endswith(".json")
        for one in find_backends(path.read_bytes())
    ]
    return found[0] if len(found) == 1 else None


def choose_backend(
    repository: StackRepository, place: Placement, *, wanted: str | None = None, key: str | None = None
) -> ChosenBackend:
    """Return where a new stack keeps its state.

    Args:
        repository: All stacks.
        place: Where the new one goes.
        wanted: The type that the user asks for: `http` or `local`.
        key: The key that the user asks for.

    Raises:
        NewBackendError: A key was given, and the backend has none.
    """
    chosen = _choose(repository, place, wanted, key)
    if key is not None and chosen.key != key:
        raise NewBackendError(
            f'`backend "{chosen.type}"` of the new stack takes no key: the name of the stack is its key.',
            remedy="Leave out --key.",
        )
    return chosen


def _choose(
    repository: StackRepository, place: Placement, wanted: str | None, key: str | None
) -> ChosenBackend:
    if wanted == "local":
        block = 'backend "local" {}' if key is None else f'backend "local" {{\n    path = {quote(key)}\n  }}'
        return ChosenBackend(type="local", key=key or "", block=block, reason="--backend local")
    if wanted == "http":
        return ChosenBackend(type="http", key="", block=STORE, reason="--backend http")
    siblings = _list_siblings(repository, place)
    if not siblings:
        return ChosenBackend(type="http", key="", block=STORE, reason="it is the first stack")
    written = [(stack, _read(stack)) for stack in siblings]
    if any(backend is None for _, backend in written):
        return ChosenBackend(type="http", key="", block=STORE, reason="not every stack names a backend")
    known = [(stack, backend) for stack, backend in written if backend is not None]
    if len({_shared_part(backend) for _, backend in known}) != 1:
        return ChosenBackend(type="http", key="", block=STORE, reason="the other stacks do not agree")
    stack, backend = known[0]
    return _like(stack, backend, place, key)


def _like(stack: Stack, backend: WrittenBackend, place: Placement, key: str | None) -> ChosenBackend:
    """Return a backend with the settings of another stack."""
    name = _KEYS.get(backend.type, "")
    setting = backend.settings.get(name)
    text = backend.text.decode()
    if secret := list_written_secrets(backend):
        return ChosenBackend(
            type="http", key="", block=STORE, reason=f"`{secret[0]}` of {stack.name} is a secret in clear"
        )
    if setting is None:
        if backend.type in ("http", "local") and not backend.settings:
            return ChosenBackend(
                type=backend.type, key="", block=text, like=stack.name, reason="as beside it"
            )
        return ChosenBackend(
            type="http", key="", block=STORE, reason=f"the key of {stack.name} is not in its code"
        )
    own = key or derive_key(backend.type, setting.text, stack.name, place.name)
    raw = backend.text
    start, end = setting.start - backend.start, setting.end - backend.start
    # A comment behind the key was about the key of the other one.
    tail = re.sub(rb"\A[ \t]*(?:#|//)[^\n]*", b"", raw[end:])
    block = (raw[:start] + quote(own).encode() + tail).decode()
    return ChosenBackend(type=backend.type, key=own, block=block, like=stack.name, reason="as beside it")


def list_written_secrets(backend: WrittenBackend) -> tuple[str, ...]:
    """Return the settings of a backend block that hold secrets in clear, which no other file gets."""
    return list_secret_names({name: one.text for name, one in backend.settings.items()})


def _list_siblings(repository: StackRepository, place: Placement) -> Sequence[Stack]:
    """Return the stacks of the same group; all where there are none."""
    group = place.name.rpartition("/")[0]
    all_stacks = tuple(repository.stacks.values())
    return tuple(one for one in all_stacks if one.name.rpartition("/")[0] == group) or all_stacks


def _read(stack: Stack) -> WrittenBackend | None:
    found = read_written_backend(stack.folder)
    # What files beside the code add to a backend is theirs alone.
    return None if found is None or stack.settings.backend_config else found[1]


def _shared_part(backend: WrittenBackend) -> tuple[object, ...]:
    """Return what has to be the same in two stacks, so that a third can have it too."""
    key = _KEYS.get(backend.type)
    constant = {name: one.text for name, one in backend.settings.items() if name != key}
    return backend.type, tuple(sorted(constant.items())), key in backend.settings


def require_own_state(
    repository: StackRepository, place: Placement, kind: str, settings: Mapping[str, str]
) -> None:
    """Refuse a backend in which another stack keeps its state.

    Raises:
        NewBackendError: It does.
    """
    identity = state_identity(kind, settings, str(place.folder))
    if identity is None:
        return
    for name, stack in repository.stacks.items():
        backend = read_stack(repository, stack).backend
        if backend is not None and state_identity(backend[0], backend[1], str(stack.folder)) == identity:
            raise NewBackendError(
                f"The stack `{name}` keeps its state there.", where=Location(backend[2], backend[3])
            )
