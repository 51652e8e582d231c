"""Which object holds what.

::

    heads/<state>                       the head: lock, current version, newest history and audit entries
    data/<state>/bodies/<sha256>-<n>    a content, compressed
    data/<state>/versions/<segment>     32 older version records
    data/<state>/audit/<segment>        32 older audit entries
    data/<state>/quarantine/<id>        a refused write
    system/...                          the principals and the audit log of the service itself, and what it
                                        writes to find out whether the store takes writes
    runs/<id>                           the lease of a run that stackyard started
    run-owners/<id>                     which principal of the service started a run, on which state
    targets/<state>                     what was applied into a state, and from where
    journal/<state>/<token>             a guest that is being created, or may not be in the state yet
    guests/<state>                      what was made for the first boots of guests, sealed
    operator/<state>                    the nodes of a manifest on a host as they are now
    operator-locks/<state>              the lease of the run that works on them
    cluster-etcd/<state>                which node of a cluster formed its etcd
    cluster-locks/<state>               the lease of the run that works on a cluster
    inventory/<state>                   the inventory that was published last
    plans/<state>/<id>                  a saved plan, encrypted
    state-changes/<state>/<id>          a proposed change of a state with its approval, sealed
    kept-states/<state>/<id>            a state of another backend as it was before such a change, sealed
    records/<time>-<id>,<verb>,<state>  the record of a run, the newest first
    run-events/<id>/<number>            events of a run
    run-control/<id>                    that a run is to stop
    inner/<state>/<node>/...            the same again, for runs on a node of a manifest
    gitops/<repository>/pulls/<n>       what is known of a pull request: what was shown, what became of it
    gitops/<repository>/leases/<n>      the lease of whoever works on a pull request
    gitops/<repository>/locks/<target>  which pull request has a target before it is merged, and which wait
    gitops/<repository>/queue/jobs      what the GitOps server has to do, and which webhooks it received
    gitops/<repository>/queue/worker    the lease of the machine that does it
    gitops/<repository>/looks/<n>       what was seen of a pull request when it was looked at last
    gitops/<repository>/drift/<target>  the issue about drift of a target
    controller/...                      the certificate of the controller; its key and tokens, sealed
    ssh/...                             the key to log in to guests, sealed; the host keys of machines

In `<state>` and `<repository>` a `!` represents each slash of the name.
"""

from __future__ import annotations

from stackyard.state.names import name_of, object_part

__all__ = [
    "HEADS",
    "HEALTH",
    "PRINCIPALS",
    "RUNS",
    "RUN_OWNERS",
    "STATE_CHANGES",
    "SYSTEM_AUDIT",
    "TARGETS",
    "audit_segment",
    "bodies",
    "body",
    "cluster_etcd",
    "cluster_lock",
    "gitops",
    "guests",
    "head",
    "inner",
    "inventory",
    "journal",
    "kept_state",
    "operator",
    "operator_lock",
    "plan",
    "plans",
    "quarantine",
    "quarantine_key",
    "run_owner",
    "state_change",
    "state_of",
    "system_segment",
    "target",
    "version_segment",
    "version_segments",
]

HEADS = "heads/"
RUNS = "runs/"
RUN_OWNERS = "run-owners/"
TARGETS = "targets/"
STATE_CHANGES = "state-changes/"
PRINCIPALS = "system/principals"
SYSTEM_AUDIT = "system/audit"
HEALTH = "system/health"


def head(name: str) -> str:
    """Return the object of a state's head."""
    return HEADS + object_part(name)


def state_of(head_key: str) -> str:
    """Return the state of a head's object."""
    return name_of(head_key.removeprefix(HEADS))


def bodies(name: str) -> str:
    """Return what the contents of a state begin with."""
    return f"data/{object_part(name)}/bodies/"


def body(name: str, which: str) -> str:
    """Return the object of a content."""
    return bodies(name) + which


def version_segments(name: str) -> str:
    """Return what the segments of version records of a state begin with."""
    return f"data/{object_part(name)}/versions/"


def version_segment(name: str, number: int) -> str:
    """Return the object of a segment of version records."""
    return f"{version_segments(name)}{number:08d}"


def audit_segment(name: str, number: int) -> str:
    """Return the object of a segment of audit entries."""
    return f"data/{object_part(name)}/audit/{number:08d}"


def system_segment(number: int) -> str:
    """Return the object of a segment of the service's own audit entries."""
    return f"system/audit-log/{number:08d}"


def quarantine(name: str) -> str:
    """Return what the refused writes of a state begin with."""
    return f"data/{object_part(name)}/quarantine/"


def quarantine_key(name: str, which: str) -> str:
    """Return the object of a refused write."""
    return quarantine(name) + which


def run_owner(run_id: str) -> str:
    """Return the object that says which principal started a run."""
    return RUN_OWNERS + run_id


def target(name: str) -> str:
    """Return the object that says what was applied into a state."""
    return TARGETS + object_part(name)


def journal(name: str) -> str:
    """Return what the journal entries of a state begin with."""
    return f"journal/{object_part(name)}/"


def guests(name: str) -> str:
    """Return the object with what was made for the first boots of the guests of a state."""
    return f"guests/{object_part(name)}"


def operator(name: str) -> str:
    """Return the object that says how the nodes of a manifest on a host are."""
    return f"operator/{object_part(name)}"


def operator_lock(name: str) -> str:
    """Return the lease of the run that works on the nodes of a manifest on a host."""
    return f"operator-locks/{object_part(name)}"


def cluster_etcd(name: str) -> str:
    """Return the object that says which node of a cluster formed its etcd."""
    return f"cluster-etcd/{object_part(name)}"


def cluster_lock(name: str) -> str:
    """Return the lease of the run that works on a cluster."""
    return f"cluster-locks/{object_part(name)}"


def inventory(name: str) -> str:
    """Return the object of the inventory that was published last."""
    return f"inventory/{object_part(name)}"


def plans(name: str) -> str:
    """Return what the saved plans of a state begin with."""
    return f"plans/{object_part(name)}/"


def plan(name: str, which: str) -> str:
    """Return the object of a saved plan."""
    return plans(name) + which


def state_change(name: str, which: str) -> str:
    """Return the object of a proposed change of a state."""
    return f"{STATE_CHANGES}{object_part(name)}/{which}"


def kept_state(name: str, which: str) -> str:
    """Return the object with a state of another backend as it was before a change."""
    return f"kept-states/{object_part(name)}/{which}"


def gitops(repository: str, what: str, name: str) -> str:
    """Return an object of the work on pull requests.

    Args:
        repository: `owner/name`.
        what: `pulls`, `parts`, `leases`, `locks`, `queue`, `looks` or `drift`.
        name: The number of a pull request, a target, or what is in the queue.
    """
    return f"gitops/{object_part(repository)}/{what}/{object_part(name)}"


def inner(name: str, node: str) -> str:
    """Return what everything begins with that runs on a node of a manifest leave."""
    return f"inner/{object_part(name)}/{node}/"
