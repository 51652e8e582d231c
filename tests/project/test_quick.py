"""`make quick` chooses the tests that reach a change through their imports, and says what it leaves out."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts.quick import choose

FILES = {
    "src/yard/__init__.py": "",
    "src/yard/errors.py": "",
    "src/yard/plan.py": "from yard import errors\n",
    "src/yard/later.py": "def run():\n    from yard.plan import thing  # lazy: a reason\n",
    "src/yard/typed.py": "if TYPE_CHECKING:\n    from yard.errors import Error\n",
    "src/yard/table.py": "MODULES = ['yard.later']\n",
    "src/yard/given/__init__.py": "if TYPE_CHECKING:\n    from yard.given.kept import Kept\n",
    "src/yard/given/kept.py": "",
    "src/yard/api/__init__.py": "",
    "src/yard/alone.py": "",
    "src/yard/api/routes/__init__.py": "import pkgutil\n",
    "src/yard/api/routes/found.py": "",
    "src/yard/api/routes/form.json": "{}",
    "tests/support/yard.py": "import yard.later\n",
    "tests/unit/conftest.py": "",
    "tests/unit/test_errors.py": "from yard.errors import Error\n",
    "tests/unit/test_given.py": "from yard.given import Kept\n",
    "tests/unit/test_later.py": "from tests.support.yard import make\n",
    "tests/unit/test_routes.py": "from yard.api import routes\n",
    "tests/unit/test_table.py": "from yard.table import MODULES\n",
    "tests/unit/test_typed.py": "import yard.typed\n",
    "tests/e2e/test_program.py": "import yard.plan\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def run(project: Path, *changed: str) -> list[str]:
    return [Path(path).stem for path in choose(project, changed).run]


def test_the_nearest_tests_come_first_and_types_do_not_count(project: Path) -> None:
    assert run(project, "src/yard/errors.py") == ["test_errors", "test_later", "test_table"]


def test_an_import_in_a_function_and_a_name_in_quotes_count(project: Path) -> None:
    assert run(project, "src/yard/plan.py") == ["test_later", "test_table"]


def test_what_none_imports_is_reached_through_its_package(project: Path) -> None:
    assert run(project, "src/yard/api/routes/found.py") == ["test_routes"]
    assert run(project, "src/yard/api/routes/form.json") == ["test_routes"]
    assert run(project, "src/yard/alone.py") == []


def test_a_package_gives_names_that_it_imports_when_they_are_used(project: Path) -> None:
    assert run(project, "src/yard/given/kept.py") == ["test_given"]


def test_a_conftest_is_part_of_the_tests_beside_it(project: Path) -> None:
    assert len(run(project, "tests/unit/conftest.py")) == 6


def test_tests_of_programs_are_left_out_unless_they_changed(project: Path) -> None:
    assert choose(project, ["src/yard/plan.py"]).slow == ("tests/e2e/test_program.py",)
    assert run(project, "tests/e2e/test_program.py") == ["test_program"]


def test_tests_beyond_the_most_are_said(project: Path) -> None:
    choice = choose(project, ["src/yard/errors.py"], most=1)
    assert choice.run == ("tests/unit/test_errors.py",)
    assert choice.far == ("tests/unit/test_later.py", "tests/unit/test_table.py")


def test_what_is_no_part_of_a_module_has_no_tests(project: Path) -> None:
    assert run(project, "README.md") == []
