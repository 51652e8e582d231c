"""The how-to page about the infrastructure of Talos clusters is true: its commands run, in order."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.pages import Reader

PAGE = "docs/howto/talos-infrastructure.md"
# What a reader looks for in what a block prints.
EXPECTED = (
    ("git init", "wrote infrastructure/secrets.sops.yaml", "wrote infrastructure/tofu/main.tf"),
    ("talos_version: 1.12.2", "nothing was written", "wrote infrastructure/tofu/terraform.tfvars"),
    ("--check", "would write infrastructure/tofu/terraform.tfvars", "1 file would change"),
    ("# mine", "E-CLUSTER-HAND-EDIT", "infrastructure/tofu/main.tf: it was edited"),
    ("--overwrite", "wrote infrastructure/tofu/main.tf"),
    ("pool.tf.j2", "wrote infrastructure/tofu/pool.tf", 'pool_id = "home"'),
    ("cluster split", "cluster.yaml has no secrets", "nothing was written"),
    ("nodes_count: 3", "Wrote home-1, home-2 to", "home is valid: 3 controllers, 0 workers"),
)


@pytest.mark.timeout(120)
def test_the_page_can_be_followed_from_its_start_to_its_end(tmp_path: Path) -> None:
    reader = Reader(folder=tmp_path, programs=tmp_path / "bin", env={})
    expected = iter(EXPECTED)
    command, *words = next(expected)
    for block, printed in reader.follow(PAGE):
        assert command in block.script
        missing = [word for word in words if word not in printed]
        assert missing == [], f"{block.script}\n{printed}"
        command, *words = next(expected, ("-",))
    assert command == "-"
