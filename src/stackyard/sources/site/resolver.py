"""What others need of a site: variables for OpenTofu and Ansible, hosts, specs, and the `Desired` model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base import events
from stackyard.base.diagnostics import Diagnostics
from stackyard.base.errors import InvalidInputError
from stackyard.base.files import replace_file
from stackyard.base.suggestions import did_you_mean
from stackyard.desired import Desired, Secrets
from stackyard.sources.site.build import build_desired, build_shared
from stackyard.sources.site.build_guest import NodeChoice
from stackyard.sources.site.entities.postures import AuthMethod
from stackyard.sources.site.hosts import HostConfig, resolve_host
from stackyard.sources.site.layers import vmid_of
from stackyard.sources.site.load import Site
from stackyard.sources.site.postures import Posture, posture_of
from stackyard.sources.site.scope import (
    divide,
    files_of_env,
    files_of_host,
    files_of_shared,
    files_of_spec,
    report_unused,
)
from stackyard.sources.site.specs import join_lists, resolve_spec, spec_variables

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from stackyard.base.diagnostics import Diagnostic
    from stackyard.sources.site.entities.envs import EnvFile
    from stackyard.sources.site.layers import GuestEntry
    from stackyard.sources.site.networks import Networks
    from stackyard.sources.site.scope import File
    from stackyard.sources.site.tree import LoadedFile

__all__ = ["ConfigResolver", "NodeNotChosenError", "NotInSiteError"]


class NotInSiteError(InvalidInputError):
    """A name was asked for that the site does not have."""

    code = "E-SITE-UNKNOWN"
    summary = "The site has nothing of that name"
    default_remedy = "`stackyard site list` shows what there is."


class NodeNotChosenError(InvalidInputError):
    """It was not said on which node an env should be, and the site has several."""

    code = "E-SITE-NODE"
    summary = "No node is chosen"
    default_remedy = "Name it with --host NODE, or write `node: NODE` into the env."


class ConfigResolver:
    """Resolves a site.

    What is asked for is refused where something is wrong with the files that it uses. What is wrong with
    others stops nothing, and is reported.

    Args:
        site: A site, or its folder; found as `find_site` does when absent.
        emit: Takes what is wrong with files that are not used, each once.

    Raises:
        SiteNotFoundError: There is none.
        InvalidInputError: Something is wrong with site.yaml or the secrets, which everything uses.
    """

    def __init__(self, site: Site | str | Path | None = None, *, emit: events.Emit = events.ignore) -> None:
        self.site = site if isinstance(site, Site) else Site.open(site)
        self._emit = emit
        self._reported: set[Diagnostic] = set()
        divide(self.site, ())[0].raise_errors(f"The site {self.site.root}")

    def require(self, what: str, used: Collection[File]) -> None:
        """Refuse what uses files that have problems.

        Args:
            what: What uses them, as the start of a sentence ("The env 'dev'").
            used: The files, as `stackyard.sources.site.scope` finds them.

        Raises:
            InvalidInputError: There are problems; the error carries every one.
        """
        if self.site.found.errors:
            divide(self.site, used)[0].raise_errors(what)

    def report_others(self) -> None:
        """Report the problems of files that are not used, once everything that is used was required."""
        new = [finding for finding in self.site.found.errors if finding not in self._reported]
        self._reported.update(new)
        report_unused(new, self._emit)

    def list_envs(self) -> list[str]:
        """Return the names of all envs."""
        return sorted(self.site.envs)

    def list_postures(self) -> list[str]:
        """Return the names of all postures, of both forms."""
        return sorted({*self.site.postures, *self.site.flat_postures})

    def list_templates(self) -> list[str]:
        """Return the names of all templates of guests."""
        return sorted(self.site.templates)

    def list_presets(self) -> list[str]:
        """Return the names of all sizes."""
        return sorted(self.site.presets)

    def list_hosts(self) -> list[str]:
        """Return the names of all physical machines."""
        return sorted(self.site.hosts)

    def list_nodes(self) -> list[str]:
        """Return the names of all Proxmox nodes."""
        return sorted(self.site.nodes)

    def list_specs(self) -> list[str]:
        """Return the names of all specs."""
        return sorted(self.site.specs)

    def list_manifests(self) -> list[str]:
        """Return the names of all manifests."""
        return sorted(self.site.manifests)

    def resolve_env(self, env: str, node: str | None = None) -> dict[str, Any]:
        """Return the variables of OpenTofu for an env on a node; they hold secrets.

        Args:
            env: The env.
            node: The node; the env's own, or the only one of the site, when absent.

        Raises:
            NotInSiteError: There is no such env or node.
            NodeNotChosenError: No node was given, and there is more than one.
        """
        self.require(f"The env '{env}'", files_of_env(self.site, env, node))
        loaded = self.env(env)
        chosen = self.node(env, node)
        host = resolve_host(self.site, chosen)
        if not host.api_token:
            name = self.site.nodes[chosen].model.api_token or chosen
            raise NotInSiteError(
                f"The node '{chosen}' needs `api_tokens.{name}`, and secrets.yaml has none.",
                remedy="Add it with `stackyard secrets edit`.",
            )
        secrets = self.site.secret_values
        settings: dict[str, Any] = {
            "node": host.node_name,
            "api_endpoint": host.api_endpoint,
            "api_token": host.api_token,
            "ssh_user": host.ssh_user,
            "automation_user": host.automation_user,
            "ssh_host": self._tofu_ssh_host(host),
            "datastore": host.datastore,
            "root_password": secrets.passwords.get("vm_root", ""),
            "ssh_keys": list(secrets.ssh_keys.values()),
            "spec_server": host.spec_server,
        }
        if host.dns_servers:
            settings["dns_servers"] = list(host.dns_servers)
        networks = self.site.networks(env)
        method = self.posture(loaded.model.posture).auth_method
        guests = []
        for guest in self.site.guests(env):
            values = self._tofu_guest(loaded, guest, networks)
            guests.append({**values, "auth_token": self._auth_token(method, guest.name)})
        self.report_others()
        return {**settings, "vms": guests}

    def _tofu_ssh_host(self, host: HostConfig) -> str:
        """Return where OpenTofu's own SSH goes: to ourselves for a local API, else to the node."""
        if host.ssh_host in ("localhost", "127.0.0.1", "::1"):
            return "127.0.0.1"
        return self.site.nodes[host.name].model.ip or host.ssh_host

    def _tofu_guest(self, env: LoadedFile[EnvFile], guest: GuestEntry, networks: Networks) -> dict[str, Any]:
        own = {key: value for key, value in guest.values.items() if key not in ("name", "vmid", "network")}
        result: dict[str, Any] = {"name": guest.name, "vmid": vmid_of(guest, env.model.vmid_base), **own}
        card = next(iter(networks.cards(guest)), None)
        if card is not None:
            result["bridge"] = card.values["bridge"]
            if card.values.get("vlan") is not None:
                result["vlan"] = card.values["vlan"]
            gateway = card.values.get("gateway4") or card.values.get("gateway6")
            if "gateway" not in result and (gateway or self.site.settings.defaults.gateway):
                result["gateway"] = gateway or self.site.settings.defaults.gateway
        return result

    def auth_token(self, env: str, guest: str) -> str:
        """Return what a guest proves itself with to get its spec; nothing where the network is trusted."""
        return self._auth_token(self.posture(self.env(env).model.posture).auth_method, guest)

    def _auth_token(self, method: AuthMethod | None, guest: str) -> str:
        auth = self.site.secret_values.auth
        if method is AuthMethod.SITE_TOKEN:
            return self._token(auth.site_token, "auth.site_token")
        if method is AuthMethod.NODE_TOKEN:
            return self._token(auth.node_tokens.get(guest), f"auth.node_tokens.{guest}")
        return ""

    def _token(self, token: str | None, name: str) -> str:
        if token is None:
            raise NotInSiteError(
                f"The posture asks for `{name}`, and secrets.yaml has none.",
                remedy="Add it with `stackyard secrets edit`, or choose a posture with another method.",
            )
        return token

    def resolve_ansible_vars(self, env: str) -> dict[str, Any]:
        """Return the variables of Ansible for the guests of an env.

        Raises:
            NotInSiteError: There is no such env.
        """
        loaded = self.env(env)
        posture = self.posture(loaded.model.posture)
        defaults = self.site.settings.defaults
        nag = defaults.pve_remove_subscription_nag
        return {
            "timezone": defaults.timezone or "UTC",
            "pve_remove_subscription_nag": True if nag is None else nag,
            "packages": join_lists(defaults.packages, posture.packages()),
            **posture.settings(),
            "env_name": env,
            "posture_name": posture.name,
            "ssh_authorized_keys": list(self.site.secret_values.ssh_keys.values()),
        }

    def write_tfvars(self, config: Mapping[str, Any], path: str | Path) -> None:
        """Write variables of OpenTofu to a file that only its owner can read, atomically.

        Raises:
            FileError: It cannot be written.
        """
        _write(config, path)

    def write_ansible_vars(self, config: Mapping[str, Any], path: str | Path) -> None:
        """Write variables of Ansible to a file that only its owner can read, atomically.

        Raises:
            FileError: It cannot be written.
        """
        _write(config, path)

    def resolve_host(self, name: str) -> HostConfig:
        """Return a host: nodes/NAME.yaml, else hosts/NAME.yaml.

        Raises:
            HostNotFoundError: Neither is there.
            InvalidInputError: Something is wrong with its file.
        """
        self.require(f"The host '{name}'", files_of_host(self.site, name))
        return resolve_host(self.site, name)

    def resolve_spec(self, name: str) -> dict[str, Any]:
        """Return a spec with its posture, users and keys: what a guest receives, in push and in pull.

        Raises:
            NotInSiteError: There is no such spec.
            InvalidInputError: Something is wrong with it or its posture.
        """
        self.require(f"The spec '{name}'", files_of_spec(self.site, name))
        self._require_known("spec", name, self.site.specs)
        self.report_others()
        return resolve_spec(self.site, name)

    def resolve_spec_vars(self, name: str) -> dict[str, Any]:
        """Return a spec as variables of Ansible.

        Raises:
            NotInSiteError: There is no such spec.
        """
        return spec_variables(self.resolve_spec(name))

    def resolve_desired(self, env: str, node: str | None = None) -> Desired:
        """Return what an env needs on a node; `secrets` has the values of the secrets that it names.

        Raises:
            NotInSiteError: There is no such env or node.
            NodeNotChosenError: No node was given, and there is more than one.
            InvalidInputError: Its parts do not fit on this node.
        """
        self.require(f"The env '{env}'", files_of_env(self.site, env, node))
        chosen = self.node(env, node)
        choice = NodeChoice.of(self.site.nodes[chosen])
        found = Diagnostics()
        built = build_desired(self.site, env, choice, found)
        found.raise_errors(f"The env '{env}' on {choice.name}")
        if built is None:
            raise InvalidInputError(f"The env '{env}' cannot be built for {choice.name}.")
        return built

    def resolve_shared(self, node: str) -> Desired:
        """Return what belongs to the site itself and to no env: the networks and pools of site.yaml.

        Raises:
            NotInSiteError: There is no such node.
            InvalidInputError: Its parts do not fit.
        """
        self.require(f"The site on {node}", files_of_shared(self.site, node))
        self._require_known("node", node, self.site.nodes)
        found = Diagnostics()
        built = build_shared(self.site, NodeChoice.of(self.site.nodes[node]), found)
        found.raise_errors(f"The site on {node}")
        return Desired() if built is None else built

    def secrets(self) -> Secrets:
        """Return the values of every secret that a model of this site can name."""
        return Secrets(dict(self.site.secrets.values()))

    def posture(self, name: str) -> Posture:
        """Return a posture.

        Raises:
            NotInSiteError: There is none of this name.
        """
        self._require_known("posture", name, {*self.site.postures, *self.site.flat_postures})
        return posture_of(self.site, name)

    def env(self, name: str) -> LoadedFile[EnvFile]:
        """Return an env as it is written.

        Raises:
            NotInSiteError: There is none of this name.
            InvalidInputError: Something is wrong with it, or with what it uses.
        """
        self.require(f"The env '{name}'", files_of_env(self.site, name))
        self._require_known("env", name, self.site.envs)
        return self.site.envs[name]

    def node(self, env: str, said: str | None = None) -> str:
        """Return the node of an env: the one said, its own, or the only one there is.

        Raises:
            NotInSiteError: There is no such node.
            NodeNotChosenError: None is said, and there is more than one.
        """
        return self._choose_node(f"The env '{env}'", said or self.env(env).model.node)

    def hypervisor(self, name: str) -> LoadedFile[Any]:
        """Return the file of a cluster or a node of `hypervisors/`.

        Raises:
            NotInSiteError: There is none of this name.
            InvalidInputError: Something is wrong with it.
        """
        self.require(f"The hypervisor '{name}'", {("hypervisors", name)})
        self._require_known("hypervisor", name, self.site.hypervisors)
        return self.site.hypervisors[name]

    def find_node(self, name: str | None) -> str | None:
        """Return the file of `nodes/` for what Proxmox calls a node; None where there is none."""
        known = ((loaded.model.node or file, file) for file, loaded in self.site.nodes.items())
        return next((file for called, file in known if called == name), None)

    def any_node(self, said: str | None = None) -> str:
        """Return the node that is said, or the only one there is.

        Raises:
            NotInSiteError: There is no such node.
            NodeNotChosenError: None is said, and there is more than one.
        """
        return self._choose_node("The site", said)

    def _choose_node(self, who: str, name: str | None) -> str:
        # One that cannot be read counts: the other would be chosen only for as long as it is broken.
        there = sorted({*self.site.nodes, *self.site.broken["nodes"]})
        if name is None and len(there) == 1:
            name = there[0]
        if name is None:
            raise NodeNotChosenError(
                f"{who} names no node, and the site has {len(there)}: {', '.join(there[:10])}."
            )
        self.require(f"The node '{name}'", files_of_host(self.site, name))
        if name in self.site.hosts and name not in self.site.nodes:
            raise NotInSiteError(
                f"'{name}' is a machine that is reached by SSH alone: hosts/{name}.yaml.",
                remedy=f"Install Proxmox VE on it and write nodes/{name}.yaml.",
            )
        self._require_known("node", name, self.site.nodes)
        return name

    def _require_known(self, kind: str, name: str, table: Mapping[str, object] | set[str]) -> None:
        if name not in table:
            raise NotInSiteError(
                f"There is no {kind} '{name}' in {self.site.root}.{did_you_mean(name, table)}"
            )


def _write(config: Mapping[str, Any], path: str | Path) -> None:
    replace_file(Path(path), orjson.dumps(config, option=orjson.OPT_INDENT_2) + b"\n")
