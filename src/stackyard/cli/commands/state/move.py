"""`stackyard state move`: states from one place to another."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackyard.base import events
from stackyard.base.errors import UsageError
from stackyard.cli.command import Command
from stackyard.cli.commands.state.store import StoreChoice, current_actor, open_service, store_options
from stackyard.cli.completions import complete_states
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.state import StateService
    from stackyard.state.moving import BackendAddress, Moved, StateLocation

__all__ = ["move"]


@click.command("move", cls=Command)
@click.argument("source", shell_complete=complete_states)
@click.argument("destination")
@click.option("--keep-source", is_flag=True, help="Copy the state, and keep the source in use.")
@click.option(
    "--to-data", metavar="DIR", help="The store of a destination state:NAME, if it is a different one."
)
@click.option("--to-store", metavar="URL", help="The same, in a bucket or a database.")
@click.option("--to-key-file", metavar="FILE", help="The keys of that store.")
@click.option("--source-credentials", metavar="FILE", help="user:password, or a token, for an http source.")
@click.option("--destination-credentials", metavar="FILE", help="The same for an http destination.")
@store_options
@pass_session
def move(session: Session, /, source: str, destination: str, choice: StoreChoice, **given: Any) -> Result:
    """Move a state to another place, and verify that it arrived.

    The command locks both places, copies the state, reads it back and compares it. Then it disables the
    source, and no run can continue with the old copy. It does not change a destination with a different
    lineage or a newer serial. If it is interrupted at any point, repeat it to complete the move.

    \b
    state:NAME              a state of a store (--data, --store; --to-data, --to-store for the destination)
    state:                  all states of a store; state:PREFIX/ those below a prefix
    ./terraform.tfstate     a file, as the engine's local backend keeps it
    s3://bucket/key         an object, as the engine's own S3 backend keeps it (?endpoint=https://...)
    https://host/path       any server of the http backend; reads TF_HTTP_USERNAME and the like

    \b
    stackyard state move ./terraform.tfstate state:prod/network
    stackyard state move state: state: --to-store s3://states/home
    stackyard state move state:prod/network s3://tofu/network/terraform.tfstate

    Only the current version moves; earlier versions stay at the source. A state behind http cannot be
    disabled: the command leaves it unchanged and reports that.
    """  # noqa: D301 - click reads the control character
    from stackyard.state.moving import parse_address  # lazy: only when this verb runs

    places = _MoveEnds(session, choice, given)
    origin, target = parse_address(source), parse_address(destination)
    if origin.is_many != target.is_many:
        raise UsageError(
            "All states below a prefix go below a prefix: write state: or state:PREFIX/ on both sides."
        )
    moved = list(places.move_all(origin, target))
    return Result(
        document={"moved": [_document(one) for one in moved]}, show=lambda writer: _show(writer, moved)
    )


@dataclasses.dataclass(frozen=True, slots=True)
class _MoveEnds:
    """Both ends, as the command line describes them."""

    session: Session
    choice: StoreChoice
    given: dict[str, Any]

    def move_all(self, origin: BackendAddress, target: BackendAddress) -> Iterator[Moved]:
        """Move one state, or all below a prefix."""
        with contextlib.ExitStack() as stack:
            source = self._service(stack, origin, self.choice, create=False)
            destination = source
            if target.kind.value == "state" and (source is None or not self._target_choice().is_default):
                destination = self._service(stack, target, self._target(), create=True)
            pairs = [(origin, target)]
            if origin.is_many and source is not None:
                pairs = list(_pairs(source, origin, target))
            for one, other in pairs:
                with (
                    contextlib.closing(self._place(one, source, "source")) as begin,
                    contextlib.closing(self._place(other, destination, "destination")) as end,
                ):
                    yield self._move(begin, end)

    def _move(self, source: StateLocation, destination: StateLocation) -> Moved:
        from stackyard.state.moving import move_state  # lazy: only when this verb runs

        if source.label == destination.label:
            raise UsageError(f"{source.label} is both the source and the destination.")
        return move_state(source, destination, keep_source=self.given["keep_source"], note=self._note)

    def _note(self, text: str) -> None:
        self.session.emit(events.LogLine(level=events.LogLevel.INFO, source="state", text=text))

    def _target_choice(self) -> StoreChoice:
        return StoreChoice(
            data=self.given["to_data"], store=self.given["to_store"], key_file=self.given["to_key_file"]
        )

    def _target(self) -> StoreChoice:
        named = self._target_choice()
        return self.choice if named.is_default else named

    def _service(
        self, stack: contextlib.ExitStack, address: BackendAddress, choice: StoreChoice, *, create: bool
    ) -> StateService | None:
        if address.kind.value != "state":
            return None
        return stack.enter_context(open_service(choice, create=create))

    def _place(self, address: BackendAddress, service: StateService | None, side: str) -> StateLocation:
        """Open one end."""
        kind, text = address.kind.value, address.text
        if kind == "state" and service is not None:
            from stackyard.state.moving.store_location import StoreLocation  # lazy: only where it is used

            choice = self._target() if side == "destination" else self.choice
            return StoreLocation(service, text, current_actor(), store=_store_label(choice))
        if kind == "s3":
            from stackyard.state.moving.s3_location import S3Location  # lazy: only where it is used

            return S3Location(text)
        if kind == "http":
            from stackyard.state.moving.http_location import HttpLocation, HttpSettings  # lazy: ssl

            return HttpLocation(HttpSettings.make(text, credentials=self._credentials(side)))
        from stackyard.state.moving.file_location import FileLocation  # lazy: only where it is used

        return FileLocation(Path(text))

    def _credentials(self, side: str) -> str | None:
        path = self.given[f"{side}_credentials"]
        if path is None:
            return None
        from stackyard.base.files import read_text  # lazy: only where it is used

        return read_text(Path(path))


def _store_label(choice: StoreChoice) -> str:
    place = choice.place()
    return str(place.absolute()) if isinstance(place, Path) else place


def _pairs(
    service: StateService, origin: BackendAddress, target: BackendAddress
) -> Iterator[tuple[BackendAddress, BackendAddress]]:
    for head in service.heads(origin.text.rstrip("/")):
        if head.tombstone is None and head.current is not None:
            rest = head.name.removeprefix(origin.text)
            yield (
                dataclasses.replace(origin, text=head.name),
                dataclasses.replace(target, text=f"{target.text}{rest}"),
            )


def _document(moved: Moved) -> dict[str, Any]:
    return {
        "source": moved.source,
        "destination": moved.destination,
        "lineage": moved.lineage,
        "serial": moved.serial,
        "was_written": moved.was_written,
        "was_resumed": moved.was_resumed,
        "source_outcome": moved.outcome,
    }


def _show(writer: TextWriter, moved: list[Moved]) -> None:
    if not moved:
        writer.line("There was no state to move.")
    for one in moved:
        how = "is at" if one.was_written else "was already at"
        writer.line(f"Serial {one.serial} of {one.source} {how} {one.destination}.", style="green")
        if one.outcome is not None:
            writer.line(f"  The source is {one.outcome}.")
        else:
            writer.line("  The source is unchanged: make sure that no client still uses it.", style="yellow")
