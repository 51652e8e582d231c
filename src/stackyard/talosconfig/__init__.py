"""Machine configurations of Talos, and the secrets that they are made of.

- `bundle` has the secrets of a cluster as `talosctl gen secrets` writes them; `bundle_file` keeps them
  encrypted with SOPS beside the cluster.
- `generate` makes the configuration of a node from a resolved cluster and a bundle, for one version of Talos.
- `patch_files` reads the user's patches, and `merge` applies them as Talos does.
- `difference` compares two configurations and shows no secret.
- `client_config` writes and reads talosconfig files.

Only `bundle_file` and `patch_files` read or write files. Nothing here asks a network.
"""

from __future__ import annotations

__all__: list[str] = []
