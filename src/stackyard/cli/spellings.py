"""Legacy options: scenarios used to be options of the program. They become commands before parsing.

    stackyard --scenario pve-setup --local        stackyard scenario run pve-setup --local
    stackyard --list-scenarios                    stackyard scenario list
    stackyard --scenario pve-setup --list-phases  stackyard scenario phases pve-setup
    stackyard --preflight --host father           stackyard preflight --host father
    stackyard scenario pve-setup --local          stackyard scenario run pve-setup --local

It knows words alone and loads nothing, because every command line passes here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["refuse_other_names", "translate_legacy_arguments"]

_SCENARIO = ("--scenario", "-S")
_FLAGS = ("--list-scenarios", "--list-phases", "--preflight")
_VERBS = ("list", "phases", "run")
# Commands of later versions of homestak that have another name here.
_OTHER_NAMES = {
    ("manifest", "apply"): "stackyard create -M NAME -H HOST",
    ("manifest", "destroy"): "stackyard destroy -M NAME -H HOST",
    ("manifest", "test"): "stackyard test -M NAME -H HOST",
    ("server", "start"): "stackyard serve start",
    ("server", "stop"): "stackyard serve stop",
    ("server", "status"): "stackyard serve status",
    ("server",): "stackyard serve",
    ("config", "fetch"): "stackyard spec get",
    ("config", "apply"): "stackyard spec apply",
    ("token", "inspect"): "stackyard serve token",
}
# Options of the program itself, which started a server for the length of a run.
_OTHER_OPTIONS = {
    name: "stackyard serve --repos DIR in another terminal; guests of a manifest are served by the run itself"
    for name in ("--serve-repos", "--serve-port", "--serve-timeout", "--serve-ref")
}


def translate_legacy_arguments(argv: Sequence[str]) -> list[str]:
    """Return a command line as the parser knows it; one without legacy options as it is."""
    words = list(argv)
    if words[:1] == ["scenario"]:
        return _with_verb(words)
    if not words or not words[0].startswith("-"):
        return words
    end = words.index("--") if "--" in words else len(words)
    name, rest = _take_scenario(words[:end])
    said = {flag for flag in _FLAGS if flag in rest}
    if name is None and not said:
        return words
    rest = [word for word in rest if word not in said] + words[end:]
    if "--list-scenarios" in said:
        return ["scenario", "list", *rest]
    if "--list-phases" in said:
        return ["scenario", "phases", *_list_name(name), *rest]
    if "--preflight" in said:
        return ["preflight", *rest]
    return ["scenario", "run", *_list_name(name), *rest]


def refuse_other_names(argv: Sequence[str]) -> None:
    """Refuse a command line in words of homestak that mean something by another name here.

    Raises:
        UsageError: With the command that is meant.
    """
    words = list(argv)
    plain = [word for word in words if not word.startswith("-")]
    named = next((name for name in (tuple(plain[:2]), tuple(plain[:1])) if name in _OTHER_NAMES), None)
    if named is not None and tuple(words[: len(named)]) == named:
        raise UsageError(
            f"`{' '.join(named)}` has another name in stackyard.", remedy=f"Use: {_OTHER_NAMES[named]}"
        )
    end = words.index("--") if "--" in words else len(words)
    for word in words[:end]:
        option = word.partition("=")[0]
        if option in _OTHER_OPTIONS:
            raise UsageError(
                f"`{option}` has another name in stackyard.", remedy=f"Use: {_OTHER_OPTIONS[option]}"
            )


def _list_name(name: str | None) -> list[str]:
    return [] if name is None else [name]


def _take_scenario(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """Take the scenario out of a command line: `--scenario X`, `--scenario=X`, `-S X` or `-SX`."""
    name: str | None = None
    rest: list[str] = []
    pending = iter(words)
    for word in pending:
        option, equals, value = word.partition("=")
        if option in _SCENARIO and equals:
            name = value
        elif word in _SCENARIO:
            name = next(pending, "")
        elif word.startswith("-S") and not word.startswith("--"):
            name = word[2:]
        else:
            rest.append(word)
    return name, rest


def _with_verb(words: list[str]) -> list[str]:
    """Put the verb into `scenario NAME`, which an older program needed none for."""
    if len(words) > 1 and "-" in words[1] and not words[1].startswith("-") and words[1] not in _VERBS:
        return ["scenario", "run", *words[1:]]
    return words
