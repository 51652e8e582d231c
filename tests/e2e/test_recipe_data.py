"""What is wrong with the data of a recipe stack is refused, each with its line in the data file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.provider import lab_table
from tests.support.proxmox_recipe import STACK, make_recipe_repo
from tests.support.secrets import keyring
from tests.support.stack_repo import StackRepo

from stackyard import lab
from stackyard.secrets.vault.file import seal_whole

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(120)]

_TARGET = f"stack:{STACK}"
_GOOD = """\
resources = {
  web = {
    type      = "vm"
    node_name = "pve1"
    vm_config = { image_file_id = "local:import/debian.qcow2" }
    nodes     = { web-1 = { vm_id = 101 } }
  }
}
"""


@pytest.fixture(scope="module")
def running() -> Iterator[lab.Running]:
    with lab.running() as running:
        yield running


@pytest.fixture
def repo(tmp_path: Path, running: lab.Running) -> StackRepo:
    return make_recipe_repo(tmp_path / "repo", running, _GOOD)


def _write(repo: StackRepo, data: str) -> None:
    (repo.root / "tofu/stacks" / STACK / "vms.tfvars").write_text(data)
    repo.commit("data")


def _configs(running: lab.Running) -> dict[str, dict[str, Any]]:
    found = (one["config"] for one in lab_table(running, "guests").values())
    return {str(config.get("name") or config.get("hostname")): config for config in found}


def _refusals(repo: StackRepo, data: str, *, status: int = 1) -> dict[int, list[str]]:
    """Plan with other data; return what is refused in each line of the data file."""
    (repo.root / "tofu/stacks" / STACK / "vms.tfvars").write_text(data)
    error = repo.json("plan", _TARGET, status=status)["error"]
    found: dict[int, list[str]] = {}
    for one in error["diagnostics"]:
        if one["severity"] == "error":
            assert Path(one["where"]["file"]).name == "vms.tfvars", one
            found.setdefault(one["where"]["line"], []).append(one["detail"])
    return found


def _only(found: dict[int, list[str]]) -> dict[int, str]:
    assert [lines for lines in found.values() if len(lines) != 1] == []
    return {line: text for line, (text,) in found.items()}


def test_fields_that_opentofu_would_ignore_are_errors_with_their_lines(repo: StackRepo) -> None:
    data = """\
resources = {
  web = {
    type      = "vm"
    node_name = "pve1"
    vm_config = {
      cpu_core = 4
    }
    nodes = {
      web-1 = { vm_id = "many" }
      web-2 = {}
    }
  }
}
"""
    assert _only(_refusals(repo, data, status=65)) == {
        6: '`resources["web"].vm_config.cpu_core` is not in the type of the variable. '
        "Did you mean `cpu_cores` or `cpu_sockets`?",
        9: '`resources["web"].nodes["web-1"].vm_id` is a text, and it has to be a number.',
        10: '`resources["web"].nodes["web-2"]` has no `vm_id`.',
    }


def test_a_field_that_is_set_twice_is_an_error_with_its_line(repo: StackRepo) -> None:
    data = _GOOD.replace("    type ", "    ansible_groups = {}\n    ansible_groups = {}\n    type ")
    assert _only(_refusals(repo, data, status=65)) == {
        4: "`ansible_groups` is set in line 3 and again in line 4."
    }


def test_values_of_an_encrypted_file_are_compared_and_never_shown(repo: StackRepo) -> None:
    path = repo.root / "tofu/stacks" / STACK / "secrets.tfvars"

    def refuse(text: str, status: int) -> dict[str, Any]:
        path.write_bytes(seal_whole(text.encode(), keyring()))
        ended = repo.run("plan", _TARGET, "--json", status=status)
        assert "hunter2" not in ended.stdout + ended.stderr
        found = ended.document["error"]["diagnostics"][0]
        assert found["where"]["file"] == str(path)
        return dict(found)

    user = 'user_credentials = {\n  default_user = { username = "operator", %s = "hunter2-hunter2" }\n}\n'
    found = refuse(user % "pasword", 65)
    assert found["where"]["line"] == 2
    assert found["detail"].startswith('`user_credentials["default_user"].pasword` is not in the type')
    other = (
        'proxmox_connection = {\n  url = "https://a"\n  auth_method = "ticket"\n'
        '  token = { api_token = "b" }\n}\n'
    )
    found = refuse(user % "password" + other, 1)
    assert found["where"]["line"] == 6
    assert "exactly the block of that name is set" in found["detail"]


def test_everything_else_that_is_wrong_is_named_at_once_with_its_line(repo: StackRepo) -> None:
    data = """\
