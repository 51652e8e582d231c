"""The run of `stackyard cluster import-secrets`."""

from __future__ import annotations

from pathlib import Path

from stackyard.cli.runs.clusters.infra import choose_cluster
from stackyard.path.clusters.keys import make_keyring
from stackyard.secrets import SecretsKind
from stackyard.secrets.protected_file import detect, read_bytes
from stackyard.secrets.sops.age import recipient_of
from stackyard.talosconfig.bundle_file import BUNDLE_FILES, import_bundle

__all__ = ["import_cluster_secrets"]


def import_cluster_secrets(file: str, name: str | None) -> tuple[str, str, bool]:
    """Keep a secrets bundle as that of a cluster.

    Returns:
        The cluster, the file that was written, and whether the source is in clear.

    Raises:
        BundleExistsError: The cluster has secrets already.
        StackyardError: As for `import_bundle`.
    """
    cluster, folder = choose_cluster(name)
    keyring, source = make_keyring(folder), Path(file)
    own = recipient_of(keyring)
    import_bundle(source, folder, keyring, () if own is None else (own,))
    is_clear = detect(read_bytes(source), str(source)).kind is SecretsKind.PLAIN
    return cluster, str(folder / BUNDLE_FILES[0]), is_clear
