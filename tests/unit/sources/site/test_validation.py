"""Every defect of a site is found, at its place, all of them at once: nothing wrong is silently accepted."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.site import SEED, codes, findings, write_site

from stackyard.base.errors import FileError, InvalidInputError
from stackyard.sources.site import Site

DEV = SEED["envs/dev.yaml"]
SITE = SEED["site.yaml"]
SECRETS = SEED["secrets.yaml"]


def vm(more: str, *, head: str = "posture: dev\nvmid_base: 99900\n") -> str:
    """Return an env of one guest that says more than the seed's."""
    return f"{head}vms:\n  - name: test\n    template: test\n    {more}\n"


def two(first: str, second: str, *, head: str = "") -> str:
    """Return an env of two guests."""
    return (
        f"{head}vms:\n  - {{name: a, template: test, {first}}}\n  - {{name: b, template: test, {second}}}\n"
    )


# File, what it says instead, code, and line and column of the finding.
DEFECTS: dict[str, tuple[str, str, str, str]] = {
    # Types and keys.
    "a key nobody knows": ("envs/dev", vm("coers: 2"), "E-SITE-KEY", "6:5"),
    "a key nobody knows deep inside": ("envs/dev", vm("cpu: {sokets: 2}"), "E-SITE-KEY", "6:11"),
    "a key nobody knows in a list": ("envs/dev", vm("disks: [{sizeGb: 2}]"), "E-SITE-KEY", "6:14"),
    "a key nobody knows in site.yaml": ("site", "defaults: {time_zone: UTC}\n", "E-SITE-KEY", "1:12"),
    "a key nobody knows in a node": (
        "nodes/pve",
        SEED["nodes/pve.yaml"] + "datstore: x\n",
        "E-SITE-KEY",
        "4:1",
    ),
    "a key nobody knows in a posture": (
        "v2/postures/dev",
        "auth: {method: network}\nx: 1\n",
        "E-SITE-KEY",
        "2:1",
    ),
    "a key nobody knows in a spec": ("v2/specs/base", "schema_version: 1\nuser: []\n", "E-SITE-KEY", "2:1"),
    "a key nobody knows in a manifest": (
        "manifests/m",
        "schema_version: 2\nname: m\nnodes: [{}]\nonerror: stop\n",
        "E-SITE-KEY",
        "4:1",
    ),
    "a key given twice": ("envs/dev", DEV + "    disk: 30\n", "E-YAML-DUPLICATE-KEY", "9:5"),
    "a number as a text": ("envs/dev", vm('cores: "2"'), "E-SITE-VALUE", "6:12"),
    "a number with leading zeros": ("envs/dev", vm("vmid: 0100"), "E-SITE-VALUE", "6:11"),
    "a boolean as a number": ("envs/dev", vm("cores: yes"), "E-SITE-VALUE", "6:12"),
    "a text where a list is wanted": ("site", "defaults: {packages: htop}\n", "E-SITE-VALUE", "1:22"),
    "a list where a mapping is wanted": ("site", "defaults: []\n", "E-SITE-VALUE", "1:11"),
    "guests that are no list": ("envs/dev", "vms: {name: a}\n", "E-SITE-VALUE", "1:6"),
    "a guest without a name": ("envs/dev", "vms:\n  - template: test\n", "E-SITE-MISSING", "2:5"),
    "a guest with a name that is none": (
        "envs/dev",
        "vms:\n  - {name: A_b, template: test}\n",
        "E-SITE-VALUE",
        "2:12",
    ),
    "a node without a datastore": (
        "nodes/pve",
        "api_endpoint: https://localhost:8006\n",
        "E-SITE-MISSING",
        "1:1",
    ),
    "a node whose endpoint is none": (
        "nodes/pve",
        "api_endpoint: pve\ndatastore: x\n",
        "E-SITE-VALUE",
        "1:15",
    ),
    "a spec without its version": ("v2/specs/base", "access: {}\n", "E-SITE-MISSING", "1:1"),
    "a spec of another version": ("v2/specs/base", "schema_version: 2\n", "E-SITE-VALUE", "1:17"),
    "a spec with a version that is a boolean": (
        "v2/specs/base",
        "schema_version: yes\n",
        "E-SITE-VALUE",
        "1:17",
    ),
    "an address of a spec without its gateway": (
        "v2/specs/base",
        "schema_version: 1\nnetwork: {ip: 192.0.2.1/24}\n",
        "E-SITE-VALUE",
        "2:10",
    ),
    "a user of a spec twice": (
        "v2/specs/base",
        "schema_version: 1\naccess: {users: [{name: a}, {name: a}]}\n",
        "E-SITE-VALUE",
        "2:9",
    ),
    "a manifest without nodes": (
        "manifests/m",
        "schema_version: 2\nname: m\nnodes: []\n",
        "E-SITE-VALUE",
        "3:8",
    ),
    "a manifest of a version nobody knows": (
        "manifests/m",
        "schema_version: 3\nname: m\nnodes: [{}]\n",
        "E-SITE-VALUE",
        "1:17",
    ),
    "a preset that is not whole": ("vms/presets/small", "cores: 2\nmemory: 2048\n", "E-SITE-MISSING", "1:1"),
    "too little memory": ("vms/presets/small", "cores: 2\nmemory: 4\ndisk: 8\n", "E-SITE-VALUE", "2:9"),
    "two names of one setting that differ": (
        "site",
        "defaults: {ssh_user: a, host_user: b}\n",
        "E-SITE-VALUE",
        "1:11",
    ),
    "one thing said twice in one entry": (
        "envs/dev",
        vm("cores: 2\n    cpu: {cores: 3}"),
        "E-SITE-VALUE",
        "4:5",
    ),
    "a file that says nothing": ("envs/dev", "# later\n", "E-YAML-EMPTY", "1:1"),
    "a file that is no YAML": ("envs/dev", "vms: [\n", "E-YAML-SYNTAX", "2:1"),
    # References.
    "a template that is not there": (
        "envs/dev",
        "vms:\n  - {name: a, template: tset}\n",
        "E-SITE-REFERENCE",
        "2:25",
    ),
    "a preset that is not there": ("vms/test", "preset: smal\nimage: debian-12\n", "E-SITE-REFERENCE", "1:9"),
    "a preset of an entry that is not there": ("envs/dev", vm("preset: huge"), "E-SITE-REFERENCE", "6:13"),
    "a posture that is not there": (
        "envs/dev",
        DEV.replace("posture: dev", "posture: dve"),
        "E-SITE-REFERENCE",
        "1:10",
    ),
    "a spec that is not there": ("envs/dev", vm("spec: bass"), "E-SITE-REFERENCE", "6:11"),
    "a node of an env that is not there": ("envs/dev", "node: nope\n" + DEV, "E-SITE-REFERENCE", "1:7"),
    "a host that is not there": (
        "nodes/pve",
        SEED["nodes/pve.yaml"] + "host: mother\n",
        "E-SITE-REFERENCE",
        "4:7",
    ),
    "a parent that is not there": (
        "nodes/pve",
        SEED["nodes/pve.yaml"] + "parent_node: mother\n",
        "E-SITE-REFERENCE",
        "4:14",
    ),
    "a token that is not there": (
        "nodes/pve",
        SEED["nodes/pve.yaml"].replace("api_token: pve", "api_token: vpe"),
        "E-SITE-REFERENCE",
        "2:12",
    ),
    "a key of a user that is not there": (
        "v2/specs/base",
        "schema_version: 1\naccess: {users: [{name: a, ssh_keys: [three]}]}\n",
        "E-SITE-REFERENCE",
        "2:39",
    ),
    "a posture of a spec that is not there": (
        "v2/specs/base",
        "schema_version: 1\naccess: {posture: open}\n",
        "E-SITE-REFERENCE",
        "2:19",
    ),
    "an image that is not declared": ("envs/dev", vm("image: debian-11"), "E-SITE-IMAGE", "6:12"),
    "a network that is not declared": ("envs/dev", vm("network: dmz"), "E-SITE-REFERENCE", "6:14"),
    # Guests that are not whole, or contradict the model.
    "a guest without a size": ("envs/dev", "vms:\n  - {name: a, image: debian-12}\n", "E-SITE-GUEST", "2:12"),
    "a field that virtual machines do not have": (
        "envs/dev",
        vm("mounts: [{path: /a, volume: x, size_gib: 1}]"),
        "E-SITE-KEY",
        "6:13",
    ),
    "a disk that cannot be as it is": (
        "envs/dev",
        vm("disks: [{interface: sata0, iothread: true}]"),
        "E-SITE-VALUE",
        "6:13",
    ),
    "a container from an image of virtual machines": (
        "envs/dev",
        vm("type: ct\n    image: debian-13"),
        "E-SITE-IMAGE",
        "7:12",
    ),
    "guests that wait for each other": (
        "envs/dev",
        two("depends_on: [b]", "depends_on: [a]"),
        "E-SITE-CONTRADICTION",
        "2:43",
    ),
    # Ids and names.
    "two guests with one vmid": ("envs/dev", two("vmid: 100", "vmid: 100"), "E-SITE-VMID-TWICE", "3:37"),
    "a vmid that meets one that is counted": (
        "envs/dev",
        two("vmid: 501", "cores: 1", head="vmid_base: 500\n"),
        "E-SITE-VMID-TWICE",
        "4:5",
    ),
    "a vmid below the range": ("envs/dev", vm("vmid: 99"), "E-SITE-VALUE", "6:11"),
    "a vmid above the range": ("envs/dev", vm("vmid: 1000000000"), "E-SITE-VALUE", "6:11"),
    "a counted vmid above the range": (
        "envs/dev",
        two("cores: 1", "cores: 1", head="vmid_base: 999999999\n"),
        "E-SITE-VMID-RANGE",
        "4:5",
    ),
    "two guests with one name": (
        "envs/dev",
        "vms: [{name: a, template: test}, {name: a, template: test}]\n",
        "E-SITE-NAME-TWICE",
        "1:41",
    ),
    # Addresses.
    "an address that is none": ("envs/dev", vm("ip: 999.1.1.1/24"), "E-SITE-VALUE", "6:9"),
    "an address without a prefix": ("envs/dev", vm("ip: 10.0.12.5"), "E-SITE-VALUE", "6:9"),
    "an address with too long a prefix": ("envs/dev", vm("ip: 10.0.12.5/33"), "E-SITE-VALUE", "6:9"),
    "an address of the whole network": ("envs/dev", vm("ip: 10.0.12.0/24"), "E-SITE-ADDRESS", "6:9"),
    "an address of everybody": ("envs/dev", vm("ip: 10.0.12.255/24"), "E-SITE-ADDRESS", "6:9"),
    "an address used twice": (
        "envs/dev",
        two("ip: 10.0.12.5/24", "ip: 10.0.12.5/24"),
        "E-SITE-ADDRESS-TWICE",
        "3:35",
    ),
    "an address of a node": ("envs/dev", vm("ip: 10.0.12.61/24"), "E-SITE-ADDRESS-TWICE", "6:9"),
    "a gateway that is none": ("envs/dev", vm("gateway: gw"), "E-SITE-VALUE", "6:14"),
    "a gateway outside the network": (
        "envs/dev",
        vm("ip: 10.0.12.5/24\n    gateway: 10.0.13.1"),
        "E-SITE-GATEWAY",
        "7:14",
    ),
    "a gateway without a static address": ("envs/dev", vm("gateway: 10.0.12.1"), "E-SITE-GATEWAY", "6:14"),
    "a gateway that is the guest itself": (
        "envs/dev",
        vm("ip: 10.0.12.5/24\n    gateway: 10.0.12.5"),
        "E-SITE-ADDRESS-TWICE",
        "7:14",
    ),
    "a name server that is none": ("site", "defaults: {dns_servers: [ns1]}\n", "E-SITE-VALUE", "1:26"),
    # Secrets.
    "a node_token posture without its token": (
        "envs/dev",
        "posture: prod\nvms: [{name: nobody, template: test}]\n",
        "E-SITE-TOKEN",
        "2:14",
    ),
    "an API token that is none": (
        "secrets",
        SECRETS.replace("  pve: root@pam!tofu=", "  pve: "),
        "E-SITE-VALUE",
        "2:8",
    ),
    "a private key among the public ones": (
        "secrets",
        "ssh_keys:\n  one: |\n    -----BEGIN OPENSSH PRIVATE KEY-----\n",
        "E-SITE-VALUE",
        "2:8",
    ),
    "an auth method nobody knows": ("v2/postures/dev", "auth: {method: trust}\n", "E-SITE-VALUE", "1:16"),
    "a signing key that is none": ("secrets", SECRETS + "  signing_key: short\n", "E-SITE-VALUE", "13:16"),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_is_found_at_its_place(name: str, tmp_path: Path) -> None:
    file, text, code, place = DEFECTS[name]
    write_site(tmp_path, {**SEED, f"{file}.yaml": text})
    found = [(one.kind.code, str(one.where)) for one in Site.open(tmp_path).found.errors]
    assert (code, f"{tmp_path}/{file}.yaml:{place}") in found


@pytest.mark.parametrize("name", DEFECTS)
def test_a_site_with_a_defect_cannot_be_loaded(name: str, tmp_path: Path) -> None:
    file, text, code, _ = DEFECTS[name]
    with pytest.raises(InvalidInputError) as caught:
        Site.load(write_site(tmp_path, {**SEED, f"{file}.yaml": text}))
    assert code in [found.kind.code for found in caught.value.diagnostics]
    assert all(found.kind.remedy and found.where is not None for found in caught.value.diagnostics)


def test_the_sites_of_the_seed_and_of_today_have_nothing_wrong(tmp_path: Path) -> None:
    assert findings(write_site(tmp_path)) == []


def test_every_problem_of_every_file_is_reported_at_once(tmp_path: Path) -> None:
    write_site(
        tmp_path,
        site="defaults: {timezone: 7, gatway: x}\n",
        nodes__pve="api_endpoint: x\n",
        envs__a="vms: [{name: a, cores: x}]\n",
        envs__b="vms: [\n",
        v2__specs__base="schema_version: 1\naccess: {posture: nope}\n",
    )
    found = Site.open(tmp_path).found.errors
    files = [str(one.where).removeprefix(f"{tmp_path}/").partition(":")[0] for one in found]
    assert files == sorted(files)
    assert {"site.yaml", "nodes/pve.yaml", "envs/a.yaml", "envs/b.yaml", "v2/specs/base.yaml"} <= set(files)
    assert files.count("site.yaml") == 2


@pytest.mark.parametrize(
    ("file", "text", "hint"),
    [
        ("envs/dev", vm("coers: 2"), "`cores`"),
        ("envs/dev", vm("cpu: {sokets: 2}"), "`sockets`"),
        ("envs/dev", "vms: [{name: a, template: tset}]\n", "`test`"),
        ("envs/dev", vm("image: debian-21"), "`debian-12`"),
        ("site", "default: {}\n", "`defaults`"),
        ("site", "networks: {lan: {type: bridge, brige: vmbr0}}\n", "`bridge`"),
    ],
)
def test_a_mistyped_word_brings_the_one_that_was_meant(
    file: str, text: str, hint: str, tmp_path: Path
) -> None:
    details = [one.detail for one in findings(write_site(tmp_path, {**SEED, f"{file}.yaml": text}))]
    assert any(f"Did you mean {hint}" in detail or f"or {hint}" in detail for detail in details), details


def test_a_posture_that_asks_for_the_token_of_the_site_needs_it(tmp_path: Path) -> None:
    env = DEV.replace("posture: dev", "posture: stage")
    secrets = SECRETS.replace("  site_token: site-token-value\n", "")
    assert codes(write_site(tmp_path, envs__dev=env, secrets=secrets)) == ["E-SITE-TOKEN"]


def test_a_secret_is_never_quoted(tmp_path: Path) -> None:
    secrets = (
        "api_tokens: {pve: hunter2-hunter2}\nauth: {signing_key: hunter2x}\npasswords: {vm_root: [hunter2]}\n"
    )
    found = findings(write_site(tmp_path, secrets=secrets))
    assert len(found) >= 3
    assert "hunter2" not in "".join(one.detail for one in found)


def test_secrets_that_cannot_be_decrypted_are_an_error_and_never_no_secrets(tmp_path: Path) -> None:
    vault = "$ANSIBLE_VAULT;1.1;AES256\n36313263\n"
    found = Site.open(write_site(tmp_path, secrets=vault)).found.errors
    assert len(found) == 1
    assert str(found[0].where).startswith(f"{tmp_path}/secrets.yaml")
    assert found[0].kind.remedy


def test_the_encrypted_copy_of_old_counts_where_the_plain_file_is_not_there(tmp_path: Path) -> None:
    write_site(tmp_path, secrets=None)
    (tmp_path / "secrets.yaml.enc").write_text(SECRETS)
    site = Site.load(tmp_path)
    assert "pve" in site.secret_values.api_tokens


def test_a_blank_secret_of_a_fresh_site_is_absent_and_not_wrong(tmp_path: Path) -> None:
    secrets = SECRETS + '  signing_key: ""\n'
    assert Site.load(write_site(tmp_path, secrets=secrets)).secret_values.auth.signing_key is None


def test_two_envs_with_one_vmid_are_warned_of_and_refused_on_one_node(tmp_path: Path) -> None:
    other = DEV.replace("name: test", "name: other")
    warned = Site.open(write_site(tmp_path / "a", envs__other=other))
    assert [one.kind.code for one in warned.found] == ["W-SITE-VMID-SHARED"]
    on_one = {"envs__dev": "node: pve\n" + DEV, "envs__other": "node: pve\n" + other}
    assert codes(write_site(tmp_path / "b", **on_one)) == ["E-SITE-VMID-TWICE"]


def test_two_envs_with_one_address_are_warned_of_and_refused_on_one_node(tmp_path: Path) -> None:
    one = "vms: [{name: a, template: test, ip: 10.0.12.5/24}]\n"
    warned = Site.open(write_site(tmp_path / "a", envs__one=one, envs__two=one))
    assert [found.kind.code for found in warned.found] == ["W-SITE-ADDRESS-SHARED"]
    on_one = {"envs__one": "node: pve\n" + one, "envs__two": "node: pve\n" + one}
    assert codes(write_site(tmp_path / "b", **on_one)) == ["E-SITE-ADDRESS-TWICE"]


@pytest.mark.parametrize("name", ["envs/dev.yml", "envs/dev.YAML", "nodes/a b.yaml", "specs/-x.yaml"])
def test_a_file_that_would_not_be_read_is_found(name: str, tmp_path: Path) -> None:
    assert codes(write_site(tmp_path, {**SEED, name: "a: 1\n"})) == ["E-SITE-FILE-NAME"]


def test_a_folder_that_is_nearly_one_of_the_site_is_warned_of(tmp_path: Path) -> None:
    write_site(tmp_path, {**SEED, "env/x.yaml": "a: 1\n", "docs/y.yaml": "a: 1\n"})
    (found,) = findings(tmp_path)
    assert found.kind.code == "W-SITE-FOLDER"
    assert "`envs`" in found.detail


def test_folders_that_such_repositories_keep_beside_the_site_are_not_warned_of(tmp_path: Path) -> None:
    site = write_site(tmp_path)
    for name in ("tests", "defs", "docs", "scripts", "tls"):
        (site / name).mkdir()
    assert not findings(site)


def test_a_folder_inside_one_of_the_sites_is_warned_of(tmp_path: Path) -> None:
    (found,) = findings(write_site(tmp_path, {**SEED, "envs/prod/web.yaml": "a: 1\n"}))
    assert (found.kind.code, str(found.where)) == ("W-SITE-FOLDER", f"{tmp_path}/envs/prod")


def test_a_folder_that_cannot_be_read_is_an_error_and_not_an_empty_one(tmp_path: Path) -> None:
    write_site(tmp_path)
    loop = tmp_path / "manifests"
    for file in loop.iterdir():
        file.unlink()
    loop.rmdir()
    loop.symlink_to("manifests")
    with pytest.raises(FileError, match="manifests"):
        Site.open(tmp_path)


def test_one_thing_in_two_folders_is_refused_unless_both_say_the_same(tmp_path: Path) -> None:
    small = SEED["vms/presets/small.yaml"]
    assert codes(write_site(tmp_path / "a", presets__small=small)) == []
    assert codes(write_site(tmp_path / "b", presets__small=small.replace("2048", "4096"))) == ["E-SITE-TWICE"]
    assert codes(write_site(tmp_path / "c", specs__base=SEED["v2/specs/base.yaml"])) == ["E-SITE-TWICE"]


def test_a_posture_without_a_method_trusts_the_network_and_that_is_said(tmp_path: Path) -> None:
    (found,) = findings(write_site(tmp_path, v2__postures__dev=None))
    assert found.kind.code == "W-SITE-POSTURE-AUTH"


def test_the_two_forms_of_a_posture_that_disagree_are_warned_of(tmp_path: Path) -> None:
    nested = SEED["v2/postures/prod.yaml"].replace("enabled: true", "enabled: false")
    (found,) = findings(write_site(tmp_path, v2__postures__prod=nested))
    assert found.kind.code == "W-SITE-POSTURE-TWICE"
    assert str(found.where).endswith("postures/prod.yaml:3:19")


def test_a_run_of_a_spec_that_nothing_acts_upon_is_warned_of(tmp_path: Path) -> None:
    (found,) = findings(write_site(tmp_path, v2__specs__base="schema_version: 1\nrun: {trigger: manual}\n"))
    assert found.kind.code == "W-SITE-SPEC-RUN"


def test_yes_without_quotes_is_the_word_in_a_posture(tmp_path: Path) -> None:
    nested = SEED["v2/postures/dev.yaml"].replace('"yes"', "yes")
    flat = SEED["postures/dev.yaml"].replace('"yes"', "yes")
    assert findings(write_site(tmp_path, v2__postures__dev=nested, postures__dev=flat)) == []


def test_the_sites_gateway_does_not_pass_for_a_guest_that_it_cannot_serve(tmp_path: Path) -> None:
    site = SITE + "  gateway: 10.0.12.1\n"
    env = vm("ip: 10.9.0.5/24")
    assert codes(write_site(tmp_path / "a", site=site, envs__dev=env)) == ["E-SITE-GATEWAY"]
    none = vm("ip: 10.9.0.5/24\n    gateway: null")
    assert codes(write_site(tmp_path / "b", site=site, envs__dev=none)) == []


def test_ipv6_addresses_are_addresses(tmp_path: Path) -> None:
    env = vm("ip: 2001:db8::5/64\n    gateway: 2001:db8::1")
    assert codes(write_site(tmp_path, envs__dev=env)) == []


def test_secrets_that_are_left_blank_are_not_there(tmp_path: Path) -> None:
    secrets = SECRETS.replace("api_tokens:", 'api_tokens:\n  other: ""').replace(
        "passwords:", 'passwords:\n  spare: ""'
    )
    values = Site.load(write_site(tmp_path, secrets=secrets)).secret_values
    assert "other" not in values.api_tokens
    assert "spare" not in values.passwords
    assert values.api_tokens
    assert values.passwords
