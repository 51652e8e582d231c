"""Networks and pools of site.yaml: which hypervisor has them, and what it is called."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.cli import stackyard
from tests.support.site import write_site

from stackyard.base.errors import InvalidInputError, UsageError
from stackyard.cli.runs.hypervisors import list_files
from stackyard.guard import Cluster
from stackyard.guard.cluster_names import ask_cluster_names, find_cluster_names
from stackyard.guard.declared import BRIDGE, POOL, STORAGE
from stackyard.guard.facts import Facts
from stackyard.guard.implied import ImpliedCalls
from stackyard.path.declared_objects import list_declared
from stackyard.path.environment import NoTokenError
from stackyard.path.hypervisor import HypervisorSource, SharedSource
from stackyard.path.target import Source, find_target
from stackyard.sources.site import ConfigResolver, Site
from stackyard.sources.site.hypervisor_owners import find_owners, list_implied
from stackyard.sources.site.resolver import NotInSiteError

NODE = "api_endpoint: https://192.0.2.{0}:8006\ndatastore: local\nnode: pve{0}\n"
SITE = {
    "site.yaml": """networks:
  inner: {type: bridge, bridge: vmbr7, create: true}
  lan: {type: simple, zone: zone1, cidr: 10.66.0.0/24}
  old: {type: bridge, bridge: vmbr0}
pools:
  apps: {comment: all of it}
