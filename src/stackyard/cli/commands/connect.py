"""`stackyard connect`: a Proxmox VE of the user's own becomes part of a site."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["connect"]

_FEATURES = ("read", "guests", "images", "pools", "networks", "start-order", "ha", "replication")


@click.command("connect", cls=Command)
@click.argument("url", metavar="URL")
@click.option("--site", metavar="DIR", help="The folder of the site; created if it does not exist.")
@click.option(
    "--user", metavar="USER@REALM", help="Log in as this user (default: asks, and proposes root@pam)."
)
@click.option(
    "--password-file", metavar="FILE", help="Read the password from a file (or set STACKYARD_PVE_PASSWORD)."
)
@click.option(
    "--token",
    metavar="USER@REALM!NAME",
    help="Use this token instead of a login. Its secret is asked for, or read from STACKYARD_PVE_TOKEN or "
    "--token-file; never write it on the command line.",
)
@click.option("--token-file", metavar="FILE", help="Read the token, or only its secret, from a file.")
@click.option("--fingerprint", metavar="SHA256", help="Trust only the certificate with this fingerprint.")
@click.option(
    "--feature",
    "features",
    metavar="NAME,...",
    multiple=True,
    help=f"What the token may do: {', '.join(_FEATURES)} (default: read,guests,images,pools).",
)
@click.option(
    "--token-name", metavar="NAME", default="connect", help="The name of the new token (default: connect)."
)
@click.option("--renew-token", is_flag=True, help="Replace the token; its old secret stops working.")
@click.option("--node", "nodes", metavar="NODE,...", multiple=True, help="Connect only these nodes.")
@click.option("--as", "alias", metavar="NAME", help="The name of the node in the site (one node only).")
@click.option("--datastore", metavar="NAME", help="The datastore for disks (default: chosen).")
@click.option(
    "--file-datastore", metavar="NAME", help="The datastore for images and snippets (default: chosen)."
)
@click.option(
    "--add-content",
    is_flag=True,
    help="Add the content types that are missing (snippets, import) to the datastore for files.",
)
@click.option("--overwrite", is_flag=True, help="Overwrite values of the site that differ; comments stay.")
@click.option("--yes", is_flag=True, help="Do not ask before the changes.")
@click.option(
    "--print",
    "prints",
    is_flag=True,
    help="Print the `pveum` commands that create the token, without a login and without changes.",
)
@pass_session
def connect(session: Session, /, **values: Any) -> Result:
    """Connect to Proxmox VE: create an API token for stackyard, and add the nodes to the site.

    URL is the address of the web interface, such as https://pve.home:8006. The command shows the certificate
    of the server and asks whether to trust it. It asks for a login, which is used once and not stored. Then
    it reads nodes, datastores, bridges and images, and shows every privilege with its reason. After you
    agree, it creates the role StackyardConnect, the user stackyard@pve and a token with no more than these
    privileges.

    The command writes the token into the encrypted secrets of the site, and each node into nodes/NODE.yaml
    with the fingerprint of its certificate. In an empty folder, it creates a complete site. It changes values
    in existing files only with --overwrite. At the end, it runs `preflight` for each node. A second run
    changes nothing.

    Without a terminal, give --fingerprint, and either a token, or --user with STACKYARD_PVE_PASSWORD (and
    STACKYARD_PVE_OTP for a second factor). If the token may not create another token, the site uses the token
    that you gave.

    \b
    stackyard connect https://pve.home:8006
    stackyard connect https://pve.home:8006 --feature guests,images,networks,ha
    stackyard connect https://pve.home:8006 --print
    stackyard connect https://pve.home:8006 --token 'automation@pve!stackyard'
    """  # noqa: D301 - click reads the control character
    from stackyard.cli.runs.connect import run_connect  # lazy: the help needs none of it

    return run_connect(session, values)
