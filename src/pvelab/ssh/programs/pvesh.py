"""`pvesh`: the API by its paths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.server.problems import PveError
from pvelab.ssh.programs.cli.model import FAILED, PrintedAnswer, UsageProblem
from pvelab.ssh.programs.cli.options import OUTPUT_OPTIONS, read_options
from pvelab.ssh.programs.cli.output import RENDERERS, pretty_json, print_result
from pvelab.ssh.programs.cli.run import show_task, tell_problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.routing import Match
    from pvelab.ssh.shell.streams import Streams
    from pvelab.ssh.shell_session import ShellSession

__all__ = ["run_pvesh"]

_METHODS = {"get": "GET", "set": "PUT", "create": "POST", "delete": "DELETE"}
_USAGE = """\
USAGE: pvesh <COMMAND> [ARGS] [OPTIONS]

       pvesh create <api_path> [OPTIONS] [FORMAT_OPTIONS]
       pvesh delete <api_path> [OPTIONS] [FORMAT_OPTIONS]
       pvesh get <api_path> [OPTIONS] [FORMAT_OPTIONS]
       pvesh ls <api_path> [OPTIONS] [FORMAT_OPTIONS]
       pvesh set <api_path> [OPTIONS] [FORMAT_OPTIONS]
       pvesh usage <api_path> [OPTIONS]"""
# What the entries of a list are called by, where its path has no variable below it.
_CHILD_NAMES = ("subdir", "name", "cmd", "method", "id")
_SWITCH = {"type": "boolean", "optional": True}


async def run_pvesh(session: ShellSession, words: list[str], streams: Streams) -> int:
    """Run `pvesh` with its words, the first of which is its name, and return its exit status."""
    rest, is_silent = words[1:], False
    while rest and rest[0] in ("--noproxy", "--nooutput"):
        is_silent = rest.pop(0) == "--nooutput" or is_silent
    if not rest or rest[0] in ("help", "--help"):
        await (streams.say(_USAGE) if rest else streams.complain(f"ERROR: no command specified\n{_USAGE}"))
        return 0 if rest else FAILED
    verbs = [verb for verb in ("usage", "ls", *_METHODS) if verb.startswith(rest[0])]
    if len(verbs) != 1:
        await streams.complain(f"ERROR: unknown command 'pvesh {rest[0]}'\n{_USAGE}")
        return FAILED
    verb, usage = verbs[0], f"pvesh {verbs[0]} <api_path> [OPTIONS] [FORMAT_OPTIONS]"
    try:
        if len(rest) < 2:
            raise UsageProblem("not enough arguments")
        return await _Call(session, verb, rest[1:], streams).run(is_silent=is_silent)
    except UsageProblem as problem:
        for note in problem.notes:
            await streams.complain(note)
        await streams.complain(f"400 {problem}\n{usage}")
        return FAILED
    except PveError as err:
        return await tell_problem(err, streams, usage=usage)


class _Call:
    """One call of `pvesh`."""

    def __init__(self, session: ShellSession, verb: str, words: list[str], streams: Streams) -> None:
        self._session = session
        self._verb = verb
        self._words = words
        self._streams = streams

    async def run(self, *, is_silent: bool) -> int:
        """Do it and return the exit status."""
        if self._verb == "usage":
            return await self._print_usage()
        if self._verb == "ls" and not self._words[0].strip("/"):
            return await self._list_root()
        # The path may stand anywhere among the options, but almost everyone puts it first.
        path = next((word for word in self._words if not word.startswith("-")), "")
        method = _METHODS.get(self._verb, "GET")
        match = self._find(method, path)
        if match is None:
            if self._verb == "ls":
                raise PveError(f"no such resource '{path}'")
            await self._streams.complain(f"No '{self._verb}' handler defined for '{path}'")
            return 1
        given, options = self._options(match)
        shown_path = "/" + "/".join(part for part in path.split("/") if part)
        if self._verb == "ls":
            return await self._list(match, shown_path, given, options)
        data = await self._session.call(method, self._replace_localhost(shown_path), given)
        await show_task(self._session, data, self._streams)
        if not is_silent:
            await print_result(self._print_answer(match, data, options))
        return 0

    def _find(self, method: str, path: str) -> Match | None:
        return self._session.find(method, path)

    def _replace_localhost(self, path: str) -> str:
        """Return a path with the name of this node in place of `localhost`."""
        return path.replace("/nodes/localhost", f"/nodes/{self._session.node}", 1)

    def _options(self, match: Match) -> tuple[dict[str, Any], dict[str, Any]]:
        declared: dict[str, Mapping[str, Any]] = {
            **{
                key: schema
                for key, schema in match.endpoint.method.parameters.items()
                if key not in match.parameters
            },
            **{key: schema for key, schema in OUTPUT_OPTIONS.items()},
            "api_path": {"type": "string"},
            "noproxy": _SWITCH,
        }
        given = read_options(declared, self._words, arguments=("api_path",), fixed={})
        options = {key: given.pop(key) for key in OUTPUT_OPTIONS if key in given}
        given.pop("api_path", None)
        given.pop("noproxy", None)
        return given, options

    def _print_answer(self, match: Match, data: Any, options: Mapping[str, Any]) -> PrintedAnswer:
        method = match.endpoint.method
        return PrintedAnswer(
            data=data,
            schema=method.returns,
            options=options,
            parameters={},
            renderers=RENDERERS.get(method.path, {}),
            streams=self._streams,
        )

    async def _list(
        self, match: Match, path: str, given: Mapping[str, Any], options: Mapping[str, Any]
    ) -> int:
        name = self._session.child_name(path)
        rows = await self._session.call("GET", self._replace_localhost(path), given)
        keys = [key for key in (name, *_CHILD_NAMES) if key]
        key = next((key for key in keys if isinstance(rows, list) and rows and key in rows[0]), None)
        if not isinstance(rows, list) or (key is None and (rows or name is None)):
            raise PveError(f"resource '{path}' does not define child links")
        children = sorted(str(row[key]) for row in rows if key in row)
        data = [{"name": child, "capabilities": self._capabilities(f"{path}/{child}")} for child in children]
        shown = PrintedAnswer(
            data=data,
            schema={"type": "array", "items": {"type": "object"}},
            options={"noborder": 1, "noheader": 1, "sort_key": "name", **options},
            parameters={},
            renderers={},
            streams=self._streams,
        )
        await print_result(shown, ("capabilities", "name"))
        return 0

    async def _list_root(self) -> int:
        for name in sorted(self._session.dispatcher.table.below("/")[1]):
            await self._streams.say(f"{self._capabilities(f'/{name}'):<12} {name}")
        return 0

    def _capabilities(self, path: str) -> str:
        """Return what can be done at a path: `Drwcd`, a dash for what cannot."""
        shown = "--"
        if self._find("GET", path) is not None:
            shown = (
                "Dr"
                if self._session.child_name(path) is not None or self._session.has_children(path)
                else "-r"
            )
        signs = (("PUT", "w"), ("POST", "c"), ("DELETE", "d"))
        return shown + "".join(sign if self._find(method, path) else "-" for method, sign in signs)

    async def _print_usage(self) -> int:
        declared: dict[str, Mapping[str, Any]] = {
            "api_path": {"type": "string"},
            "verbose": _SWITCH,
            "returns": _SWITCH,
            "command": {"type": "string", "optional": True},
        }
        given = read_options(declared, self._words, arguments=("api_path",), fixed={})
        path, wanted = str(given["api_path"]), given.get("command")
        found = False
        for verb, method in _METHODS.items():
            match = self._find(method, path) if wanted in (None, verb) else None
            if match is None:
                continue
            found = True
            taken = match.endpoint.method.parameters
            others = [key for key in taken if key not in match.parameters]
            await self._streams.say(f"USAGE: pvesh {verb} {path}{' [OPTIONS]' if others else ''}")
            if given.get("verbose"):
                for key in sorted(others):
                    kind = taken[key].get("type", "string")
                    mark = "" if taken[key].get("optional") else " (required)"
                    await self._streams.say(f"\n  -{key} <{kind}>{mark}")
            if given.get("returns"):
                await self._streams.say(f"RETURNS: {pretty_json(dict(match.endpoint.method.returns))}")
        if not found:
            raise PveError(f"no '{wanted}' handler for '{path}'" if wanted else f"no such resource '{path}'")
        return 0
