"""`policy fix` writes what the rules ask for, loses nothing, and has nothing to do the second time."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.support.policy import MODULE, check, good_repository, rules_of
from tests.support.policy_seed import seed_repository

from stackyard.base.documents.constraints import is_pinned, satisfies
from stackyard.policy.context import read_context
from stackyard.policy.fix.changes import FileChange, find_changes, write_changes
from stackyard.policy.fix.pins import edit_pins, pin_constraint
from stackyard.policy.fix.readme import ModuleInterface, edit_readme
from stackyard.policy.readme import find_tables, has_open_fence
from stackyard.sources.stacks.repository import find_stacks

PET = "modules/pet"


def fix(root: Path) -> list[FileChange]:
    context = read_context(find_stacks(root, may_be_empty=True))
    changes = find_changes(context)
    write_changes(context, changes)
    return changes


def test_a_good_repository_is_left_alone(tmp_path: Path) -> None:
    assert fix(good_repository(tmp_path)) == []


def test_the_seed_repository_is_corrected_as_far_as_nothing_is_invented(tmp_path: Path) -> None:
    root = seed_repository(tmp_path)
    fix(root)
    assert fix(root) == []
    left = check(root, "M3,M4,M5,M6,M7").errors
    # Outputs, a main file and the reason of an `any` are for a human to write.
    assert {(one.rule, one.where.path.rpartition("/")[2]) for one in left} == {
        ("M4", "ansible_inventory"),
        ("M4", "resource_normalizer"),
        ("M5", "variables.tf"),
        ("M6", "ansible_inventory"),
    }
    assert (root / "tofu/modules/proxmox_vm/main.tf").read_text().count('version = "~> 0.86.0"') == 1


def test_a_readme_keeps_the_text_and_the_right_rows_of_its_author(tmp_path: Path) -> None:
    readme = (
        "# pet\n\nMy text.\n\n## Inputs\n\n| Input | Why |\n|---|---|\n| `gone` | x |\n\n## Notes\n\nMore.\n"
    )
    root = good_repository(tmp_path, {f"{PET}/README.md": readme})
    assert [one.path for one in fix(root)] == [f"{PET}/README.md"]
    text = (root / PET / "README.md").read_text()
    assert "My text." in text
    assert "## Notes\n\nMore.\n" in text
    assert "gone" not in text
    assert "| `length` |  |\n" in text
    assert "| `name` | The name. | no |" in text
    assert rules_of(check(root, "M7")) == set()
    assert fix(root) == []


def test_tables_between_marks_follow_the_code(tmp_path: Path) -> None:
    root = good_repository(tmp_path, {f"{PET}/README.md": None})
    fix(root)
    more = 'variable "size" {\n  description = "A | B"\n  type = number\n  default = 1\n}\n'
    (root / PET / "more.tf").write_text(more)
    readme = root / PET / "README.md"
    readme.write_text(readme.read_text().replace("# pet\n", "# pet\n\nMine.\n") + "\nBelow.\n")
    fix(root)
    text = readme.read_text()
    assert "| `size` | A \\| B | `number` | `1` | no |" in text
    assert text.startswith("# pet\n\nMine.\n")
    assert text.endswith("\nBelow.\n")
    assert rules_of(check(root, "M7")) == set()


def test_a_module_without_variables_gets_a_file_that_says_so(tmp_path: Path) -> None:
    files = {f"{PET}/variables.tf": None, f"{PET}/README.md": None}
    root = good_repository(tmp_path, files)
    assert {one.path for one in fix(root)} == {f"{PET}/README.md", f"{PET}/variables.tf"}
    assert rules_of(check(root, "M4,M7")) == set()


def test_variables_in_another_file_are_not_hidden_by_an_empty_one(tmp_path: Path) -> None:
    files = {f"{PET}/variables.tf": None, f"{PET}/inputs.tf": MODULE["variables.tf"]}
    root = good_repository(tmp_path, files)
    assert fix(root) == []
    assert rules_of(check(root, "M4")) == {"M4"}


def test_a_provider_without_a_version_gets_one_from_the_lock_file(tmp_path: Path) -> None:
    text = str(MODULE["main.tf"]).replace('      version = "~> 3.6"\n', "")
    root = good_repository(tmp_path, {f"{PET}/main.tf": text})
    fix(root)
    assert (root / PET / "main.tf").read_text() == text.replace(
        '"hashicorp/random"\n', '"hashicorp/random"\n      version = "~> 3.6"\n'
    )
    assert rules_of(check(root, "M3")) == set()


@pytest.mark.parametrize(
    ("before", "locked", "after"),
    [
        ("1.2.3", (), "~> 1.2.3"),
        ("= 1.2.3", (), "~> 1.2.3"),
        ("=1.2", (), "~> 1.2"),
        ("1", (), "~> 1.0"),
        (">= 1.2", (), "~> 1.2"),
        (">= 1", (), "~> 1.0"),
        (">= 1.2.3", (), "~> 1.2, >= 1.2.3"),
        (">= 1.2.0", (), "~> 1.2"),
        (">= 5.1, < 6.0", (), "~> 5.1"),
        (">= 5.1, < 7.0", (), None),
        (">= 1.2", ("2.0.0",), None),
        ("> 1.2", (), None),
        ("~> 1.2", (), None),
        ("1.0.0-beta1", (), None),
        ("newest", (), None),
        (None, ("3.6.2",), "~> 3.6"),
        (None, ("3.6.2", "3.4.1"), "~> 3.4"),
        (None, ("3.6.2", "4.0.0"), None),
        (None, (), None),
    ],
)
def test_a_constraint_becomes_a_pin(before: str | None, locked: tuple[str, ...], after: str | None) -> None:
    assert pin_constraint(before, locked) == after


def test_pins_keep_comments_and_alignment() -> None:
    text = (
        'terraform {\n  required_providers {\n    a = { source = "x/a", version = "1.2.3" } # why\n'
        '    b = "2.0"\n    c = {\n      # first\n      source  = "x/c" # here\n    }\n  }\n}\n'
        'module "m" {\n  source  = "o/m/p"\n  version = "5.1.0" /* keep */\n}\n'
    )
    made = edit_pins(text.encode(), lambda source: ["7.8.9"] if source == "x/c" else []).decode()
    assert made == (
        text.replace('"1.2.3"', '"~> 1.2.3"')
        .replace('"2.0"', '"~> 2.0"')
        .replace('"5.1.0"', '"~> 5.1.0"')
        .replace("# here\n", '# here\n      version = "~> 7.8"\n')
    )


def test_a_readme_of_odd_lines_takes_no_time() -> None:
    lines = ("|" + " " * 100_000, "#" + " " * 100_000 + "x", "| a |", " " * 100_000 + "|", "-|" * 50_000)
    text = "\n".join(lines)
    assert edit_readme(text, interface(set(), set())) == text


versions = st.builds(
    lambda parts: ".".join(map(str, parts)), st.lists(st.integers(0, 30), min_size=1, max_size=3)
)
constraints = st.builds(
    lambda operator, version: f"{operator}{version}",
    st.sampled_from(["", "= ", ">= ", ">", "~> ", "< ", "!= "]),
    versions,
)


@given(constraints, versions)
def test_a_pin_lets_in_what_was_in_use(constraint: str, version: str) -> None:
    made = pin_constraint(constraint, (version,))
    if made is not None:
        assert is_pinned(made)
        assert satisfies(version, made) or not satisfies(version, constraint)
        assert pin_constraint(made, (version,)) is None


comments = st.sampled_from(["", " # note", " // x", " /* y */"])


@given(constraints, comments, st.sampled_from(["\n", "\r\n"]), st.lists(versions, max_size=2))
def test_editing_pins_changes_nothing_but_versions(
    constraint: str, comment: str, newline: str, locked: list[str]
) -> None:
    inner = comment if "*" not in comment else ""
    text = "".join(
        (
            "terraform {\n  required_providers {\n    a = {\n",
            f'      source = "x/a"{comment}\n    }}\n    b = {{{inner}\n',
            f'      version = "{constraint}"{comment}\n    }}\n  }}\n}}\n# end',
        )
    ).replace("\n", newline)
    made = edit_pins(text.encode(), lambda source: locked).decode()
    assert edit_pins(made.encode(), lambda source: locked).decode() == made
    kept = [line for line in made.split(newline) if "version" not in line]
    assert kept == [line for line in text.split(newline) if "version" not in line]


names = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)
cells = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=12)
pieces = st.one_of(
    st.sampled_from(
        [
            "# Title",
            "## Inputs",
            "## Outputs",
            "| Name | Description |",
            "|---|---|",
            "",
            "```",
            "| `a` | x |",
        ]
    ),
    st.builds(lambda name, cell: f"| {name} | {cell} |", names, cells),
    cells,
)


def interface(inputs: set[str], outputs: set[str]) -> ModuleInterface:
    row = {"description": "d", "type": "`t`", "default": "", "required": "yes", "sensitive": "no"}
    return ModuleInterface({name: row for name in inputs}, {name: row for name in outputs})


def rows(text: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {"inputs": set(), "outputs": set()}
    for table in find_tables(text):
        found[table.kind] |= {row.name for row in table.rows if row.name}
    return found


@given(st.lists(pieces, max_size=14), st.sets(names, max_size=3), st.sets(names, max_size=3), st.booleans())
def test_editing_a_readme_loses_only_stale_rows(
    lines: list[str], inputs: set[str], outputs: set[str], is_windows: bool
) -> None:
    text = ("\r\n" if is_windows else "\n").join(lines)
    assume(not has_open_fence(text))
    wanted = interface(inputs, outputs)
    made = edit_readme(text, wanted)
    assert edit_readme(made, wanted) == made
    assert rows(made.replace("\r\n", "\n")) == {"inputs": inputs, "outputs": outputs}
    left = iter(made.replace("\r\n", "\n").split("\n"))
    stale = {
        row.line
        for table in find_tables(text.replace("\r\n", "\n"))
        for row in table.rows
        if row.name and row.name not in (inputs if table.kind == "inputs" else outputs)
    }
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n")):
        assert number in stale or any(line == one for one in left), line


FOREIGN_TABLES = {
    "environment": "## Environment variables\n\n| Name | Use |\n|---|---|\n| AWS_PROFILE | kept |\n",
    "column": "## Environment\n\n| Variable | Use |\n|---|---|\n| AWS_PROFILE | kept |\n",
    "formats": "## Output formats\n\n| Format | Use |\n|---|---|\n| json | kept |\n",
    "rules": "## Input validation\n\n| Name | Use |\n|---|---|\n| length | kept |\n",
    "second": "## Outputs\n\nWhere they show:\n\n| Site | Use |\n|---|---|\n| staging | kept |\n",
    "both": "## Inputs and outputs\n\n| Name | Use |\n|---|---|\n| other | kept |\n",
    "underlined": "## Inputs\n\nTeams\n-----\n\n| Name | Mail |\n|---|---|\n| alice | kept |\n",
    "code": "## Inputs\n\n    | Name | Use |\n    |---|---|\n    | sample | kept |\n",
    "comment": "## Inputs\n\n<!--\n| Name | Use |\n|---|---|\n| draft | kept |\n-->\n",
}


@pytest.mark.parametrize("name", FOREIGN_TABLES)
def test_a_table_about_something_else_keeps_its_rows(name: str) -> None:
    interface = ModuleInterface(inputs={}, outputs={})
    text = f"# A module\n\n{FOREIGN_TABLES[name]}"
    assert edit_readme(text, interface).startswith(text)
    assert not [row for table in find_tables(text) for row in table.rows]


@pytest.mark.parametrize(
    "heading",
    ["Inputs", "2. Input variables", "<a name='i'></a> Required Inputs", "Module arguments", "*Variables*"],
)
def test_a_table_of_the_module_loses_stale_rows_and_gets_new_ones(heading: str) -> None:
    interface = ModuleInterface(inputs={"size": {"use": "how big"}}, outputs={})
    text = f"## {heading}\n\n| Name | Use |\n|---|---|\n| stale | x |\n"
    assert edit_readme(text, interface) == text.replace("| stale | x |", "| `size` | how big |")