""",
    "nodes/one.yaml": NODE.format(1),
    "nodes/two.yaml": NODE.format(2),
    "secrets.yaml": "api_tokens:\n  one: a@pve!b=cdef\n  two: a@pve!b=cdef\n",
}
CLUSTER = {
    "hypervisors/home.yaml": "api: one\nstorages:\n  fast: {type: lvmthin, volume_group: a, thin_pool: b}\n"
}
OF_NODE = {"hypervisors/first.yaml": "node: pve1\ndns: {domain: home.arpa}\n"}


def resolver(folder: Path, *files: dict[str, str]) -> ConfigResolver:
    whole = dict(SITE)
    for some in files:
        whole |= some
    return ConfigResolver(write_site(folder, whole))


def test_without_files_a_node_has_everything_and_needs_none(tmp_path: Path) -> None:
    source = HypervisorSource(resolver(tmp_path))
    assert (source.names(), source.implied_names()) == ([], ["one", "two"])
    sources: dict[str, Source] = {source.kind: source}
    assert find_target("hypervisor:one", sources) == (source, "one")
    with pytest.raises(UsageError):
        # A bare name is that of an env, a manifest or a file.
        find_target("one", sources)
    found = source.resolve("one", None)
    assert found.target.state_name == "hypervisor/one/one"
    assert [(one.node, one.name) for one in found.desired.bridges] == [("pve1", "vmbr7")]
    assert (len(found.desired.pools), len(found.desired.zones)) == (1, 1)
    assert [one.owner.state_name for one in found.former] == ["site/shared/one"]
    shared = SharedSource(source.resolver).resolve("shared", "one")
    assert (shared.target, shared.desired) == (found.target, found.desired)


def test_a_node_without_a_file_gets_its_token_with_a_login(tmp_path: Path) -> None:
    without = {"secrets.yaml": "api_tokens:\n  one: a@pve!b=cdef\n"}
    source = HypervisorSource(resolver(tmp_path, OF_NODE, without))
    with pytest.raises(NoTokenError) as caught:
        source.resolve("two", None)
    assert "stackyard apply hypervisor:two --login root@pam" in caught.value.remedy
    login = source.resolve_login("two", None)
    assert (str(login.target), login.endpoint) == ("hypervisor:two", "https://192.0.2.2:8006")
    assert login.store == "two"
    assert login.desired.is_empty
    assert source.find_token_file(login.store) is None
    with pytest.raises(NotInSiteError):
        source.resolve_login("gone", None)


def test_files_have_what_is_theirs_and_take_it_over_from_the_node(tmp_path: Path) -> None:
    source = HypervisorSource(resolver(tmp_path, CLUSTER, OF_NODE))
    assert source.implied_names() == ["two"]
    whole, first, two = (source.resolve(name, None) for name in ("home", "first", "two"))
    assert (len(whole.desired.pools), whole.desired.bridges, len(whole.desired.objects)) == (1, (), 1)
    assert (first.desired.pools, len(first.desired.bridges), len(first.desired.objects)) == ((), 1, 1)
    assert (two.desired.pools, [one.node for one in two.desired.bridges]) == ((), ["pve2"])
    from_states = {one.owner.state_name for one in whole.former if one.cluster_wide}
    assert from_states == {
        "site/shared/one",
        "site/shared/two",
        "hypervisor/one/one",
        "hypervisor/two/two",
        "hypervisor/first/first",
    }
    assert {one.owner.state_name for one in first.former} == {"site/shared/one", "hypervisor/one/one"}
    assert [(one.target, one.interfaces) for one in first.successors] == [("hypervisor:home", False)]
    assert [(one.target, one.interfaces) for one in two.successors] == [("hypervisor:home", False)]
    assert whole.successors == ()
    with pytest.raises(UsageError, match="two hypervisors: `hypervisor:first` and `hypervisor:home`"):
        SharedSource(source.resolver).resolve("shared", "one")


def test_two_places_say_the_same_or_both_are_named(tmp_path: Path) -> None:
    same = {"hypervisors/home.yaml": "pools:\n  apps: {comment: all of it}\n"}
    found = HypervisorSource(resolver(tmp_path / "a", same)).resolve("home", "one")
    assert (found.desired.pools, [one.key.name for one in found.desired.objects]) == ((), ["apps"])
    other = {
        "hypervisors/home.yaml": "pools:\n  apps: {comment: other}\n",
        "hypervisors/first.yaml": "node: pve1\nbridges:\n  vmbr7: {mtu: 9000}\n",
    }
    source = HypervisorSource(resolver(tmp_path / "b", other))
    for name, attribute in (("home", "comment"), ("first", "mtu")):
        with pytest.raises(InvalidInputError) as caught:
            source.resolve(name, "one")
        (finding,) = caught.value.diagnostics
        assert finding.kind.code == "E-HYPERVISOR-TWO-PLACES"
        assert f"in {attribute}." in finding.detail
        assert finding.where is not None
        assert finding.where.path.endswith(f"hypervisors/{name}.yaml")
        assert [one.path.endswith("site.yaml") for one in finding.also] == [True]
    # `site validate` reports both at once, as findings of the site.
    ended = stackyard("site", "validate", "--site", str(tmp_path / "b"), "--json")
    reported = [one["code"] for one in ended.document["error"]["diagnostics"]]
    assert reported.count("E-HYPERVISOR-TWO-PLACES") == 2
    assert stackyard("site", "validate", "--site", str(tmp_path / "a")).status == 0


def test_a_file_that_cannot_be_read_stops_every_owner(tmp_path: Path) -> None:
    source = HypervisorSource(resolver(tmp_path, OF_NODE, {"hypervisors/home.yaml": "storagess: {}\n"}))
    for name in ("first", "two"):
        with pytest.raises(InvalidInputError):
            source.resolve(name, None)


def test_what_is_declared_and_not_there_names_its_target(tmp_path: Path) -> None:
    declared = list_declared(resolver(tmp_path, CLUSTER, OF_NODE).site)
    said = declared.explain(BRIDGE, "vmbr7", "pve1", ["vmbr0"])
    assert said.endswith("stackyard apply hypervisor:first")
    assert declared.explain(BRIDGE, "vmbr7", "pve2", []).endswith("stackyard apply hypervisor:two")
    assert declared.explain(BRIDGE, "lan", "pve2", []).endswith("stackyard apply hypervisor:home")
    assert declared.explain(STORAGE, "fast", "pve1", []).endswith("stackyard apply hypervisor:home")
    assert declared.explain(POOL, "aps", "pve1", []) == " Did you mean `apps`?"
    assert declared.explain(BRIDGE, "vmbr1", "pve9", ["vmbr10"]) == " Did you mean `vmbr10`?"


def test_a_node_that_uses_what_its_cluster_has_not_is_refused_by_name(tmp_path: Path) -> None:
    let_in = "type: in, action: ACCEPT"
    group = f"firewall:\n  groups:\n    web: {{rules: [{{{let_in}, macro: HTTP}}]}}\n"
    cluster = {"hypervisors/home.yaml": group}
    ends = ("source: +trusted", "source: deskt, dest: +management")
    rules = "".join(f"    - {{{let_in}, {end}}}\n" for end in ends)
    used = f"node: pve1\nfirewall:\n  rules:\n    - {{security_group: web}}\n{rules}"
    node = {"hypervisors/first.yaml": used}
    found = HypervisorSource(resolver(tmp_path, cluster, node)).resolve("first", None)
    implied = ImpliedCalls(desired=found.desired, declared=found.declared())
    empty = Cluster(nodes=(), storages=(), guests=())
    reads = frozenset(ask_cluster_names(implied, empty))
    answers = {one: [{"name": "desktop"}] if one.path.endswith("aliases") else [] for one in reads}
    details = [one.detail for one in find_cluster_names(implied, Facts(cluster=empty, answers=answers))]
    assert [one.partition(" uses ")[2] for one in details] == [
        "the security group web; the cluster has none. hypervisor:home declares it, and was not applied "
        "since: stackyard apply hypervisor:home",
        "the IP set trusted; the cluster has none.",
        "the alias deskt; the cluster has desktop. Did you mean `desktop`?",
    ]
    unanswered = Facts(cluster=empty, unanswered=dict.fromkeys(reads, "403"))
    assert list(find_cluster_names(implied, unanswered)) == []


def test_nodes_of_two_clusters_with_one_name_keep_what_is_theirs(tmp_path: Path) -> None:
    endpoint = "api_endpoint: https://192.0.2.{}:8006\ndatastore: local-lvm\nnode: pve\n"
    root = write_site(
        tmp_path,
        {
            "site.yaml": "networks:\n  lab: {bridge: vmbr7, create: true}\n",
            "nodes/a.yaml": endpoint.format(1),
            "nodes/b.yaml": endpoint.format(2),
            "hypervisors/a.yaml": "node: pve\ntime: Europe/Vienna\n",
        },
    )
    site = Site.open(root)
    assert find_owners(site, "a").interfaces == "a"
    assert find_owners(site, "b").interfaces == "b"
    assert list_implied(site) == ["b"]


def test_a_file_may_say_the_name_of_the_file_of_its_node(tmp_path: Path) -> None:
    bridges = {"hypervisors/first.yaml": "node: one\nbridges: {vmbr9: {}}\n"}
    source = HypervisorSource(resolver(tmp_path, CLUSTER, bridges))
    found = source.resolve("first", None)
    (bridge,) = found.desired.objects
    # What Proxmox calls it.
    assert bridge.attributes["node_name"] == "pve1"
    assert [one.node for one in found.desired.bridges] == ["pve1"]
    assert source.implied_names() == ["two"]
    declared = list_declared(source.resolver.site)
    assert declared.explain(BRIDGE, "vmbr9", "pve1", []).endswith("stackyard apply hypervisor:first")


def test_each_of_two_nodes_of_a_name_is_reached_by_its_own_api(tmp_path: Path) -> None:
    nodes = {
        f"nodes/{name}.yaml": NODE.format(1).replace("192.0.2.1", f"192.0.2.{number}")
        for name, number in (("one", 1), ("two", 2))
    }
    own = {
        "hypervisors/two.yaml": "node: pve1\nbridges: {vmbr8: {}}\n",
        "hypervisors/other.yaml": "node: one\nbridges: {vmbr8: {}}\n",
        "hypervisors/far.yaml": "api: two\ngroups: {all: {}}\n",
    }
    source = HypervisorSource(resolver(tmp_path, nodes, own))
    reached = {name: source.resolve(name, None) for name in ("two", "other", "far")}
    assert {name: one.connection.endpoint for name, one in reached.items()} == {
        "two": "https://192.0.2.2:8006",
        "other": "https://192.0.2.1:8006",
        "far": "https://192.0.2.2:8006",
    }
    assert {one.attributes["node_name"] for one in reached["other"].desired.objects} == {"pve1"}
    site = source.resolver.site
    assert [find_owners(site, name).interfaces for name in ("one", "two")] == ["other", "two"]


def test_nodes_belong_to_the_cluster_whose_token_or_api_they_have(tmp_path: Path) -> None:
    nodes = {
        f"nodes/{name}.yaml": f"{NODE.format(number)}api_token: {token}\n"
        for number, name, token in (
            (1, "one", "west"),
            (2, "two", "west"),
            (3, "three", "x"),
            (4, "four", "y"),
        )
    }
    nodes["nodes/five.yaml"] = NODE.format(3).replace("node: pve3", "node: pve5")
    clusters = {f"hypervisors/{name}.yaml": f"api: {node}\n" for name, node in (("w", "one"), ("e", "three"))}
    own = {"hypervisors/second.yaml": "node: two\n", "hypervisors/fourth.yaml": "node: four\n"}
    site = resolver(tmp_path, nodes, clusters, own).site
    owners = {name: find_owners(site, name).cluster_wide for name in sorted(site.nodes)}
    assert owners == {"one": "w", "two": "w", "three": "e", "five": "e", "four": "fourth"}
    assert list_files(site, "w") == ("w", "second")


def test_a_name_that_two_nodes_have_does_not_choose_one(tmp_path: Path) -> None:
    nodes = {"nodes/two.yaml": NODE.format(2).replace("pve2", "pve1")}
    files = {
        "hypervisors/first.yaml": "node: pve1\ntime: Europe/Vienna\n",
        "hypervisors/home.yaml": "api: pve1\ngroups: {all: {}}\n",
    }
    write_site(tmp_path, {**SITE, **nodes, **files})
    ended = stackyard("site", "validate", "--site", str(tmp_path), "--json")
    found = [one for one in ended.document["error"]["diagnostics"] if one["code"] == "E-HYPERVISOR-NODES"]
    assert [Path(one["where"]["file"]).name for one in found] == ["first.yaml", "home.yaml"]
    assert found[0]["detail"] == "2 nodes are called 'pve1': one, two of nodes/."


def test_a_node_without_a_file_is_explained_by_site_yaml(tmp_path: Path) -> None:
    folder = resolver(tmp_path, OF_NODE).site.root
    ended = stackyard("explain", "hypervisor:two", "--site", str(folder), "--json")
    assert ended.status == 0, ended.stderr
    values = {(one["section"], one["key"]): one for one in ended.document["values"]}
    assert values["node", "node"]["value"] == "pve2"
    bridge = values["bridge vmbr7 on pve2", "name"]
    assert (bridge["value"], Path(bridge["file"]).name, bridge["line"]) == ("vmbr7", "site.yaml", 2)
    assert [one["name"] for one in ended.document["desired"]["bridges"]] == ["vmbr7"]
    # A file has its values first, and then those of site.yaml.
    first = stackyard("explain", "hypervisor:first", "--site", str(folder), "--json").document
    assert {one["section"] for one in first["values"]} >= {"node", "bridge vmbr7 on pve1"}
    assert stackyard("explain", "hypervisor:none", "--site", str(folder)).status == 65
