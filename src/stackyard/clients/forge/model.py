"""What a forge knows, in one vocabulary: a merge request of GitLab is a pull request here."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ChangedFile",
    "CloneAccess",
    "Comment",
    "CommitState",
    "CommitStatus",
    "EventKind",
    "ForgeKind",
    "ForgeLimits",
    "ForgeRepository",
    "Issue",
    "MergeMethod",
    "Mergeability",
    "Permission",
    "Protection",
    "PullRequest",
    "PullState",
    "Review",
    "ReviewVerdict",
    "WebhookEvent",
]


class ForgeKind(enum.StrEnum):
    """The forges that there are adapters for; Forgejo speaks as Gitea does."""

    GITEA = "gitea"
    GITHUB = "github"
    GITLAB = "gitlab"


class PullState(enum.StrEnum):
    """How far a pull request is."""

    OPEN = "open"
    CLOSED = "closed"
    MERGED = "merged"


class Mergeability(enum.StrEnum):
    """Whether a pull request can be merged without conflicts; forges find it out some time after a push."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class ReviewVerdict(enum.StrEnum):
    """What a review says."""

    APPROVED = "approved"
    CHANGES_REQUESTED = "changes requested"
    COMMENTED = "commented"
    DISMISSED = "dismissed"


class CommitState(enum.StrEnum):
    """What a status says of a commit."""

    PENDING = "pending"
    SUCCESS = "success"
    FAILURE = "failure"
    ERROR = "error"


class Permission(enum.IntEnum):
    """What somebody may do in a repository; more includes less."""

    NONE = 0
    READ = 1
    WRITE = 2
    ADMIN = 3


class MergeMethod(enum.StrEnum):
    """How a pull request becomes part of its base branch."""

    MERGE = "merge"
    SQUASH = "squash"
    REBASE = "rebase"


class EventKind(enum.StrEnum):
    """What a webhook tells of; the forge is asked for everything else."""

    PULL_REQUEST = "pull request"
    REVIEW = "review"
    COMMENT = "comment"
    PUSH = "push"
    PING = "ping"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgeRepository:
    """A repository on a forge.

    Attributes:
        name: `owner/name`; on GitLab with all its groups.
        default_branch: The branch that pull requests are for.
        clone_url: Where git fetches it over HTTPS.
        url: Its page.
        is_private: Whether only members may read it.
    """

    name: str
    default_branch: str
    clone_url: str
    url: str
    is_private: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequest:
    """A pull request, as the forge had it when it was asked.

    Attributes:
        number: Its number in its repository.
        title: What its author calls it.
        author: The login of whoever opened it.
        state: How far it is.
        is_draft: Whether its author says that it is not ready.
        head: The commit that is to be merged.
        head_branch: The branch of that commit.
        head_repository: `owner/name` of the repository that has it; empty where that was deleted.
        base_branch: The branch that it is to be merged into.
        base: The last commit of that branch that the forge knows of for this pull request; may be old.
        repository: `owner/name` of the repository that it is for.
        merge_base: Where its branch began, by what the forge says; empty where it does not.
        mergeable: Whether it can be merged without conflicts.
        merge_commit: The commit on the base branch that has it; empty unless it is merged.
        merged_by: The login of whoever merged it; empty unless it is merged.
        url: Its page.
        updated_at: When it last changed, as the forge writes it.
    """

    number: int
    title: str
    author: str
    state: PullState
    is_draft: bool
    head: str
    head_branch: str
    head_repository: str
    base_branch: str
    base: str
    repository: str
    mergeable: Mergeability = Mergeability.UNKNOWN
    merge_commit: str = ""
    merged_by: str = ""
    url: str = ""
    merge_base: str = ""
    updated_at: str = ""

    @property
    def is_fork(self) -> bool:
        """Whether its commits come from another repository."""
        return self.head_repository.casefold() != self.repository.casefold()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """A file that a pull request changes.

    Attributes:
        path: Its path; the new one, where it was renamed.
        former_path: The path before; empty unless it was renamed.
        is_removed: Whether it is gone.
    """

    path: str
    former_path: str = ""
    is_removed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What a reviewer said last of a pull request.

    Attributes:
        author: The login.
        verdict: What it says.
        commit: The commit that was reviewed; empty where the forge does not keep it, as GitLab.
        submitted_at: When, as the forge writes it.
    """

    author: str
    verdict: ReviewVerdict
    commit: str = ""
    submitted_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A comment in a pull request or an issue.

    Attributes:
        id: What the forge knows it by.
        author: The login.
        body: Its text.
        url: Where it is.
        created_at: When it was written, as the forge writes it.
        updated_at: When it was last edited, as the forge writes it.
    """

    id: int
    author: str
    body: str
    url: str = ""
    created_at: str = ""
    updated_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitStatus:
    """What a program says of a commit, where branch protection can require it.

    Attributes:
        context: What it is called by; the last one of a name counts.
        state: What it says.
        description: The same in a few words.
        url: Where there is more.
    """

    context: str
    state: CommitState
    description: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """What a branch requires of a change.

    Attributes:
        branch: The branch.
        blocks_pushes: Whether nobody may push to it directly.
        binds_admins: Whether all of it holds for administrators too.
        checks: The statuses that must be there and well.
        requires_all_checks: Whether every status that is there must be well; GitLab knows only this.
        approvals: How many approvals a change needs.
        dismisses_stale: Whether a new commit takes approvals back.
        requires_up_to_date: Whether a change must contain the last commit of the branch.
    """

    branch: str
    blocks_pushes: bool = False
    binds_admins: bool = False
    checks: tuple[str, ...] = ()
    requires_all_checks: bool = False
    approvals: int = 0
    dismisses_stale: bool = False
    requires_up_to_date: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """An issue.

    Attributes:
        number: Its number in its repository.
        title: What it is called.
        body: Its text.
        is_open: Whether it is open.
        author: The login of whoever opened it.
        url: Its page.
    """

    number: int
    title: str
    body: str
    is_open: bool
    author: str
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneAccess:
    """How git fetches a repository.

    Attributes:
        url: Over HTTPS, without any secret in it.
        headers: What is sent with each request; holds the token.
    """

    url: str
    headers: Mapping[str, str]

    def __repr__(self) -> str:
        return f"CloneAccess(url={self.url!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgeLimits:
    """How long texts may be.

    Attributes:
        comment_chars: A comment, and the text of an issue.
        context_chars: The name of a status.
        description_chars: The description of a status.
    """

    comment_chars: int
    context_chars: int
    description_chars: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookEvent:
    """What a webhook tells, once its signature was verified. It says where to look, not what is true.

    Attributes:
        delivery: What the forge calls this delivery; the same again when it is sent again.
        kind: What it tells of.
        repository: `owner/name`.
        action: What was done, in the words of the forge.
        number: The pull request; 0 for none.
        branch: The branch that was pushed to; empty for none.
        commit: The commit that it tells of; empty for none.
        comment: The comment; 0 for none.
        author: The login of whoever did it.
    """

    delivery: str
    kind: EventKind
    repository: str
    action: str = ""
    number: int = 0
    branch: str = ""
    commit: str = ""
    comment: int = 0
    author: str = ""
