"""Files and functions are small enough to read at once; longer ones are listed, and the list only shrinks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"
MOST_LINES_OF_A_FILE = 400
MOST_LINES_OF_A_FUNCTION = 35
MOST_PARAMETERS = 6

Function = ast.FunctionDef | ast.AsyncFunctionDef

LONG_FUNCTIONS = {
    "pvelab/api/nodes/qemu/create.py create_vm",
    "pvelab/api/nodes/settings/bulk_moves.py migrate_all",
    "pvelab/machines/guest/cloudusers.py _make",
    "pvelab/machines/guest/shim_sudo.py _start_sudo",
    "pvelab/machines/guest/shim_systemctl.py _properties",
    "pvelab/machines/guest/shim_systemd.py _timedatectl",
    "pvelab/machines/guest/shim_users.py _useradd",
    "pvelab/runtime/start.py _start",
    "pvelab/seeds/big.py big",
    "pvelab/ssh/programs/pvecm.py _status",
    "pvelab/world/guests/rows.py guest_row",
    "pvelab/world/world.py assemble",
    "stackyard/cli/interrupt.py _watch",
    "stackyard/cli/operator_options.py run_options",
    "stackyard/cli/operators.py _preview",
    "stackyard/controller/repositories/plain.py send_file",
    "stackyard/controller/service.py _start_controller",
    "stackyard/controller/tokens/issue.py issue",
    "stackyard/path/plan_input.py look",
    "stackyard/render/container.py _render_creation",
    "stackyard/sources/site/specs.py resolve_spec",
    "stackyard/state/contents.py write",
    "stackyard/state/embedded.py serve_embedded",
}
MANY_PARAMETERS = {
    # The parts of the lab that everything else gets from it.
    "pvelab/world/world.py assemble",
    # Settings of a command line, each with its own default.
    "stackyard/clients/git/run.py git_command",
    "stackyard/state/http/app.py __init__",
}


def functions() -> Iterator[tuple[str, Function]]:
    for path in sorted(SRC.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, Function):
                yield f"{path.relative_to(SRC)} {node.name}", node


def lines_of(node: Function) -> int:
    """Return how many lines a function has, without its docstring."""
    text = ast.get_docstring(node, clean=False)
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1 - (0 if text is None else text.count("\n") + 1)


def parameters_of(node: Function) -> int:
    names = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def test_a_file_can_be_read_at_once() -> None:
    lengths = {str(path.relative_to(SRC)): len(path.read_text().splitlines()) for path in SRC.rglob("*.py")}
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES_OF_A_FILE} == {}


def test_a_function_fits_on_a_page() -> None:
    assert {name for name, node in functions() if lines_of(node) > MOST_LINES_OF_A_FUNCTION} == LONG_FUNCTIONS


def test_a_function_takes_few_parameters() -> None:
    assert {name for name, node in functions() if parameters_of(node) > MOST_PARAMETERS} == MANY_PARAMETERS
