"""What a plain state describes: its resources by address, with what in them must not be shown.

OpenTofu notes in the state which attributes a configuration marked as sensitive; what only a provider's
schema says is not written there. So attributes whose name says that they are secret are hidden as well, and
so is every text in which a hidden value turns up.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base.documents.jsontext import parse_json
from stackyard.base.documents.limits import LARGE
from stackyard.base.redaction import Redactor
from stackyard.engine.changes import SENSITIVE, Path
from stackyard.state.document import read_document
from stackyard.state.refusals import BodyRefusedError, StateRefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import TypeAlias

__all__ = [
    "EncryptedStateError",
    "Instance",
    "Mask",
    "StateOutput",
    "StateView",
    "address_in",
    "make_mask",
    "mask",
    "read_instances",
    "read_view",
]

Mask: TypeAlias = "Callable[[str], str]"

# A name is taken apart at its underscores: `root_password`, `api_token_secret`, `client_key`.
_SECRET_WORDS = re.compile(
    r"(^|_)(password|passwords|passwd|passphrase|secret|secrets|token|tokens|private_key|private_key_\w+|"
    r"api_key|access_key|secret_key|client_key|encryption_key|shared_key|psk|credential|credentials|"
    r"kubeconfig|kubeconfig_raw|talosconfig|machine_secrets|vault_key)(_|$)"
)
# Names that hold such a word and no secret.
_PUBLIC_WORDS = re.compile(r"(_id|_ids|_name|_names|_type|_length|_version|_count|_expiry|_arn|public_key)$")
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY")


class EncryptedStateError(StateRefusedError):
    """The engine encrypted the state, so that no one without its key can see what is in it."""

    code = "E-STATE-ENCRYPTED"
    summary = "The state is encrypted by the engine"
    default_remedy = "Look at it with the engine, which has the key: `tofu show`, `tofu state list`."


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One instance of a resource; its representation shows no value.

    Attributes:
        address: Where it is in the configuration; a deposed one says so.
        mode: `managed`, or `data`.
        type: The type of the resource.
        provider: The provider that manages it.
        status: `tainted`, or empty.
        is_deposed: Whether it was replaced, and still has to go.
        attributes: Its values, secrets in clear.
        sensitive: The paths that must not be shown.
    """

    address: str
    mode: str
    type: str
    provider: str = ""
    status: str = ""
    is_deposed: bool = False
    attributes: Mapping[str, Any] = field(default_factory=dict, repr=False)
    sensitive: frozenset[Path] = frozenset()

    @property
    def is_tainted(self) -> bool:
        """Whether its creation failed."""
        return self.status == "tainted"

    def hides(self, path: Path) -> bool:
        """Return whether the value at a path must not be shown, if what is around it may be."""
        if not path:
            return False
        last = path[-1]
        return path in self.sensitive or (isinstance(last, str) and _says_secret(last))


@dataclass(frozen=True, slots=True, kw_only=True)
class StateOutput:
    """An output; its representation shows no value."""

    name: str
    value: Any = field(repr=False)
    is_sensitive: bool = False

    @property
    def is_hidden(self) -> bool:
        """Whether its value must not be shown."""
        return self.is_sensitive or _says_secret(self.name)

    def format(self, redact: Mask, *, is_hidden: bool = False) -> Any:
        """Return its value with everything hidden that must not be shown, or all of it on demand."""
        if is_hidden or self.is_hidden:
            return SENSITIVE
        return mask(self.value, (), _NOBODY, redact)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateView:
    """What a plain state describes."""

    serial: int
    lineage: str
    instances: Mapping[str, Instance]
    outputs: Mapping[str, StateOutput]

    def secrets(self) -> Iterator[str]:
        """Yield every text that must not be shown, wherever else it turns up."""
        for instance in self.instances.values():
            yield from _secrets_in(instance.attributes, (), instance)
        for output in self.outputs.values():
            if output.is_hidden:
                yield from _texts(output.value)


_NOBODY = Instance(address="", mode="", type="")


