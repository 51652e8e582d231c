"""Making a new stack: prepared in a hidden folder, and moved to its place in one step.

The modules that it calls come first, each whole. So a command that is killed leaves a module more, or
nothing, and can be repeated.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base.errors import Location, StackyardError
from stackyard.clients.git.repository import find_repository
from stackyard.path.ignored_files import add_ignored
from stackyard.recipes.backend_choice import (
    ChosenBackend,
    NewBackendError,
    choose_backend,
    key_name,
    list_written_secrets,
    require_own_state,
)
from stackyard.recipes.catalogue import UnknownRecipeError, list_recipes, read_recipe
from stackyard.recipes.cluster_nodes import name_node
from stackyard.recipes.copied_stack import CopiedStack, copy_stack
from stackyard.recipes.hcl_edit import find_backends, find_null_defaults
from stackyard.recipes.known_values import is_given, known_value
from stackyard.recipes.module_files import ModuleStatus, NeededModule, list_modules, point_to_modules
from stackyard.recipes.new_folder import move_folder, open_workshop, write_tree
from stackyard.recipes.placeholders import SecretVariable, format_secrets
from stackyard.recipes.placement import Placement, place_stack
from stackyard.recipes.provider_locks import LockText, list_required, make_lock
from stackyard.recipes.seal_secrets import Sealer, choose_sealer
from stackyard.secrets.check.promises import is_secret_name
from stackyard.sources.stacks.hcl import parse_hcl
from stackyard.sources.stacks.kinds import KIND, LOCK_FILE, is_code
from stackyard.sources.stacks.reads import read_stack
from stackyard.sources.stacks.repository import StackRepository, find_stacks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.clients.git.repository import Repository
    from stackyard.sources.stacks.model import Stack

__all__ = ["NewStack", "NewStackRequest", "SealedSecrets", "make_stack"]

_SECRETS = "secrets.tfvars"
_BACKEND = "backend.tf"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStackRequest:
    """What the user asks for.

    Attributes:
        name: The name of the stack.
        origin: A recipe, or a stack of the repository.
        backend: `http` or `local`; as the other stacks have it when absent.
        key: The key of its state; made from its name when absent.
        with_secrets: Whether the secrets of the other stack are copied, encrypted as they are.
    """

    name: str
    origin: str
    backend: str | None = None
    key: str | None = None
    with_secrets: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedSecrets:
    """The encrypted files of a new stack.

    Attributes:
        files: Their paths, from the top of the repository.
        kind: `vault` or `sops`; empty where they were copied.
        key: What opens them.
        new_file: The file with a password or key that was made for them.
        replace: The variables whose values the user has to set.
    """

    files: tuple[str, ...]
    kind: str = ""
    key: str = ""
    new_file: Path | None = None
    replace: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStack:
    """A stack that was made.

    Attributes:
        place: Where it is.
        origin: What it was made from.
        files: Its files, by their names.
        modules: The modules that it calls, as far as they are part of stackyard.
        backend: Where it keeps its state.
        secrets: Its encrypted files.
        lock: Its lock file.
        ignored: What was added to `.gitignore`.
        renamed: Where the name of the other stack was replaced.
        notes: What the user has to look at.
    """

    place: Placement
    origin: str
    files: tuple[str, ...]
    modules: tuple[NeededModule, ...]
    backend: ChosenBackend
    secrets: SealedSecrets
    lock: LockText
    ignored: tuple[str, ...] = ()
    renamed: tuple[Location, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class _Draft:
    """A stack that is being made."""

    repository: StackRepository
    place: Placement
    request: NewStackRequest
    files: dict[str, bytes] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    modules: list[NeededModule] = field(default_factory=list)
    copied: CopiedStack | None = None
    notes: list[str] = field(default_factory=list)


async def make_stack(request: NewStackRequest, start: Path | None = None) -> NewStack:
    """Make a stack.

    Args:
        request: What the user asks for.
        start: A folder of the repository; the current one when absent.

    Raises:
        NewNameError: It cannot have this name.
        StackExistsError: There is one, or something else at its place.
        UnknownRecipeError: There is nothing of that name to make it from.
        NewBackendError: It has no place of its own for its state.
        SecretsLockedError: The other stacks use a password that is not known here.
        FileError: Something cannot be written; nothing was made but modules, each whole.
    """
    repository = find_stacks(start, may_be_empty=True)
    place = place_stack(repository, request.name)
    draft = _Draft(repository=repository, place=place, request=request)
    origin = await _fill(draft)
    backend = _add_backend(draft)
    secrets = _add_secrets(draft)
    lock = await _add_lock(draft, origin)
    _write(draft)
    ignored = add_ignored(place.top)
    if (place.top / ".gitignore").is_symlink():
        draft.notes.append(".gitignore is a link, which git does not read: states and plans are not ignored.")
    await _note_ignored(draft)
    copied = draft.copied or CopiedStack()
    return NewStack(
        place=place,
        origin=request.origin if origin is None else f"{KIND}:{origin.name}",
        files=tuple(sorted((*draft.files, *draft.links))),
        modules=tuple(draft.modules),
        backend=backend,
        secrets=secrets,
        lock=lock,
        ignored=tuple(ignored),
        renamed=tuple(copied.renamed),
        notes=(*draft.notes, *copied.notes),
    )


async def _fill(draft: _Draft) -> Stack | None:
    """Take the files of a recipe or of a stack; return the stack."""
    request, place = draft.request, draft.place
    if request.origin in list_recipes():
        skeleton, note = await name_node(read_recipe(request.origin))
        draft.notes += [note] if note else []
        draft.modules = list_modules(skeleton, place.top / place.modules)
        draft.files = {
            name: point_to_modules(data, place.to_modules) if _is_hcl(name) else data
            for name, data in skeleton.items()
        }
        return None
    stack = _find_origin(draft)
    ignored: frozenset[Path] = frozenset()
    git = await _find_git(place.top)
    if git is not None:
        ignored = await git.list_ignored(path for path in stack.folder.rglob("*") if path.is_file())
    draft.copied = copy_stack(stack, place, ignored, key=request.key, with_secrets=request.with_secrets)
    draft.files, draft.links = draft.copied.files, draft.copied.links
    draft.notes += [f"{one} was not copied: it holds secrets." for one in draft.copied.left]
    draft.notes += [f"{one} was not copied: it is no file." for one in draft.copied.special]
    return stack


def _find_origin(draft: _Draft) -> Stack:
    named = draft.request.origin.removeprefix(f"{KIND}:").rstrip("/")
    repository = draft.repository
    known = {*repository.stacks, *repository.broken, *(one.path for one in repository.stacks.values())}
    if named not in known:
        from stackyard.base.suggestions import did_you_mean  # lazy: for those who mistype

        recipes = list_recipes()
        hint = did_you_mean(named, (*recipes, *repository.stacks))
        raise UnknownRecipeError(
            f"`{named}` is neither a recipe ({', '.join(recipes)}) nor a stack of {repository.root}.{hint}"
        )
    return repository.find(named)


def _add_backend(draft: _Draft) -> ChosenBackend:
    copied, request = draft.copied, draft.request
    if copied is not None and copied.backend_file and request.backend is None:
        return _keep_backend(draft, copied)
    chosen = choose_backend(draft.repository, draft.place, wanted=request.backend, key=request.key)
    if copied is not None and copied.backend_file:
        data = draft.files[copied.backend_file]
        (written,) = find_backends(data)[:1]
        end = written.start + len(written.text)
        draft.files[copied.backend_file] = data[: written.start] + chosen.block.encode() + data[end:]
    else:
        draft.files[_BACKEND] = f"terraform {{\n  {chosen.block}\n}}\n".encode()
    _require_own(draft, chosen, {})
    return chosen


def _keep_backend(draft: _Draft, copied: CopiedStack) -> ChosenBackend:
    """Return the backend of a copy, which has the settings of the other one and a key of its own."""
    other = _find_origin(draft)
    backend = read_stack(draft.repository, other).backend
    settings = dict(backend[1]) if backend is not None else {}
    if copied.key:
        settings[key_name(copied.backend_type) or ""] = copied.key
    written = find_backends(draft.files[copied.backend_file])[0]
    block = written.text.decode()
    if secret := list_written_secrets(written):
        raise NewBackendError(
            f"`{secret[0]}` in the backend of `{other.name}` is a secret in clear, and is not copied.",
            where=Location(f"{other.path}/{copied.backend_file}", written.settings[secret[0]].line),
            remedy="Move it to an environment variable or into a file that `backend_config` names; or choose "
            "another backend: --backend http.",
        )
    chosen = ChosenBackend(
        type=copied.backend_type, key=copied.key, block=block, like=other.name, reason="as in the other stack"
    )
    _require_own(draft, chosen, settings)
    return chosen


def _require_own(draft: _Draft, chosen: ChosenBackend, settings: Mapping[str, str]) -> None:
    written = find_backends(f"terraform {{\n  {chosen.block}\n}}\n".encode())
    own = {name: one.text for name, one in written[0].settings.items()} if written else {}
    require_own_state(draft.repository, draft.place, chosen.type, {**settings, **own})


def _add_secrets(draft: _Draft) -> SealedSecrets:
    place, copied = draft.place, draft.copied
    names = (
        [_SECRETS] if copied is None or not (copied.secrets or draft.request.with_secrets) else copied.secrets
    )
    if not names:
        kept = (one for one in draft.files if is_secret_name(one.rpartition("/")[2]))
        return SealedSecrets(files=tuple(f"{place.path}/{one}" for one in kept))
    sealer = choose_sealer(draft.repository, place.folder / names[0])
    replace: list[str] = []
    for number, name in enumerate(names):
        shown = draft.repository.shown(f"{place.path}/{name}")
        variables = _list_variables(draft.files) if number == 0 else {}
        text, wanted = format_secrets(place.name, variables, shown, known_value)
        draft.files[name] = sealer.seal(text, place.folder / name)
        replace += wanted
    return _describe(sealer, tuple(f"{place.path}/{one}" for one in names), tuple(replace))


def _describe(sealer: Sealer, files: tuple[str, ...], replace: tuple[str, ...]) -> SealedSecrets:
    return SealedSecrets(
        files=files, kind=sealer.kind.value, key=sealer.key, new_file=sealer.new_file, replace=replace
    )


def _list_variables(files: Mapping[str, bytes]) -> dict[str, SecretVariable]:
    """Return the sensitive variables, without those that are outputs of another stack."""
    found: dict[str, SecretVariable] = {}
    for data in (data for name, data in files.items() if "/" not in name and _is_hcl(name)):
        nulls = find_null_defaults(data)
        found |= {
            one: SecretVariable(type=block.type, has_default=block.has_default, is_null=one in nulls)
            for one, block in parse_hcl(data).variables.items()
            if block.is_sensitive and not is_given(one)
        }
    return found


async def _add_lock(draft: _Draft, origin: Stack | None) -> LockText:
    if LOCK_FILE in draft.files:
        return LockText(text=draft.files[LOCK_FILE].decode(errors="replace"))
    sources = [(name.rpartition("/")[2], data) for name, data in draft.files.items()]
    sources += [item for module in draft.modules for item in module.files.items()]
    if origin is not None:
        sources += _read_called(draft.repository, origin)
    is_served = origin is None or origin.settings.provider != "bpg"
    lock = await make_lock(draft.repository, list_required(sources), is_served=is_served)
    draft.files[LOCK_FILE] = lock.text.encode()
    return lock


def _read_called(repository: StackRepository, stack: Stack) -> list[tuple[str, bytes]]:
    """Return the code of the modules that a stack calls."""
    folders = (Path(repository.tree.top, folder) for folder in read_stack(repository, stack).folders)
    return [(one.name, one.read_bytes()) for path in folders for one in path.iterdir() if is_code(one.name)]


def _write(draft: _Draft) -> None:
    place = draft.place
    with open_workshop(place.top) as workshop:
        for module in draft.modules:
            if module.status is ModuleStatus.ADDED:
                write_tree(workshop / f"module-{module.name}", module.files)
        executable = draft.copied.executable if draft.copied is not None else ()
        write_tree(workshop / "stack", draft.files, draft.links, executable)
        for module in draft.modules:
            if module.status is ModuleStatus.ADDED:
                move_folder(workshop / f"module-{module.name}", place.top / place.modules / module.name)
        move_folder(workshop / "stack", place.folder)


async def _note_ignored(draft: _Draft) -> None:
    """Note files of the new stack that git ignores: the user would commit it without them."""
    git = await _find_git(draft.place.top)
    if git is None:
        return
    paths = [draft.place.folder / name for name in draft.files]
    for path in sorted(await git.list_ignored(paths)):
        draft.notes.append(
            f"git ignores {path.relative_to(draft.place.top)}, so no one else gets it: change .gitignore."
        )


async def _find_git(folder: Path) -> Repository | None:
    """Return the git repository of a folder; None where there is none, or no git to ask."""
    try:
        return await find_repository(folder)
    except StackyardError:
        return None


def _is_hcl(name: str) -> bool:
    return is_code(name.rpartition("/")[2]) and not name.endswith(".json")
