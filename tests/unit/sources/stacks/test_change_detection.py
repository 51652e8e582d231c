"""The probe of change detection: each case is one change, with exactly the stacks that it touches."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.support.stacks import commit, git, make_repository, select, write

CALL = 'module "m" {{ source = "{0}" }}\n'
BASE: dict[str, str | None] = {
    # Reads a file outside of its folder with file().
    "stacks/reads_file/main.tf": 'locals { motd = file("${path.module}/../../data/motd.txt") }\n',
    "data/motd.txt": "hello\n",
    # Two stacks whose modules call a module by the same relative text, which means two folders.
    "stacks/same_text_one/main.tf": CALL.format("../../one/outer"),
    "stacks/same_text_two/main.tf": CALL.format("../../two/outer"),
    "one/outer/main.tf": CALL.format("../inner"),
    "one/inner/main.tf": "locals { a = 1 }\n",
    "two/outer/main.tf": CALL.format("../inner"),
    "two/inner/main.tf": "locals { a = 2 }\n",
    # Values outside of the folder, named in stack.yaml; the values beside the code are not used then.
    "stacks/foreign_values/main.tf": 'variable "size" {}\n',
    "stacks/foreign_values/unused.tfvars": "size = 1\n",
    "stacks/foreign_values/stack.yaml": "var_files: [../../values/common.tfvars]\n",
    "values/common.tfvars": "size = 2\n",
    # A module called from JSON syntax.
    "stacks/json/main.tf.json": '{"module": {"m": {"source": "../../modules/json"}}}\n',
    "modules/json/main.tf.json": '{"locals": {"a": 1}}\n',
    # A nested module in the folder of the stack, a lock file, values beside the code, a script.
    "stacks/plain/main.tf": 'module "m" { source = "./lib" }\nvariable "size" {}\n',
    "stacks/plain/lib/main.tf": "locals { b = 1 }\n",
    "stacks/plain/setup.sh": "true\n",
    "stacks/plain/size.tfvars": "size = 1\n",
    "stacks/plain/.terraform.lock.hcl": "# locked\n",
    "stacks/plain/README.md": "a\n",
    "stacks/plain/docs/use.txt": "a\n",
    # Files found by pattern, each of them read.
    "stacks/by_pattern/main.tf": (
        'locals {\n  vms = { for f in fileset("${path.root}/../../vms", "*.yaml") :\n'
        '    f => yamldecode(file("${path.root}/../../vms/${f}")) }\n}\n'
    ),
    "vms/a.yaml": "a: 1\n",
    # A Markdown file that is data.
    "stacks/reads_markdown/main.tf": 'locals { page = filesha256("${path.module}/../../pages/page.md") }\n',
    "pages/page.md": "page\n",
    "pages/README.md": "about\n",
    # A path that a caller gives to a module, through a local value and a variable.
    "stacks/through_module/main.tf": (
        'locals { dir = "${path.root}/../../templates" }\n'
        'module "m" {\n  source = "../../modules/template"\n  dir    = local.dir\n}\n'
    ),
    "modules/template/main.tf": (
        'variable "dir" {}\nlocals { t = templatefile("${var.dir}/init.tftpl", {}) }\n'
    ),
    "modules/template/examples/basic/main.tf": "locals { example = true }\n",
    "templates/init.tftpl": "init\n",
    "templates/other.tftpl": "other\n",
    # A path in values chooses the file.
    "stacks/by_values/main.tf": (
        'variable "key" { default = "x" }\nlocals { k = file("../../keys/${var.key}.pub") }\n'
    ),
    "stacks/by_values/terraform.tfvars": 'key = "admin"\n',
    "keys/admin.pub": "a\n",
    "keys/x.pub": "x\n",
    # A folder that is watched, and a folder of domains.
    "stacks/watches/main.tf": "locals { w = 1 }\n",
    "stacks/watches/stack.yaml": "watch: ['config/**/*.ini']\ndomains: ../../domains\n",
    "config/net/a.ini": "a\n",
    "config/net/a.txt": "a\n",
    "domains/dns.json": "{}\n",
    # A module that is reached through a link.
    "stacks/linked/main.tf": CALL.format("./shared"),
    "modules/shared/main.tf": "locals { s = 1 }\n",
    "modules/unused/main.tf": "locals { u = 1 }\n",
    # A stack that does nothing special.
    "stacks/quiet/main.tf": "locals { q = 1 }\n",
    "stacks/quiet/backend.tf": 'terraform {\n  backend "s3" {\n    key = "quiet"\n  }\n}\n',
}


@dataclass(frozen=True)
class Case:
    """One change, and the stacks that it touches."""

    label: str
    edits: dict[str, str | None]
    expected: set[str]
    is_committed: bool = True
    removed: set[str] = field(default_factory=set)


CASES = [
    Case("a file that file() reads", {"data/motd.txt": "bye\n"}, {"reads_file"}),
    Case("a removed file that file() reads", {"data/motd.txt": None}, {"reads_file"}),
    Case("a removed stack", {"stacks/quiet": None}, {"quiet"}, removed={"quiet"}),
    Case("one of two modules with the same text", {"two/inner/main.tf": "locals {}\n"}, {"same_text_two"}),
    Case("the other of the two", {"one/inner/main.tf": "locals {}\n"}, {"same_text_one"}),
    Case("a removed file of a module", {"two/inner/main.tf": None, "two/inner/b.tf": ""}, {"same_text_two"}),
    Case("values outside of the stack", {"values/common.tfvars": "size = 3\n"}, {"foreign_values"}),
    Case("values that the stack does not use", {"stacks/foreign_values/unused.tfvars": "size = 9\n"}, set()),
    Case("a module called from JSON", {"modules/json/main.tf.json": '{"locals": {"a": 2}}\n'}, {"json"}),
    Case(
        "documentation of a stack",
        {"stacks/plain/README.md": "b\n", "stacks/plain/docs/use.txt": "b\n"},
        set(),
    ),
    Case(
        "documentation at the top",
        {"README.md": "b\n", "pages/README.md": "other\n", "LICENSE": "x\n"},
        set(),
    ),
    Case("Markdown that is read", {"pages/page.md": "new\n"}, {"reads_markdown"}),
    Case("a module inside of the stack", {"stacks/plain/lib/main.tf": "locals {}\n"}, {"plain"}),
    Case("a new file that a pattern finds", {"vms/b.yaml": "b: 1\n"}, {"by_pattern"}),
    Case("a removed file that a pattern finds", {"vms/a.yaml": None, "vms/c.txt": "c\n"}, {"by_pattern"}),
    Case("a file that no pattern finds", {"vms/notes.txt": "n\n"}, set()),
    Case("a path given to a module", {"templates/init.tftpl": "new\n"}, {"through_module"}),
    Case("a file beside it", {"templates/other.tftpl": "new\n"}, set()),
    Case("an example of a module", {"modules/template/examples/basic/main.tf": "locals {}\n"}, set()),
    Case("a file that values choose", {"keys/admin.pub": "b\n"}, {"by_values"}),
    Case("a file that only the default would choose", {"keys/x.pub": "b\n"}, set()),
    Case("a watched file", {"config/net/a.ini": "b\n"}, {"watches"}),
    Case("a file that is not watched", {"config/net/a.txt": "b\n"}, set()),
    Case("a domain", {"domains/new.json": "{}\n"}, {"watches"}),
    Case("a module behind a link", {"modules/shared/main.tf": "locals {}\n"}, {"linked"}),
    Case("a module that nobody calls", {"modules/unused/main.tf": "locals {}\n"}, set()),
    Case("the lock file", {"stacks/plain/.terraform.lock.hcl": "# other\n"}, {"plain"}),
    Case("the backend", {"stacks/quiet/backend.tf": "\n"}, {"quiet"}),
    Case("a script of a stack", {"stacks/plain/setup.sh": "false\n"}, {"plain"}),
    Case(
        "an untracked plan, state and log",
        {
            "stacks/quiet/plan.out": "x",
            "stacks/quiet/tfplan": "x",
            "stacks/quiet/a.tfplan": "x",
            "stacks/quiet/terraform.tfstate": "{}",
            "stacks/quiet/.terraform/modules/m/main.tf": "x",
        },
        set(),
        is_committed=False,
    ),
    Case("untracked code", {"stacks/quiet/new.tf": "locals {}\n"}, {"quiet"}, is_committed=False),
    Case("uncommitted values", {"stacks/plain/size.tfvars": "size = 4\n"}, {"plain"}, is_committed=False),
    Case("a new stack", {"stacks/fresh/main.tofu": "locals {}\n"}, {"fresh"}, is_committed=False),
    Case("nothing", {}, set()),
]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("probe") / "base"
    write(root, BASE)
    (root / "stacks/linked/shared").symlink_to("../../modules/shared")
    return make_repository(root, {})


@pytest.fixture
def copy(base: Path, tmp_path: Path) -> Callable[[], Path]:
    def make() -> Path:
        root = tmp_path / "copy"
        shutil.copytree(base, root, symlinks=True)
        return root

    return make


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_a_change_selects_exactly_the_stacks_that_read_it(case: Case, copy: Callable[[], Path]) -> None:
    root = copy()
    write(root, case.edits)
    if case.is_committed:
        commit(root)
    found = select(root)
    assert set(found) == case.expected
    assert {name for name, one in found.items() if one.stack is None} == case.removed
    assert all(one.reasons for one in found.values())
    # The second time everything comes from the cache, and must be the same.
    assert select(root) == found


def test_the_same_changes_are_found_when_all_are_made_at_once(copy: Callable[[], Path]) -> None:
    root = copy()
    expected: set[str] = set()
    for case in CASES:
        if case.is_committed and not any(edit is None for edit in case.edits.values()):
            write(root, case.edits)
            expected |= case.expected
    commit(root)
    assert set(select(root)) == expected


def test_a_changed_link_selects_the_stack_behind_it(copy: Callable[[], Path]) -> None:
    root = copy()
    (root / "stacks/linked/shared").unlink()
    (root / "stacks/linked/shared").symlink_to("../../modules/unused")
    assert set(select(root)) == {"linked"}
    commit(root)
    assert set(select(root)) == {"linked"}


def test_a_reason_is_the_way_from_the_file_to_the_stack(copy: Callable[[], Path]) -> None:
    root = copy()
    write(root, {"two/inner/main.tf": "locals {}\n", "data/motd.txt": "x\n"})
    found = select(root)
    [reason] = found["same_text_two"].reasons
    assert reason.chain == ("two/inner/main.tf", "two/inner", "two/outer", "stacks/same_text_two")
    [reason] = found["reads_file"].reasons
    assert str(reason) == "data/motd.txt -> stacks/reads_file (file() at stacks/reads_file/main.tf:1)"


def test_a_change_that_was_taken_back_selects_nothing(copy: Callable[[], Path]) -> None:
    root = copy()
    write(root, {"data/motd.txt": "x\n"})
    commit(root)
    write(root, {"data/motd.txt": BASE["data/motd.txt"]})
    assert set(select(root)) == set()


def test_a_base_can_be_named(copy: Callable[[], Path]) -> None:
    root = copy()
    write(root, {"data/motd.txt": "x\n"})
    first = commit(root)
    write(root, {"keys/admin.pub": "x\n"})
    commit(root)
    assert set(select(root)) == {"reads_file", "by_values"}
    assert set(select(root, base=first)) == {"by_values"}
    git(root, "tag", "release")
    assert set(select(root, base="release")) == set()
