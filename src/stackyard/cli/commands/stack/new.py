"""`stackyard stack new`: a stack from a recipe or from another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import UsageError
from stackyard.cli.command import Command
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.base.diagnostics import Diagnostics
    from stackyard.cli.secrets_hook import HookOutcome
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.recipes.module_files import NeededModule
    from stackyard.recipes.new_stack import NewStack

__all__ = ["new"]


@click.command("new", cls=Command)
@click.argument("name", metavar="NAME")
@click.option(
    "--from",
    "origin",
    required=True,
    metavar="RECIPE|STACK",
    help="proxmox, aws, oci, talos, flux or empty; or a stack of this repository.",
)
@click.option(
    "--backend",
    type=click.Choice(("http", "local")),
    help="http: the store of stackyard; local: a file beside the code (default: as the stacks beside it).",
)
@click.option("--key", metavar="KEY", help="The key of its state (default: made from NAME).")
@click.option("--copy-secrets", is_flag=True, help="Copy the encrypted secrets files of STACK.")
@click.option("--no-hook", is_flag=True, help="Do not install the commit hook that checks for secrets.")
@pass_session
def new(session: Session, /, name: str, origin: str, no_hook: bool, **values: Any) -> Result:
    """Make a new stack from a recipe or from another stack, ready to plan.

    \b
    stackyard stack new onprem/server_c --from proxmox
    stackyard stack new onprem/server_c --from onprem/server_b
    stackyard stack new cloud/edge --from aws

    The stack gets a backend with a key of its own, an encrypted secrets.tfvars, a lock file, and the modules
    that it calls. An existing module is never changed. The backend has the settings of the other stacks in
    the same folder, if these agree; otherwise the state goes into the store of stackyard. Secrets are
    encrypted with your password for Ansible Vault, or as .sops.yaml says. If you have neither, the command
    makes a password in a file outside of the repository, and says where.

    A copy of a stack gets neither its states, plans nor secrets. The command replaces the name of the other
    stack in module calls and local values, and lists the guests that are in both: change them before you
    apply. The stack appears whole or not at all. Nothing is committed.
    """  # noqa: D301 - click reads the control character
    return session.run(_make(name, origin, no_hook=no_hook, **values))


async def _make(
    name: str, origin: str, *, no_hook: bool, backend: str | None, key: str | None, copy_secrets: bool
) -> Result:
    from stackyard.cli.secrets_hook import NO_HOOK, install_secrets_hook  # lazy: only when this verb runs
    from stackyard.recipes.catalogue import list_recipes  # lazy: as above
    from stackyard.recipes.new_stack import NewStackRequest, make_stack  # lazy: as above
    from stackyard.sources.stacks.copies import CopyCheck  # lazy: as above
    from stackyard.sources.stacks.repository import find_stacks  # lazy: as above

    if copy_secrets and origin in list_recipes():
        raise UsageError("--copy-secrets needs a stack in --from: a recipe has no secrets.")
    request = NewStackRequest(name=name, origin=origin, backend=backend, key=key, with_secrets=copy_secrets)
    made = await make_stack(request)
    hook = NO_HOOK if no_hook else await install_secrets_hook(made.place.top)
    repository = find_stacks(made.place.top)
    found = CopyCheck(repository).check(repository.find(made.place.name))
    repository.cache.save()
    return Result(document=_document(made, hook, found), show=lambda writer: _show(writer, made, hook, found))


def _document(made: NewStack, hook: HookOutcome, found: Diagnostics) -> dict[str, Any]:
    place = made.place
    return {
        "stack": place.name,
        "target": f"stack:{place.name}",
        "path": place.path,
        "from": made.origin,
        "files": list(made.files),
        "modules": [_module_document(place.modules, one) for one in made.modules],
        **_settings_document(made),
        "ignored": list(made.ignored),
        "renamed": [str(one) for one in made.renamed],
        "hook": None if hook.path is None else str(hook.path),
        "notes": list(made.notes),
        "findings": [one.document() for one in found],
    }


def _module_document(folder: str, module: NeededModule) -> dict[str, Any]:
    return {
        "name": module.name,
        "path": f"{folder}/{module.name}",
        "status": module.status.value,
        "changed": list(module.changed),
    }


def _settings_document(made: NewStack) -> dict[str, Any]:
    backend, secrets, lock = made.backend, made.secrets, made.lock
    return {
        "backend": {
            "type": backend.type,
            "key": backend.key or None,
            "like": backend.like or None,
            "reason": backend.reason,
        },
        "secrets": {
            "files": list(secrets.files),
            "kind": secrets.kind or None,
            "key": secrets.key or None,
            "new_key_file": None if secrets.new_file is None else str(secrets.new_file),
            "replace": list(secrets.replace),
        },
        "lock": {
            "locked": list(lock.locked),
            "served": list(lock.served),
            "missing": list(lock.missing),
            "reason": lock.reason or None,
        },
    }


def _show(writer: TextWriter, made: NewStack, hook: HookOutcome, found: Diagnostics) -> None:
    from stackyard.cli.commands.stack.words import show_findings  # lazy: only when shown

    place = made.place
    writer.line(f"Made the stack {place.name} in {place.path}, from {made.origin}.", style="green")
    key = f' with the key "{made.backend.key}"' if made.backend.key else ""
    writer.line(f'  state: backend "{made.backend.type}"{key} ({_why_backend(made)})')
    _show_modules(writer, made)
    _show_secrets(writer, made)
    _show_lock(writer, made)
    for one in made.renamed:
        writer.line(f"  {one}: has the name of the new stack now")
    if made.ignored:
        writer.line(f"  .gitignore: {', '.join(made.ignored)}")
    hook.show(writer)
    for note in made.notes:
        writer.line(note, style="yellow")
    show_findings(writer, found)
    _show_next(writer, made)


def _why_backend(made: NewStack) -> str:
    return f"like {made.backend.like}" if made.backend.like else made.backend.reason


def _show_modules(writer: TextWriter, made: NewStack) -> None:
    for status, words in (("added", "added"), ("kept", "used as they are"), ("differs", "")):
        names = [one for one in made.modules if one.status.value == status]
        if status != "differs" and names:
            listed = ", ".join(one.name for one in names)
            writer.line(f"  modules in {made.place.modules}, {words}: {listed}")
        for one in names if status == "differs" else ():
            changed = ", ".join(one.changed)
            writer.line(
                f"  {made.place.modules}/{one.name} is not the module of this version of stackyard "
                f"({changed}), and was not changed.",
                style="yellow",
            )


def _show_secrets(writer: TextWriter, made: NewStack) -> None:
    secrets = made.secrets
    if not secrets.kind:
        writer.line(f"  secrets: {', '.join(secrets.files)}, copied as they are")
        return
    writer.line(f"  secrets: {', '.join(secrets.files)}, encrypted ({secrets.kind}) with {secrets.key}")
    if secrets.new_file is not None:
        writer.line(
            f"  Made {secrets.new_file} for you: keep a copy of it in a safe place. For Ansible itself: "
            f"export ANSIBLE_VAULT_PASSWORD_FILE={secrets.new_file}",
            style="yellow",
        )


def _show_lock(writer: TextWriter, made: NewStack) -> None:
    lock = made.lock
    if lock.locked:
        writer.line(f"  lock file: {', '.join(lock.locked)}")
    if lock.missing:
        writer.line(
            f"  lock file without {', '.join(lock.missing)}: {lock.reason} The first plan adds them; commit "
            "the file then.",
            style="yellow",
        )


def _show_next(writer: TextWriter, made: NewStack) -> None:
    place, secrets = made.place, made.secrets
    writer.line()
    writer.line("Next:")
    data = [
        one for one in made.files if one.endswith(".tfvars") and f"{place.path}/{one}" not in secrets.files
    ]
    steps = [(f"edit {place.path}/{one}", "what the stack has") for one in data]
    if secrets.replace:
        steps.append((f"stackyard secrets edit {secrets.files[0]}", f"set {', '.join(secrets.replace)}"))
    elif secrets.kind:
        steps.append((f"stackyard secrets edit {secrets.files[0]}", "your own secrets"))
    steps += [(f"stackyard plan stack:{place.name}", "what would be created"), ("git add -A", "then commit")]
    width = max(len(command) for command, _ in steps)
    for command, what in steps:
        writer.line(f"  {command:<{width}}  # {what}")
