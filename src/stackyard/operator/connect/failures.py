"""Why a cluster cannot be connected. Nothing was changed, unless an error says otherwise."""

from __future__ import annotations

from stackyard.base.errors import InvalidInputError, StackyardError, UnreachableError

__all__ = [
    "ClusterAnswerError",
    "MayNotCreateError",
    "NoDatastoreError",
    "NoQuorumError",
    "NodeChoiceError",
    "NodeOfflineError",
    "OtherTokenError",
    "TokenExistsError",
    "TokenLeftError",
    "UnusedTokenError",
    "UserDisabledError",
]


class MayNotCreateError(StackyardError):
    """The user who logged in may not create roles, users and tokens."""

    code = "E-CONNECT-PRIVILEGE"
    summary = "The user may not create a role, a user and a token"
    default_remedy = (
        "Log in as root@pam. Or run the same command with --print, have an administrator run the commands "
        "that it prints, and connect with the token that they create: --token USER@REALM!NAME."
    )


class ClusterAnswerError(StackyardError):
    """The cluster sent an answer that no Proxmox VE sends."""

    code = "E-CONNECT-ANSWER"
    summary = "The cluster sent an answer that is not valid"
    default_remedy = (
        "Check the address, and what is between this machine and Proxmox VE; nothing was changed."
    )


class NodeOfflineError(UnreachableError):
    """A node of the cluster is offline, so that nobody can say what it has."""

    code = "E-CONNECT-OFFLINE"
    summary = "A node is offline"
    default_remedy = "Start it and run the command again; or name the other nodes with --node NODE,..."


class NoQuorumError(StackyardError):
    """Too few nodes of the cluster are up, so that it accepts no changes."""

    code = "E-CONNECT-QUORUM"
    summary = "The cluster has no quorum, and accepts no changes"
    default_remedy = "Start the nodes that are down (`pvecm status` lists them) and run the command again."


class NodeChoiceError(InvalidInputError):
    """A node was named that the cluster does not have, or a name is for one node and there are several."""

    code = "E-CONNECT-NODE"
    summary = "The choice of nodes does not fit the cluster"
    default_remedy = "Name nodes of the cluster with --node NODE,..."


class NoDatastoreError(InvalidInputError):
    """No datastore for the disks of guests can be seen on a node."""

    code = "E-CONNECT-DATASTORE"
    summary = "There is no datastore for disks"
    default_remedy = (
        "Allow `Disk image` (images) on a datastore of the node, or give the token Datastore.Audit on "
        "/storage; or name the datastore with --datastore NAME."
    )


class TokenExistsError(StackyardError):
    """The token is there and the site does not have its secret, which Proxmox shows only once."""

    code = "E-CONNECT-TOKEN-EXISTS"
    summary = "The token exists, and its secret cannot be read again"
    default_remedy = (
        "Replace it with --renew-token, if no other machine uses it; "
        "or create another one with --token-name NAME."
    )


class UserDisabledError(StackyardError):
    """Somebody disabled the user of the token, so that no token of it works."""

    code = "E-CONNECT-DISABLED"
    summary = "The user of the token is disabled"
    default_remedy = "Ask who disabled it, and why; `pveum user modify USER --enable 1` enables it."


class OtherTokenError(InvalidInputError):
    """The secrets of the site have another token under the name that the node gives."""

    code = "E-CONNECT-OTHER-TOKEN"
    summary = "The secrets of the site have another token"
    default_remedy = "Keep that one, or replace it with --overwrite."


class UnusedTokenError(StackyardError):
    """Files could not be written, and the token that was made for them is removed again."""

    code = "E-CONNECT-TAKEN-BACK"
    summary = "The connection was not completed, and its token is removed again"
    default_remedy = "Correct what is named and run the command again."


class TokenLeftError(StackyardError):
    """The connection was not completed, and its token could not be removed."""

    code = "E-CONNECT-TOKEN-LEFT"
    summary = "The connection was not completed, and its token is still on the cluster"
    default_remedy = "Remove the token with `pveum user token delete USER NAME` on a node."