def read_view(data: bytes) -> StateView:
    """Read a state.

    Raises:
        BodyRefusedError: It is none.
        EncryptedStateError: The engine encrypted it.
    """
    document = read_document(data)
    if document.is_encrypted:
        raise EncryptedStateError(f"Serial {document.serial} of {document.lineage} is encrypted.")
    found = parse_json(data, LARGE)
    instances = read_instances(found)
    try:
        outputs = {
            name: StateOutput(name=name, value=row.get("value"), is_sensitive=bool(row.get("sensitive")))
            for name, row in (found.get("outputs") or {}).items()
        }
    except (KeyError, TypeError, AttributeError) as err:
        raise _make_shape_error() from err
    return StateView(serial=document.serial, lineage=document.lineage, instances=instances, outputs=outputs)


def read_instances(document: Mapping[str, Any]) -> dict[str, Instance]:
    """Return the resources of a plain state by address.

    Raises:
        BodyRefusedError: They are not what a state has there.
    """
    try:
        return {one.address: one for row in document.get("resources") or () for one in _instances(row)}
    except (KeyError, TypeError, AttributeError) as err:
        raise _make_shape_error() from err


def _make_shape_error() -> BodyRefusedError:
    return BodyRefusedError("The resources or outputs of the state are not what a state has there.")


def make_mask(views: Iterable[StateView]) -> Mask:
    """Return what hides the secrets of states in any text."""
    # A state repeats the same few texts thousands of times, and looking into one takes long.
    return functools.lru_cache(maxsize=None)(Redactor({text for view in views for text in view.secrets()}))


def mask(value: Any, path: Path, owner: Instance, redact: Mask) -> Any:
    """Return a value of an instance with everything hidden that must not be shown."""
    if owner.hides(path):
        return SENSITIVE
    if isinstance(value, dict):
        return {key: mask(item, (*path, key), owner, redact) for key, item in value.items()}
    if isinstance(value, list):
        return [mask(item, (*path, number), owner, redact) for number, item in enumerate(value)]
    # Nothing says that it is secret, but it may hold a secret all the same.
    if isinstance(value, str):
        return SENSITIVE if _PRIVATE_KEY.search(value) else redact(value)
    return value


@functools.lru_cache(maxsize=10_000)
def _says_secret(name: str) -> bool:
    lowered = name.lower()
    return bool(_SECRET_WORDS.search(lowered)) and not _PUBLIC_WORDS.search(lowered)


def address_in(row: Mapping[str, Any], instance: Mapping[str, Any]) -> str:
    """Return the address of an instance of a row of a state; a replaced one that still has to go says so."""
    module = f"{row['module']}." if row.get("module") else ""
    base = f"{module}{'data.' if row['mode'] == 'data' else ''}{row['type']}.{row['name']}"
    deposed = instance.get("deposed")
    return f"{base}{_index(instance.get('index_key'))}{f' (deposed {deposed})' if deposed else ''}"


def _instances(row: Mapping[str, Any]) -> Iterator[Instance]:
    mode, kind = row["mode"], row["type"]
    for instance in row.get("instances") or ():
        yield Instance(
            address=address_in(row, instance),
            mode=mode,
            type=kind,
            provider=row.get("provider", ""),
            status=instance.get("status") or "",
            is_deposed="deposed" in instance,
            # Old Terraform wrote flat attributes; both are shown alike.
            attributes=instance.get("attributes") or instance.get("attributes_flat") or {},
            sensitive=frozenset(_path(steps) for steps in instance.get("sensitive_attributes") or ()),
        )


def _index(key: str | int | None) -> str:
    if key is None:
        return ""
    return f"[{key}]" if isinstance(key, int) else f"[{orjson.dumps(key).decode()}]"


def _path(steps: list[Mapping[str, Any]]) -> Path:
    """Return a path of attributes from the engine's steps: names, and indexes with their type beside them."""
    path: list[str | int] = []
    for step in steps:
        value = step["value"]
        path.append(value["value"] if isinstance(value, dict) else value)
    return tuple(path)


def _secrets_in(value: Any, path: Path, owner: Instance) -> Iterator[str]:
    if owner.hides(path):
        yield from _texts(value)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _secrets_in(item, (*path, key), owner)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _secrets_in(item, (*path, number), owner)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