resources = {
  web = {
    type = "vm"
    nodes = {
      one = { vm_id = 101 }
      two = { vm_id = 101, node_name = "pve1" }
    }
  }
  dns = {
    type = "lxc"
    node_name = "pve1"
    lxc_config = {}
    vm_config = {}
    nodes = {
      one = {
        vm_id = 103
        cloud_init_user = "who"
        lxc_config = { ipv4_address = "10.0.0.5" }
      }
    }
  }
  odd = {
    type = "qemu"
    node_name = "pve1"
    nodes = { three = { vm_id = 5 } }
  }
  images = {
    type = "vm"
    node_name = "pve1"
    vm_config = {
      os_version = "1.0"
    }
    nodes = { four = { vm_id = 105 } }
  }
  nobody = { type = "vm", vm_config = {} }
}
"""
    found = _refusals(repo, data)
    assert sum(map(len, found.values())) == 12
    assert found[2] == [
        '`resources["web"].vm_config` is missing: the type "vm" needs it '
        "(`vm_config = {}` takes every default)."
    ]
    assert found[5] == [
        '`resources["web"].nodes["one"]` has the name of another host, `resources["dns"].nodes["one"]`.',
        '`resources["web"].nodes["one"]` has no Proxmox node: set `node_name`.',
    ]
    assert found[6] == [
        '`resources["web"].nodes["two"].vm_id` is 101, and so is `resources["web"].nodes["one"].vm_id`.'
    ]
    assert "needs either `template_file_id` or `template_url`" in found[12][0]
    assert found[13] == ['`resources["dns"].vm_config` does not belong to the type "lxc".']
    assert "`user_credentials` has no such user" in found[17][0]
    assert "an address with its mask" in found[18][0]
    assert found[23] == ['`resources["odd"].type` is "qemu": it has to be `vm` or `lxc`.']
    assert "a whole number from 100" in found[25][0]
    assert '`os_images` has no image "ubuntu-1.0"' in found[31][0]
    assert '`resources["nobody"].nodes` has no entry' in found[35][0]


def test_an_empty_map_is_no_plan_and_neither_are_both_forms_or_none(repo: StackRepo) -> None:
    assert "would destroy every guest" in _only(_refusals(repo, 'target_node = "pve1"\nresources = {}\n'))[2]
    both = _only(_refusals(repo, _GOOD + "resource_groups = {}\n"))
    assert both == {9: "`resource_groups` and `resources` are both set: keep one of the two."}
    (repo.root / "tofu/stacks" / STACK / "vms.tfvars").write_text('target_node = "pve1"\n')
    error = repo.json("plan", _TARGET, status=1)["error"]
    assert "Neither `resources` nor `resource_groups` is set" in error["diagnostics"][0]["detail"]


_OLD = """\
resource_groups = {
  web = {
    enabled              = true
    type                 = "qemu"
    template             = "ubuntu-24.04"
    hardware_profile_key = "small"
    tags                 = ["web"]
    nodes                = { w1 = { id = 201, ip = "192.168.0.21" } }
  }
  dns = {
    enabled              = true
    type                 = "lxc"
    template             = "http://download.proxmox.com/images/system/debian-13-standard_13.1-2_amd64.tar.zst"
    hardware_profile_key = "small"
    tags                 = []
    nodes                = { d1 = { id = 202, ip = "dhcp" } }
  }
  off = {
    enabled              = false
    type                 = "lxc"
    template             = "local:vztmpl/debian.tar.zst"
    hardware_profile_key = "small"
    tags                 = []
    nodes                = { o1 = { id = 203, ip = "dhcp" } }
  }
}
hardware_profiles = {
  qemu = { small = { cores = 2, memory = 1024, disk = 9 } }
  lxc  = { small = { cores = 1, memory = 256, disk = 3 } }
}
resource_defaults = { target_node = "pve1", storage_pool = "local-lvm", network_bridge = "vmbr0" }
network_defaults  = { gateway = "192.168.0.1", cidr_mask = 24 }
"""


_MOVED = """\
resources = {
  web = {
    type      = "vm"
    node_name = "pve1"
    tags      = ["web"]
    vm_config = { cpu_cores = 2, disk_size = 9 }
    nodes     = { w1 = { vm_id = 201, vm_config = { ipv4_address = "192.168.0.21/24" } } }
  }
  dns = {
    type      = "lxc"
    node_name = "pve1"
    lxc_config = {
      template_url = "http://download.proxmox.com/images/system/debian-13-standard_13.1-2_amd64.tar.zst"
      memory_size  = 256
      disk_size    = 3
    }
    nodes = { d1 = { vm_id = 202 } }
  }
}
"""


def test_the_older_form_is_checked_by_its_own_names(repo: StackRepo) -> None:
    data = _OLD.replace(
        '"small"\n    tags                 = ["web"]', '"huge"\n    tags                 = ["web"]'
    )
    data = data.replace("id = 202", "id = 201").replace('"ubuntu-24.04"', '"beos-5"')
    found = _only(_refusals(repo, data))
    assert found == {
        5: '`resource_groups["web"].template`: `os_images` has no image "beos-5".',
        6: '`resource_groups["web"].hardware_profile_key` is "huge", and `hardware_profiles.qemu` has no '
        "such profile.",
        8: '`resource_groups["web"].nodes["w1"].id` is 201, and so is '
        '`resource_groups["dns"].nodes["d1"].id`.',
    }
    wrong = _OLD.replace('"qemu"\n', '"vm"\n').replace("    tags                 = []\n", "", 1)
    assert _only(_refusals(repo, wrong, status=65)) == {10: '`resource_groups["dns"]` has no `tags`.'}


def test_the_older_form_makes_the_same_guests(repo: StackRepo, running: lab.Running) -> None:
    _write(repo, _OLD)
    assert repo.json("apply", _TARGET)["applied"]["add"] == 4
    repo.run("plan", _TARGET, "--detailed-exitcode")
    configs = _configs(running)
    assert configs["w1"]["ipconfig0"] == "gw=192.168.0.1,ip=192.168.0.21/24,ip6=dhcp"
    assert configs["w1"]["cores"] == 2
    assert "size=3G" in configs["d1"]["rootfs"]
    assert "o1" not in configs
    # The same guests in the newer form are the same resources.
    _write(repo, _MOVED)
    repo.run("plan", _TARGET, "--detailed-exitcode")


_INHERITED = """\
target_node = "pve1"
resources = {
  k3s = {
    type           = "vm"
    node_name      = "pve1"
    tags           = ["k3s", "lab"]
    ansible_groups = { "k8s-repo" = { channel = "stable", mirror = "a" }, k3s = { k3s_version = "v1.36" } }
    vm_config = {
      os_type          = "debian"
      os_version       = "12"
      cpu_cores        = 2
      additional_disks = [{ size = 1 }, { size = 2 }]
    }
    nodes = {
      i1 = { vm_id = 401 }
      i2 = {
        vm_id          = 402
        tags           = ["gpu"]
        description    = "the second"
        ansible_groups = { "k8s-repo" = { mirror = "b" } }
        vm_config      = { cpu_cores = 4, additional_disks = [{ size = 5 }] }
      }
      i3 = { vm_id = 403, enabled = false }
    }
  }
}
"""


def test_a_host_inherits_overrides_and_adds_as_documented(repo: StackRepo, running: lab.Running) -> None:
    _write(repo, _INHERITED)
    assert repo.json("apply", _TARGET)["applied"]["add"] == 3
    one, two = (_configs(running)[name] for name in ("i1", "i2"))
    assert "i3" not in _configs(running)
    assert [one["cores"], two["cores"]] == [2, 4]
    assert [one["tags"], two["tags"]] == ["k3s;lab;opentofu", "gpu;k3s;lab;opentofu"]
    assert [one["description"], two["description"]] == ["Managed by OpenTofu", "the second"]
    assert ["scsi2" in one, "scsi2" in two] == [True, False]
    assert "size=5G" in two["scsi1"]
    (published,) = (repo.root / ".stackyard/inventory.d").glob("*.yml")
    groups = yaml.safe_load(published.read_text())["all"]
    assert groups["children"]["k8s_repo"]["vars"] == {"channel": "stable"}
    assert groups["children"]["k3s"]["vars"] == {"k3s_version": "v1.36"}
    assert groups["children"]["gpu"]["hosts"] == {"i2": {}}
    assert groups["hosts"]["i2"]["mirror"] == "b"
    assert groups["hosts"]["i1"]["mirror"] == "a"
    assert groups["hosts"]["i1"]["ansible_user"] == "operator"
    assert "Password" not in published.read_text()
