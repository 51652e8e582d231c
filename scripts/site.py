"""`make site`: the documentation as a site, with search, in build/site/html.

The pages are those of docs/, which stay readable on a forge. This copies them, with the examples and the
pages of the project itself, and lets links lead to the copies; a link to source code becomes its text. The
navigation is the list of docs/README.md. Zensical builds the site in an environment of its own, from
scripts/site-requirements.lock, and stops at a link that leads nowhere. Then every page that was built is
read: nothing may come from another server, and every link must lead to a file and a place in it.
"""

from __future__ import annotations

import hashlib
import html.parser
import json
import re
import shutil
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "site"
LOCK = ROOT / "scripts" / "site-requirements.lock"
VENV = ROOT / "build" / "site-env"
ZENSICAL = VENV / "bin" / "zensical"
# What is in the site beside docs/, and where.
ALSO = {"examples": "examples", "CHANGELOG.md": "changelog.md", "SECURITY.md": "security-policy.md"}
ALSO |= {"CONTRIBUTING.md": "contributing.md"}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]*)(#[^)\s]*)?\)")
FENCE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)

# A page of the navigation, or the title of one or of a section with what it leads to.
Entry = str | dict[str, "Entry | list[Entry]"]


def main() -> int:
    """Build the site and check it."""
    try:
        install()
        problems = build(BUILD)
    except (subprocess.CalledProcessError, OSError) as err:
        return fail(f"{err}; what it printed is above.")
    for problem in problems:
        sys.stderr.write(f"site: {problem}\n")
    if problems:
        return fail(f"{len(problems)} problems.")
    pages = len(list((BUILD / "html").rglob("*.html")))
    sys.stdout.write(
        f"site: {pages} pages in {BUILD / 'html'}; look at them with:\n"
        f"  python3 -m http.server --directory {BUILD.relative_to(ROOT)}/html\n"
    )
    return 0


def install() -> None:
    """Make the environment of Zensical where it is missing or out of date."""
    stamp, wanted = VENV / "made-from", hashlib.sha256(LOCK.read_bytes()).hexdigest() + sys.version
    if not (stamp.is_file() and stamp.read_text() == wanted):
        sys.stderr.write("site: installing Zensical (once) ...\n")
        subprocess.run([sys.executable, "-m", "venv", "--clear", VENV], check=True)
        pip: list[str | Path] = [
            VENV / "bin" / "python",
            "-m",
            "pip",
            "--disable-pip-version-check",
            "install",
        ]
        subprocess.run([*pip, "--quiet", "--require-hashes", "-r", LOCK], check=True)
        stamp.write_text(wanted)


def build(folder: Path) -> list[str]:
    """Build the site in a folder; return every problem of what was built."""
    stage(folder)
    subprocess.run([ZENSICAL, "build", "--clean", "--strict"], cwd=folder, check=True)
    return [*missing_pages(folder / "source"), *check(folder / "html")]


# --- The pages


def stage(folder: Path) -> None:
    """Copy what becomes the site, with links that lead to the copies."""
    source = folder / "source"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(ROOT / "docs", source)
    for name, place in ALSO.items():
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / place)
        else:
            shutil.copyfile(ROOT / name, source / place)
    for page in source.rglob("*.md"):
        page.write_text(relink_page(page.read_text(), page.relative_to(source)))
    settings = (ROOT / "zensical.toml").read_text()
    nav = f"[project]\nnav = {to_toml(navigation())}\n"
    (folder / "zensical.toml").write_text(settings.replace("[project]\n", nav, 1))


def origin_of(page: Path) -> Path:
    """Return where a page of the site is in the project."""
    for name, place in ALSO.items():
        if page.is_relative_to(place):
            return ROOT / name / page.relative_to(place)
    return ROOT / "docs" / page


def place_of(target: Path) -> Path | None:
    """Return where a file of the project is in the site, if it is."""
    if target.is_dir():
        target = target / "README.md"
    if not target.exists():
        return None
    if target.is_relative_to(ROOT / "docs"):
        return target.relative_to(ROOT / "docs")
    for name, place in ALSO.items():
        if target.is_relative_to(ROOT / name):
            return Path(place) / target.relative_to(ROOT / name)
    return None


def relink_page(text: str, here: Path) -> str:
    """Return the text of a page with links as the site has them."""
    parts = FENCE.split(text)
    # Every second part is a block of code, which stays as it is.
    parts[::2] = [LINK.sub(lambda link: relink(link, here), part) for part in parts[::2]]
    return "".join(parts)


