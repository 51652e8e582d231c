"""Legacy names: scenarios that are verbs now, and options that have other names."""

from __future__ import annotations

from stackyard.scenario.failures import RetiredError

__all__ = ["RENAMED_OPTIONS", "RETIRED_OPTIONS", "RETIRED_SCENARIOS", "refuse_retired"]

_VERBS = {"constructor": "create", "destructor": "destroy", "roundtrip": "test"}
_MANIFESTS = {"vm": "n1-basic", "nested-pve": "n2-quick", "recursive-pve": "<manifest>"}

# The command that replaces each scenario that was retired.
RETIRED_SCENARIOS = {
    f"{kind}-{old}": f"stackyard {verb} -M {manifest} -H <host>"
    for kind, manifest in _MANIFESTS.items()
    for old, verb in _VERBS.items()
}
# What replaces an option that was given another name; both work.
RENAMED_OPTIONS = {
    "--image-release": "--packer-release",
    "--vm-ip": "--remote",
    "--homestak-user": "--user",
}
# What replaces an option of scenarios that were retired.
RETIRED_OPTIONS = {
    "--env": "stackyard apply env:NAME -H <host>",
    "--inner-ip": "stackyard create -M <manifest> -H <host>",
    "--node-ip": "stackyard create -M <manifest> -H <host>",
    "--manifest": "stackyard create|destroy|test -M <manifest> -H <host>",
    "--manifest-file": "stackyard create|destroy|test --manifest-file <file> -H <host>",
    "--manifest-json": "stackyard create|destroy|test --manifest-json <json> -H <host>",
    "--depth": "stackyard create|destroy|test -M <manifest> -H <host> --depth N",
    "--keep-on-failure": "`settings: {on_error: stop, cleanup_on_failure: false}` in the manifest",
}


def refuse_retired(name: str) -> None:
    """Refuse a scenario that was retired, with the command that replaces it.

    Raises:
        RetiredError: It was.
    """
    if name in RETIRED_SCENARIOS:
        raise RetiredError(
            f"The scenario '{name}' was retired in v0.47: verbs over manifests replace it.",
            remedy=f"Use: {RETIRED_SCENARIOS[name]}\n(See `stackyard create --help`.)",
        )
