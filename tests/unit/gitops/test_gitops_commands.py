"""Commands in comments: what is one, what only looks like one, and what Markdown hides."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackyard.gitops.commands import PERMITS, Command, Verb, read_commands

PLAN, APPLY, HELP, UNLOCK = (Command(verb=verb) for verb in (Verb.PLAN, Verb.APPLY, Verb.HELP, Verb.UNLOCK))

UNDERSTOOD = {
    "stackyard plan": (PLAN,),
    "stackyard help": (HELP,),
    "stackyard unlock": (UNLOCK,),
    "stackyard apply": (APPLY,),
    "stackyard  apply  stack:onprem/web ": (Command(verb=Verb.APPLY, target="stack:onprem/web"),),
    "stackyard allow destroy web": (Command(verb=Verb.ALLOW, what="destroy", names=("web",)),),
    "stackyard allow disk-loss web,db,web": (
        Command(verb=Verb.ALLOW, what="disk-loss", names=("web", "db")),
    ),
    'stackyard allow destroy module.web["a"].proxmox_vm.this': (
        Command(verb=Verb.ALLOW, what="destroy", names=('module.web["a"].proxmox_vm.this',)),
    ),
    f"stackyard allow code {'0a' * 20}": (Command(verb=Verb.ALLOW, what="code", names=("0a" * 20,)),),
    "Looks good to me.\r\nstackyard apply\r\n": (APPLY,),
    "I read `web` and `db`.\nstackyard apply": (APPLY,),
    "stackyard plan\nstackyard apply\nstackyard plan": (PLAN, APPLY),
    "```\nstackyard plan\n```\nstackyard apply": (APPLY,),
    "stackyard apply\n~~~\nstackyard plan": (APPLY,),
    "<!-- hidden -->\n\nstackyard apply": (APPLY,),
    "<details>\nlog\n</details>\n\nstackyard apply": (APPLY,),
    "> he said\n\nstackyard apply": (APPLY,),
}

# Each is shown as something else than a line of plain text, or not shown.
HIDDEN = {
    "quote": "> stackyard apply",
    "quote that goes on": "> he said\nstackyard apply",
    "list": "- stackyard apply",
    "list that goes on": "1. first\nstackyard apply",
    "indented code": "    stackyard apply",
    "tab": "\tstackyard apply",
    "fence": "```\nstackyard apply\n```",
    "fence with a language": "```sh\nstackyard apply\n```",
    "fence of tildes with ticks in it": "~~~\n```\nstackyard apply\n~~~",
    "longer fence": "````\n```\nstackyard apply\n````",
    "fence that is not closed": "```\nstackyard apply",
    "fence that a line with more does not close": "```\n``` no\nstackyard apply\n```",
    "span": "`stackyard apply`",
    "span over lines": "`a\nstackyard apply\nb`",
    "span of two ticks over lines": "a ``b\nstackyard apply\nc``",
    "ticks of two lengths": "`a``b` c`` d\nstackyard apply\n`` e",
    "comment": "<!--\nstackyard apply\n-->",
    "comment with empty lines": "<!-- a\n\nstackyard apply\n\n-->",
    "comment in a line": "see <!-- this\nstackyard apply\n-->",
    "processing instruction": "<?php\n\nstackyard apply\n?>",
    "character data": "<![CDATA[\n\nstackyard apply\n]]>",
    "pre": "<pre>\n\nstackyard apply\n</pre>",
    "script": "<SCRIPT>\n\nstackyard apply\n</script>",
    "details": "<details><summary>log</summary>\n\nstackyard apply\n\n</details>",
    "html block": "<div>\nstackyard apply\n</div>",
    "heading": "# stackyard apply",
    "heading by a line below": "stackyard apply\n===",
    "table": "a | b\n--- | ---\nstackyard apply",
    "table with colons": "a | b\n:-- | --:\nstackyard apply",
    "formula": "$$\nstackyard apply\n$$",
    "footnote": "[^1]: note\nstackyard apply",
}

NOT_QUITE = {
    "stackyard aply": "`apply` may be meant",
    "stackyard plan please": "Nothing but the command",
    "stackyard apply one two": "Nothing but the command",
    "stackyard apply <b>": "the name of no target",
    "stackyard apply -lock=false": "the name of no target",
    "stackyard allow": "allow WHAT NAME",
    "stackyard allow everything web": "What can be allowed",
    "stackyard allow destroy --auto": "no name",
    "stackyard allow destroy web,-lock": "no name",
    "stackyard allow destroy ,": "no name",
    "stackyard allow destroy $(id)": "no name",
    "stackyard allow code main": "allow code COMMIT",
    f"stackyard allow code {'0a' * 20},{'0b' * 20}": "allow code COMMIT",
    "stackyard allow code 0123abcdef01": "allow code COMMIT",
}

NOTHING = (
    *(
        "",
        "stackyard",
        "stackyard is a program",
        "Stackyard plan",
        "please stackyard plan",
        "/stackyard plan",
    ),
    *("stackyard\nplan", "stackyard\u00a0plan\u200b", "@stackyard plan", "stackyardplan"),
)


@pytest.mark.parametrize("body", UNDERSTOOD)
def test_a_line_of_plain_text_is_a_command(body: str) -> None:
    found = read_commands(body)
    assert (found.commands, found.misunderstood) == (UNDERSTOOD[body], ())


@pytest.mark.parametrize("name", HIDDEN)
def test_what_markdown_shows_as_something_else_is_no_command(name: str) -> None:
    assert read_commands(HIDDEN[name]).commands == ()


@pytest.mark.parametrize("name", HIDDEN)
def test_what_is_behind_it_in_a_paragraph_of_its_own_may_be_one(name: str) -> None:
    found = read_commands(f"stackyard plan\n\n{HIDDEN[name]}").commands
    assert found == (PLAN,)


@pytest.mark.parametrize("body", NOT_QUITE)
def test_a_command_with_a_mistake_does_nothing_and_is_explained(body: str) -> None:
    found = read_commands(body)
    assert found.commands == ()
    assert NOT_QUITE[body] in "".join(found.misunderstood)


@pytest.mark.parametrize("body", NOTHING)
def test_a_sentence_is_neither_a_command_nor_a_mistake(body: str) -> None:
    found = read_commands(body)
    assert (found.commands, found.misunderstood) == ((), ())


def test_a_comment_as_long_as_a_forge_takes_is_read_at_once() -> None:
    bodies = ["stackyard plan\n" * 20_000, "`" * 300_000, "<!--" * 80_000, "> " * 100_000, "a" * 300_000]
    began = time.monotonic()
    for body in bodies:
        read_commands(body)
    assert time.monotonic() - began < 5


NAMES = st.text("abcdefgh0123456789_.-", min_size=1, max_size=20).filter(lambda name: name[0] not in "-.")
COMMANDS = st.one_of(
    st.sampled_from([PLAN, APPLY, HELP, UNLOCK]),
    st.builds(lambda name: Command(verb=Verb.APPLY, target=f"env:{name}"), NAMES),
    st.builds(
        lambda what, names: Command(verb=Verb.ALLOW, what=what, names=tuple(names)),
        st.sampled_from(sorted(PERMITS - {"code"})),
        st.lists(NAMES, min_size=1, max_size=3, unique=True),
    ),
    st.builds(
        lambda commit: Command(verb=Verb.ALLOW, what="code", names=(commit,)),
        st.text("0123456789abcdef", min_size=40, max_size=40),
    ),
)
MARKDOWN = st.text(st.sampled_from("`~<>!-#|*+=_[]()$\\\n\r\t 1a.:&;") | st.characters(), max_size=80)


@given(COMMANDS)
def test_a_command_is_read_as_it_is_written(command: Command) -> None:
    assert read_commands(str(command)).commands == (command,)


@given(MARKDOWN, COMMANDS, MARKDOWN)
def test_no_text_makes_a_command_of_something_else(before: str, command: Command, after: str) -> None:
    found = read_commands(f"{before}\n\n{command}\n\n{after}")
    assert set(found.commands) <= {command, PLAN, APPLY, HELP, UNLOCK}


@given(COMMANDS, st.sampled_from(sorted(HIDDEN)))
def test_a_hidden_command_stays_hidden_whatever_it_is(command: Command, name: str) -> None:
    body = HIDDEN[name].replace("stackyard apply", str(command))
    assert read_commands(body).commands == ()


@given(MARKDOWN.map(lambda text: text.replace("`", "'").replace("~", "-")), COMMANDS)
def test_nothing_leads_out_of_a_fence(text: str, command: Command) -> None:
    assert command not in read_commands(f"```\n{text}\n{command}\n```").commands
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    quoted = "\n".join(f"> {line}" for line in (*lines, str(command)))
    assert read_commands(quoted).commands == ()
