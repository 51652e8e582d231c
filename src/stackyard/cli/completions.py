"""What a shell offers behind a command: targets, hosts, guests, manifests, stacks, states and labs.

A shell waits while these run, and there is nobody to show an error to: what cannot be read quickly is left
out. Names of files are enough for most of it, so that an input with mistakes completes as well.
"""

from __future__ import annotations

import contextlib
import functools
import re
from typing import TYPE_CHECKING, Any

from stackyard.cli.shared_target import SHARED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import click

__all__ = [
    "complete_explained",
    "complete_guests",
    "complete_hosts",
    "complete_labs",
    "complete_manifests",
    "complete_stacks",
    "complete_states",
    "complete_targets",
]

# A store on another machine that does not answer in this time is left out.
_PATIENCE_S = 1.5
# A site may be from somebody else: what a shell would read as more than a word is not offered.
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/+-]*")


def _completing(
    find: Callable[[click.Context], Iterator[str]],
) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Turn a function that gives names into one that click calls; whatever goes wrong, nothing is offered."""

    @functools.wraps(find)
    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        del param
        try:
            names = sorted(set(find(ctx)))
        except Exception:
            return []
        return [name for name in names if name.startswith(incomplete) and _WORD.fullmatch(name)]

    return complete


@_completing
def complete_targets(ctx: click.Context) -> Iterator[str]:
    """Give the targets of the site: bare where a name is unique, and always with their kind."""
    root = _site(ctx)
    kinds = {"env": "envs", "manifest": "manifests", "hypervisor": "hypervisors"}
    known = {kind: _stems(root / folder) for kind, folder in kinds.items()}
    names = [name for found in known.values() for name in found]
    yield from (name for name in names if names.count(name) == 1)
    # What site.yaml makes on a node belongs to the node where no file describes it.
    known["hypervisor"] = known["hypervisor"] or _stems(root / "nodes")
    yield from (f"{kind}:{name}" for kind, found in known.items() for name in found)
    yield SHARED


@_completing
def complete_explained(ctx: click.Context) -> Iterator[str]:
    """Give the envs of the site, and its clusters and nodes with their kind."""
    root = _site(ctx)
    yield from _stems(root / "envs")
    yield from (f"hypervisor:{name}" for name in _stems(root / "hypervisors"))


@_completing
def complete_manifests(ctx: click.Context) -> Iterator[str]:
    """Give the manifests of the site."""
    yield from _stems(_site(ctx) / "manifests")


@_completing
def complete_hosts(ctx: click.Context) -> Iterator[str]:
    """Give the nodes of the site."""
    yield from _stems(_site(ctx) / "nodes")


@_completing
def complete_stacks(ctx: click.Context) -> Iterator[str]:
    """Give the stacks of the repository."""
    from stackyard.sources.stacks.repository import find_stacks  # lazy: only for completion

    del ctx
    repository = find_stacks()
    yield from (*repository.stacks, *repository.broken)


@_completing
def complete_labs(ctx: click.Context) -> Iterator[str]:
    """Give the labs that run."""
    from stackyard.cli.commands.lab.instances import list_running_names  # lazy: only for completion

    del ctx
    yield from list_running_names()


@_completing
def complete_states(ctx: click.Context) -> Iterator[str]:
    """Give the states of the store that the command line chooses."""
    yield from _ask_store(ctx, lambda service: [head.name for head in service.heads()])


def complete_guests(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Give the guests of the target, in its input or in its states; after a comma, the next of a list."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in _complete_guest(ctx, param, last)]


@_completing
def _complete_guest(ctx: click.Context) -> Iterator[str]:
    from stackyard.cli.state_guests import list_state_guests  # lazy: only for completion

    # Behind an option that has no value yet, the target is among what is left over.
    named = str(ctx.params.get("target") or next(iter(ctx.args), ""))
    kind, _, name = named.rpartition(":")
    with contextlib.suppress(Exception):
        yield from _list_input_guests(_site(ctx), kind, name)
    yield from _ask_store(ctx, lambda service: list_state_guests(service, kind, name))


def _list_input_guests(root: Path, kind: str, name: str) -> list[str]:
    """Return the names in the file of an env or a manifest, as far as it can be read."""
    from stackyard.base.documents.yamltext import parse_yaml  # lazy: only for completion

    found = []
    for folder, key in (("envs", "vms"), ("manifests", "nodes")):
        path = root / folder / f"{name}.yaml"
        if kind in ("", folder.removesuffix("s")) and path.is_file():
            document = parse_yaml(path.read_bytes())
            found += [str(entry["name"]) for entry in document.get(key) or () if "name" in entry]
    return found


def _ask_store(ctx: click.Context, ask: Callable[[Any], list[str]]) -> list[str]:
    """Ask the store of the command line, for as long as somebody at a prompt waits."""
    import threading  # lazy: only for completion

    answers: list[str] = []

    def read() -> None:
        from stackyard.cli.commands.state.store import StoreChoice, open_service  # lazy: only for completion

        chosen = {name: ctx.params.get(name) for name in ("data", "store", "key_file")}
        with contextlib.suppress(Exception), open_service(StoreChoice(**chosen)) as service:
            answers.extend(ask(service))

    # A daemon: the process ends with the answer, whether the store has answered or not.
    asking = threading.Thread(target=read, daemon=True)
    asking.start()
    asking.join(_PATIENCE_S)
    return list(answers)


def _site(ctx: click.Context) -> Path:
    from stackyard.sources.site.discovery import find_site  # lazy: only for completion

    return find_site(ctx.params.get("site"))


def _stems(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("*.yaml") if not path.name.startswith((".", "_"))}
