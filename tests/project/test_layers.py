"""The arrows between packages go left only, and each part of the world has one door."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

SRC = Path(__file__).parents[2] / "src"
STACKYARD = SRC / "stackyard"

# From the design: a package may import from the layers above its own, and from the left in its own layer. A
# layer of one package orders the parts of that package in the same way.
LAYERS: tuple[Sequence[str], ...] = (
    (
        "base.errors base.diagnostics base.suggestions base.visible base.redaction base.events base.files "
        "base.locks base.names base.backoff base.run_stop base.documents base.addresses base.yamledit "
        "base.directories base.http_failures base.process base.dag base.schedule base.serving base.extras "
        "base.calendar_events base.protobuf base.grpc_server base.sockets"
    ).split(),
    ("talosapi",),
    (
        "clients.objects",
        "clients.ssh",
        "clients.git",
        "clients.proxmox",
        "clients.talos",
        "clients.factory",
        "clients.kubernetes",
        "clients.truenas",
        "clients.forge",
    ),
    ("secrets", "desired", "fields", "bpg_schema"),
    (
        "sources.store",
        "sources.hypervisor",
        "sources.site",
        "sources.cluster",
        "sources.deployment",
        "sources.manifest",
        "sources.stacks",
    ),
    ("talosconfig",),
    ("render",),
    ("provider", "engine", "state"),
    ("guard", "inventory", "policy"),
    ("path", "recipes"),
    ("upgrades",),
    ("controller",),
    ("operator", "bootstrap", "scenario"),
    ("gitops",),
    ("cli", "testing", "lab"),
)
RANKS = {name: (layer, place) for layer, names in enumerate(LAYERS) for place, name in enumerate(names)}
KNOWN = {*RANKS, "pvelab"}
GROUPS = {name.partition(".")[0] for name in RANKS if "." in name}
# Only the names that projects know them by, and the command, lead from stackyard to the lab.
USERS_OF_THE_LAB = ("cli", "testing", "lab")

# Whoever may use a part of the world directly; everybody else goes through the package that is its door.
DOORS = {
    "subprocess": {"base.process"},
    "asyncio.subprocess": {"base.process"},
    "pty": set[str](),
    "http.server": set[str](),
    "socketserver": set[str](),
    "multiprocessing": set[str](),
    "asyncssh": {"clients.ssh", "pvelab"},
    "boto3": {"clients.objects"},
    "psycopg": {"clients.objects"},
    "procrastinate": {"gitops"},
    "proxmoxer": {"clients.proxmox"},
    "grpclib": {"base.grpc_server", "clients.talos", "provider", "pvelab"},
    "tree_sitter": {"base.documents"},
    "tree_sitter_hcl": {"base.documents"},
}
# Programs that run inside guests of the lab, each in a world of its own: they are not stackyard, and start
# programs, wait and end as any program does.
INSIDE_GUESTS = SRC / "pvelab" / "machines" / "guest"
# The same for single calls, by the end of their name.
DOORS_OF_CALLS = {
    "os.system": set[str](),
    "os.popen": set[str](),
    "os.fork": set[str](),
    "os.posix_spawn": {"base.process"},
    "subprocess_exec": {"base.process"},
    "subprocess_shell": set[str](),
    "create_subprocess_exec": set[str](),
    "create_subprocess_shell": set[str](),
    "create_server": {"base.serving"},
    "create_unix_server": {"base.serving"},
    "start_server": set[str](),
    "web.run_app": set[str](),
    "sys.exit": {"__main__"},
    "os._exit": {"cli"},
    "time.sleep": set[str](),
    "fcntl.flock": {"base.locks"},
}


LAST_NAMES_OF_CALLS = frozenset(name.rpartition(".")[2] for name in DOORS_OF_CALLS)


def last_name(called: ast.expr) -> str | None:
    """Return the last name of `a.b.c`; nothing for what has no name, such as the result of a call."""
    if isinstance(called, ast.Attribute):
        return called.attr
    return called.id if isinstance(called, ast.Name) else None


def sources() -> list[Path]:
    return sorted(SRC.rglob("*.py"))


def package_of(path: Path) -> str:
    return package_named(".".join(path.relative_to(SRC).with_suffix("").parts))


def package_named(module: str) -> str:
    """Return the package of the picture that a module belongs to: `pvelab`, `base.files`, `guard`."""
    first, *rest = module.split(".")
    if first == "pvelab" or not rest:
        return first
    return ".".join(rest[:2]) if rest[0] in GROUPS and len(rest) > 1 else rest[0]


def imports(tree: ast.AST) -> Iterator[tuple[ast.stmt, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node, node.module
            yield from ((node, f"{node.module}.{alias.name}") for alias in node.names)


def type_only_lines(tree: ast.AST) -> set[int]:
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            lines.update(inner.lineno for inner in ast.walk(node) if isinstance(inner, ast.stmt))
    return lines


def may_import(importer: str, imported: str) -> bool:
    if importer in (imported, "__main__"):
        return True
    if importer == "pvelab":
        return imported.startswith("base.") or imported == "talosapi"
    if imported == "pvelab":
        return importer in USERS_OF_THE_LAB
    return RANKS[imported] < RANKS[importer]


def by_file(wrong: Callable[[Path, str, ast.Module], list[str]]) -> dict[str, list[str]]:
    """Return what a rule finds wrong in each source file: path, text and tree are what it looks at."""
    found = {str(path.relative_to(SRC)): wrong(path, text, tree) for path, text, tree in parsed()}
    return {name: lines for name, lines in found.items() if lines}


@functools.cache
def parsed() -> list[tuple[Path, str, ast.Module]]:
    texts = ((path, path.read_text()) for path in sources())
    return [(path, text, ast.parse(text)) for path, text in texts]


def test_a_package_imports_only_from_its_left() -> None:
    def wrong(path: Path, text: str, tree: ast.Module) -> list[str]:
        del text
        importer, only_types = package_of(path), type_only_lines(tree)
        found = []
        for node, name in imports(tree):
            if not name.startswith(("stackyard.", "pvelab")):
                continue
            imported = package_named(name)
            if imported not in KNOWN:
                continue
            # The error tree names the findings it carries; that circle exists for the type checker only.
            circle = {"base.errors", "base.diagnostics"}
            if {importer, imported} == circle and node.lineno in only_types:
                continue
            if not importer.endswith("__init__") and not may_import(importer, imported):
                found.append(f"line {node.lineno}: {importer} imports {name}")
        return found

    assert by_file(wrong) == {}


def test_a_package_that_exists_is_in_the_design() -> None:
    groups = {f"{group}.__init__" for group in GROUPS}
    known = {*KNOWN, *groups, "__init__", "__main__", "_version"}
    assert {package_of(path) for path in sources()} <= known


def test_an_import_inside_a_function_gives_its_reason() -> None:
    def wrong(path: Path, text: str, tree: ast.Module) -> list[str]:
        del path
        lines = text.splitlines()
        inside = {
            stmt.lineno
            for function in ast.walk(tree)
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
            for stmt in ast.walk(function)
            if isinstance(stmt, ast.Import | ast.ImportFrom)
        }
        return [f"line {n}" for n in sorted(inside) if "# lazy: " not in lines[n - 1]]

    assert by_file(wrong) == {}


def test_the_world_is_reached_through_its_door() -> None:
    def wrong(path: Path, text: str, tree: ast.Module) -> list[str]:
        del text
        if path.is_relative_to(INSIDE_GUESTS):
            return []
        package = package_of(path)
        used = {name for _, name in imports(tree)}
        # Only what ends as one of them does is worth its whole name.
        calls = {
            ast.unparse(node.func)
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and last_name(node.func) in LAST_NAMES_OF_CALLS
        }
        found = [name for name, doors in DOORS.items() if name in used and package not in doors]
        return found + [
            name
            for name, doors in DOORS_OF_CALLS.items()
            if package not in doors and any(f".{call}".endswith(f".{name}") for call in calls)
        ]

    assert by_file(wrong) == {}


def test_a_package_says_its_one_job() -> None:
    def is_said(folder: Path) -> bool:
        docstring = ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
        return docstring is not None and len(docstring) > 40

    folders = sorted({path.parent for path in sources()})
    assert len(folders) > 20
    assert [str(folder) for folder in folders if not is_said(folder)] == []


def test_the_architecture_page_has_every_package() -> None:
    page = (SRC.parent / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| \[`([a-z_.]+)`\]\(\.\./src/stackyard/[^)]+\)", page, re.MULTILINE)
    assert rows[0] == "base"
    assert sorted(rows[1:]) == sorted(name for name in RANKS if not name.startswith("base."))
    listed = re.findall(r"\[`([a-z_]+)`\]\(\.\./src/stackyard/base/(?!__init__)", page)
    assert {f"base.{name}" for name in listed} == {name for name in RANKS if name.startswith("base.")}
