"""The documentation is true: generated pages are up to date, links lead somewhere, commands shown are run."""

from __future__ import annotations

import builtins
import functools
import re
import shlex
from pathlib import Path

import pytest
from scripts import generate_docs
from tests.support import pages
from tests.support.cli import fresh

from stackyard.base import events
from stackyard.base.errors import ExitStatus

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
PICTURE = re.compile(r"(?:src|srcset)=\"([^\"]+)\"")
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)
# A page that starts servers or changes things runs its own commands in its own test.
RUN_ELSEWHERE = re.compile(r"^(make|git|pip|curl|export|source|docker|\.venv)\b")


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


COMMANDED = [
    page
    for page in PAGES
    if named(page).startswith(("docs/tutorial/", "docs/howto/", "docs/coming-from/", "examples/"))
]


@pytest.mark.parametrize("name", sorted(generate_docs.PAGES))
def test_a_generated_page_is_up_to_date(name: str) -> None:
    written = (generate_docs.REFERENCE / name).read_text()
    assert written == generate_docs.PAGES[name](), "run `make docs`"


def links(page: Path) -> list[tuple[str, str | None]]:
    """Return what a page links to in this project: the file as it is written, and the heading."""
    text = FENCED.sub("", page.read_text())
    found = [(match[1], match[2]) for match in LINK.finditer(text)]
    found += [(match[1], None) for match in PICTURE.finditer(text)]
    return [link for link in found if "://" not in link[0] and not link[0].startswith("mailto:")]


@functools.cache
def anchors(page: Path) -> frozenset[str]:
    """Return the names of the headings of a page, as forges and the site make them."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", page.read_text()), re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in headings)
    return frozenset(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    lost = []
    for target, heading in links(page):
        file = page.parent / target if target else page
        is_lost = heading and file.suffix == ".md" and file.exists() and heading not in anchors(file)
        if not file.exists() or is_lost:
            lost.append(f"{target}#{heading}" if heading else target)
    assert lost == []


@pytest.mark.parametrize("page", COMMANDED, ids=named)
def test_every_block_of_commands_is_run_by_a_test_or_says_why_not(page: Path) -> None:
    text = page.read_text()
    assert re.findall(r"^```(?:bash|shell|zsh)$", text, re.MULTILINE) == [], "write ```sh"
    found = pages.blocks(text)
    assert len(found) == len(re.findall(r"^```sh$", text, re.MULTILINE))
    if all(block.not_run for block in found):
        return
    runners = re.findall(r"^<!-- The commands of this page are run by (\S+)\. -->$", text, re.MULTILINE)
    assert len(runners) == 1, "name the test that runs them in a comment"
    # The test knows the page by its name, or by the name of its folder.
    known_by = page.parent.name if page.name == "README.md" else page.name
    assert known_by in (ROOT / runners[0]).read_text()


def commands() -> list[tuple[str, str, str]]:
    """Return each command of a console block with the output shown below it."""
    found = []
    for page in PAGES:
        for block in CONSOLE.findall(page.read_text()):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                line, _, shown = part.partition("\n")
                found.append((named(page), line, shown))
    return found


RUN_HERE = [shown for shown in commands() if shown[1].startswith("stackyard ")]


@pytest.mark.parametrize(("page", "line", "shown"), RUN_HERE)
def test_a_command_shown_prints_what_the_page_shows(page: str, line: str, shown: str, tmp_path: Path) -> None:
    del page
    ended = fresh(*shlex.split(line, comments=True)[1:], cwd=tmp_path)
    assert matches(shown, ended.stdout + ended.stderr), ended


def matches(shown: str, printed: str) -> bool:
    """Compare with `...` standing for anything."""
    wanted = re.escape(shown.strip()).replace(re.escape("..."), ".*")
    return re.fullmatch(wanted, printed.strip(), re.DOTALL) is not None


def test_every_other_command_shown_is_a_known_one() -> None:
    others = [line for _, line, _ in commands() if not line.startswith("stackyard ")]
    assert [line for line in others if not RUN_ELSEWHERE.match(line)] == []


HELPS = {path: command.get_help(ctx) for path, command, ctx in generate_docs.all_commands()}


@pytest.mark.parametrize("command", HELPS)
def test_a_help_text_shows_no_mark_of_its_maker(command: str) -> None:
    """A mark that click should have understood would be shown as it is, and the lines run together."""
    assert re.findall(r"\\[a-z]|[\x00-\x09\x0b-\x1f]|``", HELPS[command]) == []


def test_every_variable_that_is_read_is_in_the_reference() -> None:
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    read = set(re.findall(r"\b(?:STACKYARD|XDG)_[A-Z_]*[A-Z]\b", source))
    page = (generate_docs.REFERENCE / "environment.md").read_text()
    assert [name for name in sorted(read) if f"`{name}`" not in page] == []


def test_every_exit_status_is_in_the_reference() -> None:
    listed = re.findall(
        r"^\| (\d+) \|", (generate_docs.REFERENCE / "exit-statuses.md").read_text(), re.MULTILINE
    )
    assert [int(status) for status in listed] == sorted(ExitStatus)


def test_every_type_of_event_is_in_the_reference() -> None:
    page = (generate_docs.REFERENCE / "events.md").read_text()
    assert [event.type for event in events.EVENT_TYPES if f"`{event.type}`" not in page] == []


def test_every_target_of_make_that_is_mentioned_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    mentioned = {word for page in PAGES for word in re.findall(r"`make ([a-z]+)`", page.read_text())}
    assert mentioned <= targets


def test_every_error_that_a_docstring_names_exists() -> None:
    texts = {path: path.read_text() for path in (ROOT / "src").rglob("*.py")}
    known = {name for text in texts.values() for name in re.findall(r"^\s*class (\w+)", text, re.MULTILINE)}
    # Errors of Python and of libraries are imported, or reached through their module.
    known |= {name for text in texts.values() for name in re.findall(r"(?:import |\.|, )(\w+)", text)}
    known |= set(dir(builtins))
    raised = re.compile(r"^ +Raises:\n((?:(?! *\"\"\").+\n)+)", re.MULTILINE)
    missing = {
        (named(path), name)
        for path, text in texts.items()
        for section in raised.findall(text)
        for name in re.findall(r"^ +(\w+): ", section, re.MULTILINE)
        if name not in known
    }
    assert missing == set()
