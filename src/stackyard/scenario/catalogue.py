"""Every scenario that there is."""

from __future__ import annotations

from stackyard.base.suggestions import did_you_mean
from stackyard.scenario.actions import tables
from stackyard.scenario.failures import UnknownScenarioError
from stackyard.scenario.model import LazyAction, Phase, RunLocation, Scenario
from stackyard.scenario.retired import refuse_retired

__all__ = ["SCENARIOS", "find_scenario"]

_BUILD = Phase(
    name="build_images",
    description="Build images with packer",
    action=LazyAction(tables.packer, "BuildImages"),
)
_PUBLISH = Phase(
    name="publish_images",
    description="Put images into the storage of Proxmox VE",
    action=LazyAction(tables.packer, "PublishImages"),
)
_FETCH = Phase(
    name="fetch_images",
    description="Fetch images",
    action=LazyAction(tables.packer, "FetchImages"),
    attempts=3,
)
_SYNC = Phase(
    name="sync_packer",
    description="Bring packer to the machine",
    action=LazyAction(tables.packer, "SyncPacker"),
    attempts=3,
)

SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        name="bootstrap-install",
        summary="Install stackyard on a machine, verify the installation and the user.",
        expected_s=120.0,
        place=RunLocation.REMOTE,
        needs_site=False,
        phases=(
            Phase(
                name="run_bootstrap",
                description="Install stackyard",
                action=LazyAction(tables.bootstrap, "RunBootstrap"),
                attempts=3,
            ),
            Phase(
                name="verify_install",
                description="Verify the installation",
                action=LazyAction(tables.bootstrap, "VerifyInstall"),
            ),
            Phase(
                name="verify_user",
                description="Verify the user",
                action=LazyAction(tables.users, "VerifyUser"),
            ),
        ),
    ),
    Scenario(
        name="host-config",
        summary="Write hosts/NAME.yaml from what a machine says of itself.",
        expected_s=30.0,
        needs_root=False,
        phases=(
            Phase(
                name="generate_host_config",
                description="Write the file of the machine",
                action=LazyAction(tables.host_file, "GenerateHostConfig"),
                attempts=3,
            ),
        ),
    ),
    Scenario(
        name="image-publish",
        summary="Download images of a release and put them into the storage of a node.",
        expected_s=120.0,
        phases=(
            Phase(
                name="download_images",
                description="Download images",
                action=LazyAction(tables.images, "DownloadImages"),
                attempts=3,
            ),
            Phase(
                name="publish_images",
                description="Put images into the storage of Proxmox VE",
                action=LazyAction(tables.images, "InstallImages"),
                attempts=3,
            ),
        ),
    ),
    Scenario(
        name="packer-build",
        summary="Build images with packer, here or on another machine.",
        expected_s=180.0,
        needs_site=False,
        phases=(_BUILD,),
    ),
    Scenario(
        name="packer-build-fetch",
        summary="Build images on another machine and fetch them.",
        expected_s=300.0,
        place=RunLocation.REMOTE,
        needs_site=False,
        phases=(_BUILD, _FETCH),
    ),
    Scenario(
        name="packer-build-publish",
        summary="Build images and put them into the storage of Proxmox VE.",
        expected_s=420.0,
        needs_site=False,
        phases=(_BUILD, _PUBLISH),
    ),
    Scenario(
        name="packer-sync",
        summary="Bring packer from here to another machine.",
        expected_s=30.0,
        place=RunLocation.REMOTE,
        needs_site=False,
        phases=(_SYNC,),
    ),
    Scenario(
        name="packer-sync-build-fetch",
        summary="Bring packer to another machine, build images there and fetch them.",
        expected_s=360.0,
        place=RunLocation.REMOTE,
        needs_site=False,
        phases=(_SYNC, _BUILD, _FETCH),
    ),
    Scenario(
        name="pve-setup",
        summary="Install Proxmox VE where it is not, set it up, and write nodes/NAME.yaml.",
        expected_s=180.0,
        is_disruptive=True,
        phases=(
            Phase(
                name="ensure_pve",
                description="Install Proxmox VE",
                action=LazyAction(tables.install, "EnsurePve"),
                attempts=3,
            ),
            Phase(
                name="setup_pve",
                description="Set Proxmox VE up",
                action=LazyAction(tables.setup, "SetupPve"),
                attempts=3,
            ),
            Phase(
                name="create_api_token",
                description="Make a token for its API",
                action=LazyAction(tables.api_token, "CreateApiToken"),
                attempts=3,
            ),
            Phase(
                name="generate_node_config",
                description="Write the file of the node",
                action=LazyAction(tables.node_file, "GenerateNodeConfig"),
                attempts=3,
            ),
        ),
    ),
    Scenario(
        name="spec-vm-push-roundtrip",
        summary="Make a guest that fetches its spec, look at it from inside, and destroy it.",
        expected_s=180.0,
        place=RunLocation.NODE,
        needs_root=False,
        takes_env=True,
        phases=(
            Phase(
                name="check_config",
                description="Look at the site",
                action=LazyAction(tables.spec_vm, "CheckConfig"),
            ),
            Phase(
                name="start_server",
                description="Start the controller",
                action=LazyAction(tables.spec_vm, "StartServer"),
            ),
            Phase(
                name="ensure_image",
                description="Look for the image",
                action=LazyAction(tables.spec_vm, "EnsureImage"),
            ),
            Phase(
                name="provision_vm",
                description="Make the guest",
                action=LazyAction(tables.spec_vm, "ProvisionVm"),
            ),
            Phase(
                name="verify_ssh",
                description="Log in and compare with the spec",
                action=LazyAction(tables.spec_vm, "VerifySsh"),
            ),
            Phase(
                name="verify_env",
                description="Look at the settings of the guest",
                action=LazyAction(tables.spec_vm, "VerifyEnv"),
            ),
            Phase(
                name="verify_server",
                description="Ask the server from inside",
                action=LazyAction(tables.spec_vm, "VerifyServer"),
            ),
            Phase(
                name="destroy_vm",
                description="Destroy the guest",
                action=LazyAction(tables.spec_vm, "DestroyVm"),
                always=True,
            ),
            Phase(
                name="stop_server",
                description="Stop the controller",
                action=LazyAction(tables.spec_vm, "StopServer"),
                always=True,
            ),
        ),
    ),
    Scenario(
        name="user-setup",
        summary="Make the user that automation logs in as.",
        expected_s=30.0,
        phases=(
            Phase(
                name="create_user",
                description="Make the user",
                action=LazyAction(tables.users, "CreateUser"),
                attempts=3,
            ),
        ),
    ),
)


def find_scenario(name: str) -> Scenario:
    """Return the scenario of a name.

    Raises:
        RetiredError: It was retired; the error names what replaces it.
        UnknownScenarioError: There is none.
    """
    refuse_retired(name)
    known = {scenario.name: scenario for scenario in SCENARIOS}
    if name in known:
        return known[name]
    raise UnknownScenarioError(f"There is no scenario `{name[:60]}`.{did_you_mean(name, known)}")
