"""`stackyard connect`: a Proxmox VE of the user's own becomes part of a site."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["connect"]

_FEATURES = ("read", "guests", "images", "pools", "networks", "start-order", "ha")


@click.command("connect", cls=Command)
@click.argument("url", metavar="URL")
@click.option("--site", metavar="DIR", help="The folder of the site; created if it does not exist.")
@click.option("--user", metavar="USER@REALM", help="Log in as this user (default: ask; root@pam).")
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
@click.option("--fingerprint", metavar="SHA256", help="Trust the server with this certificate, and no other.")
@click.option(
    "--feature",
    "features",
    metavar="NAME,...",
    multiple=True,
    help=f"What the token may do: {', '.join(_FEATURES)} (default: read,guests,images,pools).",
)
@click.option("--token-name", metavar="NAME", default="connect", help="The name of the new token.")
@click.option("--renew-token", is_flag=True, help="Replace the token; its old secret stops working.")
@click.option("--node", "nodes", metavar="NODE,...", multiple=True, help="Connect only these nodes.")
@click.option("--as", "alias", metavar="NAME", help="Call the node NAME in the site (for one node).")
@click.option("--datastore", metavar="NAME", help="Where disks go (default: chosen from what is there).")
@click.option("--file-datastore", metavar="NAME", help="Where images and snippets go (default: chosen).")
@click.option(
    "--add-content",
    is_flag=True,
    help="Let the datastore for files take snippets and disk images, if it does not yet.",
)
@click.option("--overwrite", is_flag=True, help="Overwrite values of the site that differ; comments stay.")
@click.option("--yes", is_flag=True, help="Do not ask before the changes.")
@click.option(
    "--print",
    "prints",
    is_flag=True,
    help="Print the `pveum` commands that create the token. Change nothing and log in nowhere.",
)
@pass_session
def connect(session: Session, /, **values: Any) -> Result:
    """Connect a Proxmox VE: create an API token for stackyard, and add the nodes to the site.

    URL is the address of the web interface, as https://pve.home:8006. The command shows the certificate of
    the server and asks whether to trust it, asks for a login once, and reads nodes, datastores, bridges and
    images. It shows every privilege with its reason, and then creates the role StackyardConnect, the user
    stackyard@pve and a token that has these privileges and no others. The login is not stored.

    The token goes into the encrypted secrets of the site, and each node into nodes/NODE.yaml with the
    fingerprint of its certificate. In an empty folder, this makes a whole site. Values of existing files are
    never changed without --overwrite. At the end it runs `preflight` for each node. A second run finds what
    is done and changes nothing.

    Without a terminal, give --fingerprint, and --user with STACKYARD_PVE_PASSWORD (and STACKYARD_PVE_OTP for
    a second factor), or a token. A token that may not create another is used itself.

    \b
    stackyard connect https://pve.home:8006
    stackyard connect https://pve.home:8006 --feature guests,images,networks,ha
    stackyard connect https://pve.home:8006 --print
    stackyard connect https://pve.home:8006 --token 'automation@pve!stackyard'
    """  # noqa: D301 - click reads the control character
    from stackyard.cli.runs.connect import run_connect  # lazy: the help needs none of it

    return run_connect(session, values)
