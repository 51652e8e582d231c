"""What is known of a pull request, in the store and sealed: what was shown, who said what, what became of it.

Nothing of it is only in the memory of a process: whoever comes next continues where another one was killed.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.documents.limits import LARGE
from stackyard.clients.objects import ABSENT, StoreDamagedError
from stackyard.gitops.model import CodeFinding, CodeRisk, PullPlan, TargetPlan, TargetState
from stackyard.sources.store.sealed import open_sealed
from stackyard.state import layout

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.clients.objects import Tag
    from stackyard.sources.store import ChosenStore

__all__ = [
    "Acknowledgement",
    "CommentApproval",
    "PullRecord",
    "PullRecords",
    "ShownTarget",
    "read_target",
]

_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTarget:
    """What was shown of a target.

    Attributes:
        fingerprint: What tells this plan from every other one.
        stale: Approvals that were there when it was shown: they are for another plan.
    """

    fingerprint: str
    stale: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgement:
    """That somebody named in a comment what may happen.

    Attributes:
        what: What may happen, in the word of the comment: `destroy`, `code`.
        name: To what: a guest, an address, a target; a commit.
        login: Who said so.
        comment: In which comment.
    """

    what: str
    name: str
    login: str
    comment: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentApproval:
    """That somebody approved plans with a comment, as after the merge.

    Attributes:
        login: Who.
        comment: In which comment.
        fingerprints: The plans that were shown then.
    """

    login: str
    comment: int
    fingerprints: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRecord:
    """What is known of a pull request.

    Attributes:
        plan: What was planned last, and what became of it.
        comment: The comment that shows it; 0 where there is none yet.
        body: The digest of its text.
        shown: What was shown of each target.
        shown_for: The commit and the tree that it was shown for.
        read_comments: Comments up to this one were read.
        acknowledged: What people named in comments.
        approved: Who approved with a comment.
        tag: What the store has to hold when this is replaced.
    """

    plan: PullPlan
    comment: int = 0
    body: str = ""
    shown: Mapping[str, ShownTarget] = field(default_factory=dict)
    shown_for: str = ""
    read_comments: int = 0
    acknowledged: tuple[Acknowledgement, ...] = ()
    approved: tuple[CommentApproval, ...] = ()
    tag: Tag | None = None

    def find_target(self, name: str) -> TargetPlan | None:
        """Return what is known of a target, None where it is none of this pull request."""
        return next((one for one in self.plan.targets if one.target == name), None)

    def with_target(self, target: TargetPlan) -> PullRecord:
        """Return it with a target in place of the one of that name."""
        targets = tuple(target if one.target == target.target else one for one in self.plan.targets)
        return replace(self, plan=replace(self.plan, targets=targets))


@dataclass(frozen=True, slots=True)
class PullRecords:
    """The records of the pull requests of one repository.

    Args:
        store: The store.
        repository: `owner/name`.
    """

    store: ChosenStore
    repository: str

    def get(self, number: int) -> PullRecord | None:
        """Return the record of a pull request; None where nothing is known of it.

        Raises:
            StoreError: The store cannot say, or what it holds is damaged.
        """
        key = layout.gitops(self.repository, "pulls", str(number))
        with closing(self.store.open()) as objects:
            stored = open_sealed(self.store, objects).get(key)
        if stored is None:
            return None
        try:
            return _read(parse_json(stored.data, LARGE), stored.tag)
        except (JsonError, ValueError, KeyError, TypeError) as err:
            raise StoreDamagedError(f"{key} is damaged, or of a newer version of stackyard.") from err

    def put(self, record: PullRecord) -> PullRecord:
        """Store a record that was read from here, or a new one.

        Raises:
            ConflictError: Somebody else changed it meanwhile.
            StoreError: It cannot be stored.
        """
        key = layout.gitops(self.repository, "pulls", str(record.plan.number))
        said = {**asdict(replace(record, tag=None)), "format": _FORMAT}
        said.pop("tag")
        with closing(self.store.open()) as objects:
            sealed = open_sealed(self.store, objects)
            tag = sealed.put(key, orjson.dumps(said), expect=ABSENT if record.tag is None else record.tag)
        return replace(record, tag=tag)

    def numbers(self) -> tuple[int, ...]:
        """Return the pull requests that something is known of, in the order of the store.

        Raises:
            StoreError: The store cannot say.
        """
        with closing(self.store.read()) as objects:
            prefix = layout.gitops(self.repository, "pulls", "0")[:-1]
            after, found = "", list[int]()
            while listed := objects.list(prefix, after=after):
                names = (one.key.removeprefix(prefix) for one in listed)
                found += [int(name) for name in names if name.isdecimal()]
                after = listed[-1].key
        return tuple(found)


def _read(said: Mapping[str, Any], tag: Tag) -> PullRecord:
    if said["format"] != _FORMAT:
        raise ValueError("another format")
    plan = said["plan"]
    return PullRecord(
        plan=PullPlan(
            **{
                **plan,
                "targets": tuple(map(read_target, plan["targets"])),
                **{name: tuple(plan[name]) for name in ("moved", "notes")},
            }
        ),
        comment=said["comment"],
        body=said["body"],
        shown={
            name: ShownTarget(fingerprint=one["fingerprint"], stale=tuple(one["stale"]))
            for name, one in said["shown"].items()
        },
        shown_for=said["shown_for"],
        read_comments=said["read_comments"],
        acknowledged=tuple(Acknowledgement(**one) for one in said["acknowledged"]),
        approved=tuple(_read_approvals(said["approved"])),
        tag=tag,
    )


def read_target(said: Mapping[str, Any]) -> TargetPlan:
    """Return what is known of a target, from what `asdict` made of it."""
    tuples = ("reasons", "after", "drift", "waits_for", "allowed")
    return TargetPlan(
        **{
            **said,
            "state": TargetState(said["state"]),
            **{name: tuple(said[name]) for name in tuples},
            "findings": tuple(
                CodeFinding(**{**one, "risk": CodeRisk(one["risk"])}) for one in said["findings"]
            ),
        }
    )


def _read_approvals(said: list[Mapping[str, Any]]) -> Iterator[CommentApproval]:
    for one in said:
        yield CommentApproval(
            login=one["login"], comment=one["comment"], fingerprints=tuple(one["fingerprints"])
        )
