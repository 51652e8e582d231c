"""The how-to page about changes of a state is true: its commands run, one after the other."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.engine import real_engine
from tests.support.pages import Reader
from tests.support.stack_repo import make_repo

from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

PAGE = "docs/howto/state-surgery.md"
EXPECTED = (
    ("state mv", "terraform_data.web -> terraform_data.frontend", "No changes."),
    ("--alone", "proposed", "Approved"),
    ("state apply", "Done: mv", "stack state rollback stack:onprem/web 1", "Nothing to change"),
    ("state rollback", "rollback 1", "No changes."),
)


def test_the_page_can_be_followed_from_its_start_to_its_end(tmp_path: Path) -> None:
    main = 'terraform {\n  backend "http" {}\n}\nresource "terraform_data" "web" { input = 1 }\n'
    repo = make_repo(tmp_path / "repo", {"stacks/onprem/web/main.tf": main})
    for name, value in (("user.name", "t"), ("user.email", "t@example.org")):
        repo.git("config", name, value)
    repo.run("apply", "stack:onprem/web", "--yes")
    reader = Reader(
        folder=repo.root,
        programs=tmp_path / "bin",
        env={"STACKYARD_TOFU": str(real_engine(Flavour.TOFU).path), "HOME": str(tmp_path)},
    )
    expected = iter(EXPECTED)
    for block, printed in reader.follow(PAGE):
        command, *words = next(expected)
        assert command in block.script
        assert [word for word in words if word not in printed] == [], f"{block.script}\n{printed}"
    assert next(expected, None) is None
