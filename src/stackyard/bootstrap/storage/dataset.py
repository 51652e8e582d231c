"""Datasets are there, with the properties that they are to have."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.base.backoff import Backoff
from stackyard.base.errors import StackyardError
from stackyard.bootstrap.step import Presence, absent, present, unknown
from stackyard.clients.truenas import TrueNasClient, TrueNasUnreachableError

if TYPE_CHECKING:
    from stackyard.bootstrap.step import Observation, Report
    from stackyard.clients.truenas import DatasetProperties, TrueNasEndpoint

__all__ = ["DatasetDiffersError", "DatasetMissingError", "DatasetStep", "WantedDataset"]

# Each attempt may log in, and TrueNAS refuses everybody for ten minutes after 20 logins in a minute.
_PAUSES = Backoff(2.0, 15.0)


class DatasetDiffersError(StackyardError):
    """A dataset is there and is not as it is to be, and nobody said that it may be changed."""

    code = "E-STORAGE-DIFFERS"
    summary = "A dataset is not as bootstrap.yaml describes it"
    default_remedy = (
        "Write what is there into bootstrap.yaml, or add `update: true` to the dataset to have its "
        "properties changed. Nothing was changed."
    )


class DatasetMissingError(StackyardError):
    """A dataset was made, and TrueNAS does not show it."""

    code = "E-STORAGE-MISSING"
    summary = "A dataset is not as it was made"
    default_remedy = "Look at the dataset in TrueNAS: another program may have removed or changed it."


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedDataset:
    """A dataset that is to be there.

    Attributes:
        name: Its full name, `tank/k8s`.
        properties: What it is to have.
        may_update: Whether properties of one that is there may be changed.
    """

    name: str
    properties: DatasetProperties
    may_update: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetStep:
    """Creates datasets that are missing.

    Attributes:
        endpoint: The TrueNAS.
        datasets: The datasets, each after its parent.
        patience_s: How long lost connections are put up with.
    """

    endpoint: TrueNasEndpoint = field(repr=False)
    datasets: tuple[WantedDataset, ...]
    patience_s: float = 120.0
    name: str = "datasets"

    async def look(self) -> Observation:
        """See which datasets are missing or different; see `Step.look`.

        Raises:
            DatasetDiffersError: One is different, and may not be changed.
            TrueNasError: TrueNAS refuses the key, or the question.
        """
        try:
            async with TrueNasClient(self.endpoint) as client:
                reasons = [await _find_reason(client, one) for one in self.datasets]
        except TrueNasUnreachableError as err:
            return unknown(err.detail)
        missing = [reason for reason in reasons if reason]
        return absent("; ".join(missing)) if missing else present()

    async def do(self, report: Report) -> None:
        """Create and change datasets; see `Step.do`.

        An answer that is lost says nothing of whether the call was done: what is there is asked again.

        Raises:
            DatasetDiffersError: One is different, and may not be changed.
            TrueNasError: TrueNAS refuses a call, or is not reached in time.
        """
        ends = time.monotonic() + self.patience_s
        for pause_s in _PAUSES:
            try:
                await self._complete(report)
            except TrueNasUnreachableError as err:
                if time.monotonic() + pause_s > ends:
                    raise
                report(err.detail)
                await asyncio.sleep(pause_s)
            else:
                return

    async def _complete(self, report: Report) -> None:
        async with TrueNasClient(self.endpoint) as client:
            for one in self.datasets:
                if not await _find_reason(client, one):
                    continue
                report(f"TrueNAS to make {one.name}")
                if await client.find_dataset(one.name) is None:
                    await client.create_dataset(one.name, one.properties)
                else:
                    await client.update_dataset(one.name, one.properties)

    async def prove(self, report: Report) -> None:
        """Ask for all of them once more; see `Step.prove`.

        Raises:
            DatasetMissingError: One is not there.
            TrueNasError: TrueNAS does not answer.
        """
        report("TrueNAS to show the datasets")
        found = await self.look()
        if found.presence is Presence.UNKNOWN:
            raise TrueNasUnreachableError(found.reason)
        if found.presence is Presence.ABSENT:
            raise DatasetMissingError(found.reason)


async def _find_reason(client: TrueNasClient, wanted: WantedDataset) -> str:
    """Return why a dataset is not as it is to be; empty if it is.

    Raises:
        DatasetDiffersError: It is there, is different, and may not be changed.
    """
    found = await client.find_dataset(wanted.name)
    if found is None:
        return f"{wanted.name} is not there"
    if found.is_volume or found.is_locked:
        how = "is a volume, which holds no files" if found.is_volume else "is locked: its key is not loaded"
        raise DatasetDiffersError(
            f"{wanted.name} {how}.",
            remedy="Unlock it in TrueNAS, or name another dataset. Nothing was changed.",
        )
    differences = wanted.properties.differences_of(found.properties)
    if not differences:
        return ""
    said = ", ".join(
        f"{name} is {there} and is to be {meant}" for name, (there, meant) in differences.items()
    )
    if not wanted.may_update:
        raise DatasetDiffersError(f"{wanted.name}: {said}.")
    return f"{wanted.name}: {said}"