def relink(link: re.Match[str], here: Path) -> str:
    """Return a link of a page as the site has it."""
    mark, text, target, heading = link[1], link[2], link[3], link[4] or ""
    if not target or "://" in target or target.startswith("mailto:"):
        return link[0]
    place = place_of((origin_of(here).parent / target).resolve())
    if place is None:
        return text
    up = "../" * (len(here.parts) - 1)
    return f"{mark}[{text}]({up}{place.as_posix()}{heading})"


# --- The navigation


def navigation() -> list[Entry]:
    """Return the sections of docs/README.md with their pages, in its order."""
    nav: list[Entry] = [{"Home": "README.md"}]
    for section in re.split(r"^## ", (ROOT / "docs" / "README.md").read_text(), flags=re.MULTILINE)[1:]:
        title, _, body = section.partition("\n")
        nav.append({title: list(section_entries(body))})
    decided = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    decisions: list[Entry] = [{page_title(page): f"decisions/{page.name}"} for page in decided]
    project: list[Entry] = [{page_title(ROOT / name): ALSO[name]} for name in ALSO if name.endswith(".md")]
    return [*nav, {"Decisions": ["decisions/README.md", *decisions]}, {"Project": project}]


def page_title(page: Path) -> str:
    """Return the heading of a page."""
    return page.read_text().partition("\n")[0].removeprefix("# ")


def section_entries(body: str) -> Iterator[Entry]:
    """Return the entries of a section: pages, and groups of pages below a line that ends with a colon."""
    group: list[Entry] | None = None
    for line in body.splitlines():
        item = re.match(r"(?:- |\d+\. )(.*)", line)
        if item is None:
            if line.endswith(":"):
                group = []
                yield {line[:-1]: group}
            elif line.strip():
                group = None
            continue
        name, colon, _ = item[1].partition(": ")
        pages = list(page_entries(item[1]))
        if colon and "[" not in name:
            yield {name: pages}
        elif group is None:
            yield from pages
        else:
            group += pages


def page_entries(text: str) -> Iterator[Entry]:
    """Return the pages that a line links to."""
    for link in LINK.finditer(text):
        place = place_of((ROOT / "docs" / link[3]).resolve())
        if place is not None and not place.is_relative_to("decisions"):
            yield {link[2][0].upper() + link[2][1:]: place.as_posix()}


def to_toml(value: object) -> str:
    """Return a value as TOML has it: tables inline."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {to_toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(to_toml, value)) + "]"
    return json.dumps(value)


def missing_pages(source: Path) -> Iterator[str]:
    """Return the pages that no entry of the navigation leads to."""
    listed = set(re.findall(r'"([^"]+\.md)"', json.dumps(navigation())))
    for page in sorted(source.rglob("*.md")):
        name = page.relative_to(source).as_posix()
        if name not in listed and not name.startswith("examples/"):
            yield f"docs/{name} is not in the list of docs/README.md"


# --- What was built


@dataclass
class PageParts(html.parser.HTMLParser):
    """What a page of the site refers to, and the places in it."""

    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        found = {name: value or "" for name, value in attrs}
        self.ids.update(value for name, value in found.items() if name in ("id", "name"))
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag == "link" and found.get("rel") not in ("canonical", "prev", "next"):
            self.loads.append(found.get("href", ""))
        elif tag in ("script", "img", "iframe", "source"):
            self.loads += [found[name] for name in ("src", "srcset") if name in found]


def check(folder: Path) -> Iterator[str]:
    """Return every link that leads nowhere, and everything that another server would be asked for."""
    pages = {page: read_page(page) for page in sorted(folder.rglob("*.html"))}
    for page, parts in pages.items():
        name = page.relative_to(folder)
        for address in parts.loads:
            if urllib.parse.urlsplit(address).netloc:
                yield f"{name} loads {address}"
        for address in (*parts.links, *parts.loads):
            if name.name != "404.html" and (lost := lost_link(page, address, folder, pages)):
                yield f"{name}: {lost}"


def read_page(page: Path) -> PageParts:
    """Return what a page refers to."""
    parts = PageParts()
    parts.feed(page.read_text())
    return parts


def lost_link(page: Path, address: str, folder: Path, pages: dict[Path, PageParts]) -> str | None:
    """Return an address that leads to no file, or to no place in it."""
    split = urllib.parse.urlsplit(address)
    if split.scheme or split.netloc:
        return None
    path = urllib.parse.unquote(split.path)
    target = folder / path.lstrip("/") if path.startswith("/") else (page.parent / path).resolve()
    if not path:
        target = page
    elif target.is_dir():
        target = target / "index.html"
    if not target.is_file():
        return address
    if split.fragment and target in pages and urllib.parse.unquote(split.fragment) not in pages[target].ids:
        return address
    return None


def fail(text: str) -> int:
    """Tell what went wrong."""
    sys.stderr.write(f"site: {text}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
