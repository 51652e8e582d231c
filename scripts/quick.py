"""Check a change in minutes: lint, layers, and the tests that reach a changed file through their imports.

python -m scripts.quick [REVISION]

What changed is what differs from REVISION (HEAD when absent), with the files that git does not know yet. A
test is chosen where its module imports a changed one, itself or through others; a name of a module in quotes
counts as an import, and a module that none imports belongs to its package. What a test reaches only through a
program that it starts is not seen. Tests of `tests/e2e` run where they changed themselves, and of the others
the nearest run. What is left out is printed.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Choice", "choose", "main"]

ROOT = Path(__file__).resolve().parent.parent
# Where modules are, and what their names begin with there.
PLACES = (("src", ""), ("tests", "tests."), ("scripts", "scripts."), ("bench", "bench."))
# These start programs and labs: each takes as long as many others.
SLOW = "tests/e2e/"
LAYERS = "tests/project/test_layers.py"
# How many test files fit into two minutes on two cores.
MOST_FILES = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which tests are run.

    Attributes:
        run: The files of tests, the nearest to the change first.
        far: Files that reach the change too, and are further away than there is time for.
        slow: The same of `tests/e2e`.
    """

    run: tuple[str, ...]
    far: tuple[str, ...]
    slow: tuple[str, ...]


def main(arguments: list[str]) -> int:
    """Run everything; the status is that of the first command that fails."""
    base = arguments[0] if arguments else "HEAD"
    changed = _changed(base)
    choice = choose(ROOT, changed)
    say(f"Changed since {base}: {len(changed)} files. Test files that reach them: {len(choice.run)} are run.")
    if choice.far:
        say(f"Left out, further away than the nearest {MOST_FILES}: {len(choice.far)} files.")
    if choice.slow:
        say(f"Left out, because they are of {SLOW} and did not change: {len(choice.slow)} files.")
    if choice.far or choice.slow:
        say("`make test` runs everything.")
    python, ruff = sys.executable, str(Path(sys.executable).with_name("ruff"))
    places = [place for place, _ in PLACES]
    workers = ["-n", str(os.cpu_count() or 1), "--dist", "worksteal"]
    for command in (
        [ruff, "format", "--check", *places],
        [ruff, "check", *places],
        [python, "-m", "pytest", *workers, *dict.fromkeys([LAYERS, *choice.run])],
    ):
        status = subprocess.run(command, cwd=ROOT, check=False).returncode
        if status:
            return status
    return 0


def _changed(base: str) -> list[str]:
    """Return the files that differ from a revision, or that git does not know yet."""
    differing = _git("diff", "--name-only", "--no-renames", base)
    return sorted({*differing, *_git("ls-files", "--others", "--exclude-standard")})


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.splitlines()


def choose(root: Path, changed: Iterable[str], *, most: int = MOST_FILES) -> Choice:
    """Return the tests that reach changed files, by their paths below a folder."""
    modules = dict(_modules(root))
    importers = _importers(root, modules)
    changed = set(changed)
    steps = _steps({name for path in changed if (name := _module_of(path, modules))}, importers)
    reached = sorted((step, modules[name]) for name, step in steps.items())
    tests = [path for _, path in reached if Path(path).name.startswith("test_")]
    slow = tuple(path for path in tests if path.startswith(SLOW) and path not in changed)
    wanted = [path for path in tests if path not in slow]
    return Choice(run=tuple(wanted[:most]), far=tuple(wanted[most:]), slow=slow)


def _modules(root: Path) -> Iterator[tuple[str, str]]:
    """Return the path of each module by its name."""
    for place, prefix in PLACES:
        for path in sorted((root / place).rglob("*.py")):
            name = ".".join(path.relative_to(root / place).with_suffix("").parts)
            yield prefix + name.removesuffix(".__init__"), str(path.relative_to(root))


def _module_of(path: str, modules: Mapping[str, str]) -> str | None:
    """Return the module that a file is; for a file of data, the package that it is in."""
    by_path = {at: name for name, at in modules.items()}
    if path.endswith(".py"):
        return by_path.get(path)
    found = (by_path.get(f"{folder}/__init__.py") for folder in Path(path).parents)
    return next((name for name in found if name), None)


def _importers(root: Path, modules: Mapping[str, str]) -> dict[str, set[str]]:
    """Return who imports each module; a conftest counts as imported by the tests beside and below it."""
    importers: dict[str, set[str]] = {name: set() for name in modules}
    for importer, path in modules.items():
        # A package may give names that it imports when they are used: the type checker sees which.
        is_package = path.endswith("__init__.py")
        for name in _imported(ast.parse((root / path).read_text()), modules, with_types=is_package):
            importers[name].add(importer)
        if path.endswith("conftest.py"):
            package = importer.removesuffix("conftest")
            importers[importer].update(name for name in modules if name.startswith(package))
    for name, known in importers.items():
        package = name.rpartition(".")[0]
        # Loaded by its place, as the routes of the lab are; a whole program is too much of a place.
        if not known and "." in package and package in importers:
            known.add(package)
    return importers


def _imported(tree: ast.AST, modules: Mapping[str, str], *, with_types: bool) -> Iterator[str]:
    """Return the modules that a module imports at any time; those for the type checker are asked for."""
    for node in ast.iter_child_nodes(tree):
        is_for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        if is_for_types and not with_types:
            continue
        yield from (name for name in _names(node, modules) if name in modules)
        yield from _imported(node, modules, with_types=with_types)


def _names(node: ast.AST, modules: Mapping[str, str]) -> list[str]:
    """Return what may be names of modules in one node of a tree."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        inner = [f"{node.module}.{alias.name}" for alias in node.names]
        return [name if name in modules else node.module for name in inner]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    return []


def _steps(changed: Iterable[str], importers: Mapping[str, set[str]]) -> dict[str, int]:
    """Return everything that reaches a change, with the number of imports in between."""
    steps = dict.fromkeys(changed, 0)
    waiting = list(steps)
    for name in waiting:
        for importer in sorted(importers[name]):
            if importer not in steps:
                steps[importer] = steps[name] + 1
                waiting.append(importer)
    return steps


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
