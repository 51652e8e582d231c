"""Stacks are found by convention, named, ordered; one that is wrong never stops the others."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.stacks import repository, write

from stackyard.base.diagnostics import in_full
from stackyard.base.errors import InvalidInputError
from stackyard.sources.stacks.facts import read_facts
from stackyard.sources.stacks.order import StackCycleError
from stackyard.sources.stacks.repository import NoStacksError, StackNotFoundError, find_stacks

CODE = "locals { a = 1 }\n"


def test_stacks_are_found_without_a_file_of_ours(tmp_path: Path) -> None:
    found = repository(
        tmp_path,
        {
            "stacks/onprem/proxmox_server_A_gpu/main.tf": CODE,
            "stacks/aws/main.tofu": CODE,
            "stacks/modules/vm/main.tf": CODE,
            "stacks/.hidden/main.tf": CODE,
            "tofu/stacks/cloud/a/main.tf.json": "{}",
            "tofu/modules/b/main.tf": CODE,
            "infrastructure/02-platforms/k8s/main.tf": CODE,
            "infrastructure/01-hypervisors/02-srv01/main.tf": CODE,
            "infrastructure/10-last/z/main.tofu.json": "{}",
            "infrastructure/modules/talos/main.tf": CODE,
            "infrastructure/notes/main.tf": CODE,
        },
    )
    assert {name: (stack.path, stack.layer) for name, stack in found.stacks.items()} == {
        "01-hypervisors/02-srv01": ("infrastructure/01-hypervisors/02-srv01", "01-hypervisors"),
        "02-platforms/k8s": ("infrastructure/02-platforms/k8s", "02-platforms"),
        "10-last/z": ("infrastructure/10-last/z", "10-last"),
        "aws": ("stacks/aws", ""),
        "cloud/a": ("tofu/stacks/cloud/a", ""),
        "onprem/proxmox_server_A_gpu": ("stacks/onprem/proxmox_server_A_gpu", ""),
    }
    assert found.layers == ("01-hypervisors", "02-platforms", "10-last")
    assert found.graph().levels == (
        ("01-hypervisors/02-srv01", "aws", "cloud/a", "onprem/proxmox_server_A_gpu"),
        ("02-platforms/k8s",),
        ("10-last/z",),
    )


def test_the_repository_is_found_upwards(tmp_path: Path) -> None:
    write(tmp_path, {"stacks/a/main.tf": CODE})
    assert find_stacks(tmp_path / "stacks" / "a").root == tmp_path
    with pytest.raises(NoStacksError):
        find_stacks(tmp_path / "missing")


def test_no_stacks_are_an_error(tmp_path: Path) -> None:
    write(tmp_path, {"stackyard.yaml": "layers: []\n", "main.tf": CODE})
    with pytest.raises(NoStacksError, match="no folder with OpenTofu code"):
        find_stacks(tmp_path)


def test_stackyard_yaml_sets_roots_layers_and_defaults(tmp_path: Path) -> None:
    found = repository(
        tmp_path,
        {
            "stackyard.yaml": (
                "roots: [live]\nlayers: [net, 'app-*']\npolicy: [rules]\n"
                "defaults:\n  tags: [all]\n  engine: tofu\n"
            ),
            "rules/a.rego": "package a\n",
            "live/net/main.tf": CODE,
            "live/app-one/web/main.tf": CODE,
            "live/app-one/web/stack.yaml": "tags: [web]\nprotected: true\n",
            "stacks/ignored/main.tf": CODE,
        },
    )
    assert {name: stack.layer for name, stack in found.stacks.items()} == {
        "app-one/web": "app-*",
        "net": "net",
    }
    web, net = found.stacks["app-one/web"].settings, found.stacks["net"].settings
    assert (web.tags, web.protected, web.engine) == (("web",), True, "tofu")
    assert (net.tags, net.protected, net.policy) == (("all",), False, (tmp_path / "rules",))
    assert found.graph().predecessors("app-one/web") == ("net",)


def test_stack_yaml_says_everything(tmp_path: Path) -> None:
    found = repository(
        tmp_path,
        {
            "stacks/a/main.tf": CODE,
            "stacks/b/main.tf": CODE,
            "stacks/c/main.tf": CODE,
            "common/x.tfvars": "",
            "domains/a.json": "{}",
            "stacks/b/s.tfvars": "",
            "stacks/b/stack.yaml": (
                "after:\n  - a\n  - {stack: c, outputs: {vm_id: id, name: name}}\n"
                "var_files: [../../common/x.tfvars]\nsecrets: [s.tfvars]\nbackend_config: [s.tfvars]\n"
                "domains: ../../domains\nwatch: ['x/**']\nengine: terraform\n"
            ),
        },
    )
    settings = found.stacks["b"].settings
    assert [(one.stack, dict(one.outputs)) for one in settings.after] == [
        ("a", {}),
        ("c", {"vm_id": "id", "name": "name"}),
    ]
    assert settings.var_files == (tmp_path / "common/x.tfvars",)
    assert settings.secrets == settings.backend_config == (tmp_path / "stacks/b/s.tfvars",)
    assert (settings.domains, settings.engine) == (tmp_path / "domains", "terraform")


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("afer: [a]\ntag: 1\n", ["`afer` is not known here. Did you mean `after`?", "`tag` is not known"]),
        ("after: a\n", ["`after` has to be a list"]),
        ("engine: pulumi\n", ["`engine` has to be 'tofu' or 'terraform'"]),
        ("after: [nope]\n", ["There is no stack `nope`."]),
        ("before: [stackA]\n", ["There is no stack `stackA`. Did you mean `stack_a`?"]),
        ("after: [broken]\n", ["names itself"]),
        ("var_files: [missing.tfvars]\n", ["There is no file `missing.tfvars`."]),
        ("after: [\n", ["YAML says"]),
    ],
)
def test_a_wrong_stack_yaml_stops_its_stack_alone(tmp_path: Path, text: str, problems: list[str]) -> None:
    found = repository(
        tmp_path,
        {"stacks/broken/main.tf": CODE, "stacks/broken/stack.yaml": text, "stacks/stack_a/main.tf": CODE},
    )
    assert list(found.stacks) == ["stack_a"]
    said = in_full(found.broken["broken"])
    assert all(problem in said for problem in problems), said
    assert "stack.yaml:" in said
    with pytest.raises(InvalidInputError):
        found.find("broken")
    with pytest.raises(StackNotFoundError, match="Did you mean `stack_a`"):
        found.find("stack_b")


def test_a_wrong_stackyard_yaml_names_every_problem(tmp_path: Path) -> None:
    write(tmp_path, {"stacks/a/main.tf": CODE, "stackyard.yaml": "rots: [x]\ndefaults: {tgs: [a]}\n"})
    with pytest.raises(InvalidInputError) as caught:
        find_stacks(tmp_path)
    said = in_full(caught.value)
    assert "Did you mean `roots`" in said
    assert "Did you mean `tags`" in said
    write(tmp_path, {"stackyard.yaml": "roots: [nowhere]\n"})
    with pytest.raises(InvalidInputError) as caught:
        find_stacks(tmp_path)
    assert "stackyard.yaml:1:" in in_full(caught.value)


def test_a_circle_names_its_files(tmp_path: Path) -> None:
    found = repository(
        tmp_path,
        {
            "stacks/a/main.tf": CODE,
            "stacks/b/main.tf": CODE,
            "stacks/a/stack.yaml": "after: [b]\n",
            "stacks/b/stack.yaml": "# first\nafter: [a]\n",
        },
    )
    with pytest.raises(StackCycleError, match=r"stacks/a/stack\.yaml:1.*stacks/b/stack\.yaml:2"):
        found.graph()


def test_a_stack_inside_a_stack_is_refused_and_its_own_module_is_not(tmp_path: Path) -> None:
    found = repository(
        tmp_path,
        {
            "stacks/a/main.tf": CODE,
            "stacks/a/inner/main.tf": CODE,
            "stacks/b/main.tf": 'module "m" { source = "./lib" }\n',
            "stacks/b/lib/main.tf": CODE,
            "stacks/b/modules/x/main.tf": CODE,
            "stacks/b/.terraform/modules/y/main.tf": CODE,
        },
    )
    assert list(found.stacks) == ["b"]
    assert "stacks/a/inner" in found.broken["a"].detail
    assert "`a` (stacks/a)" in found.broken["a"].detail


def test_odd_names_and_links_are_refused_by_name(tmp_path: Path) -> None:
    names = ["with space", "umläut", "new\nline", "-dash"]
    write(tmp_path, {f"stacks/{name}/main.tf": CODE for name in [*names, "good"]})
    (tmp_path / "stacks" / "linked").symlink_to("good")
    (tmp_path / "stacks" / "loop").symlink_to("loop")
    (tmp_path / "stacks" / "up").symlink_to("..")
    found = find_stacks(tmp_path)
    assert list(found.stacks) == ["good"]
    assert set(found.broken) == {*names, "linked"}


def test_two_folders_of_one_name_are_refused(tmp_path: Path) -> None:
    found = repository(
        tmp_path, {"stacks/a/main.tf": CODE, "tofu/stacks/a/main.tf": CODE, "stacks/b/b.tf": CODE}
    )
    assert list(found.stacks) == ["b"]
    assert "stacks/a and tofu/stacks/a" in found.broken["a"].detail


def test_broken_code_is_a_problem_of_its_stack_alone(tmp_path: Path) -> None:
    found = repository(
        tmp_path, {"stacks/a/main.tf": 'locals {\n  a = \n}\nvariable "x" {}\n', "stacks/b/main.tf": CODE}
    )
    facts = read_facts(found, found.stacks["a"])
    assert str(facts.problems[0].where).startswith("stacks/a/main.tf:")
    assert facts.unresolved
    assert "x" in facts.variables
    assert read_facts(found, found.stacks["b"]).problems == ()


def test_ten_megabytes_of_values_are_no_code(tmp_path: Path) -> None:
    files = {"stacks/a/main.tf": 'locals { a = file("${var.x}") }\nvariable "x" { default = "y" }\n'}
    write(tmp_path, {**files, "stacks/a/big.tfvars": "a = 1\n" * 1_700_000})
    found = find_stacks(tmp_path)
    assert [one.text for one in read_facts(found, found.stacks["a"]).unresolved] == ['file("${var.x}")']


def test_a_folder_with_the_mark_of_workspaces_in_its_name_is_no_stack(tmp_path: Path) -> None:
    found = repository(tmp_path, {"stacks/a/main.tf": CODE, "stacks/a@b/main.tf": CODE})
    assert list(found.stacks) == ["a"]
    assert "stacks/a@b" in in_full(found.broken["a@b"])
