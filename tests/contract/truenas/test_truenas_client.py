"""The client of TrueNAS against the double, over each protocol that a release has."""

from __future__ import annotations

import pytest
from tests.support.truenas import run_truenas

from pvelab.truenas.login import USER
from pvelab.truenas.service import Release
from stackyard.base.errors import UsageError
from stackyard.base.serving import make_certificate
from stackyard.clients.truenas import (
    DatasetProperties,
    TrueNasBusyError,
    TrueNasCertificateError,
    TrueNasClient,
    TrueNasEndpoint,
    TrueNasLoginError,
    TrueNasRefusedError,
    TrueNasUnreachableError,
)

GIB = 2**30


# The last one wants the name of a user with each key; `run_truenas` gives it.
each_release = pytest.mark.parametrize("release", list(Release), ids=lambda release: release.name.lower())


@each_release
async def test_a_created_dataset_is_found_with_its_properties(release: Release) -> None:
    async with run_truenas(release) as nas:
        wanted = DatasetProperties(
            quota=100 * GIB,
            compression="ZSTD",
            sync="ALWAYS",
            recordsize="1M",
            atime="OFF",
            comment="for CSI",
        )
        async with TrueNasClient(nas.endpoint()) as client:
            assert await client.find_dataset("tank/k8s") is None
            await client.create_dataset("tank/k8s", wanted)
            found = await client.find_dataset("tank/k8s")
        assert found is not None
        assert found.properties == wanted
        assert not found.is_volume


@each_release
async def test_what_is_not_said_is_inherited(release: Release) -> None:
    async with run_truenas(release) as nas:
        async with TrueNasClient(nas.endpoint()) as client:
            await client.create_dataset("tank/k8s", DatasetProperties(compression="ZSTD"))
            await client.create_dataset("tank/k8s/volumes", DatasetProperties())
            found = await client.find_dataset("tank/k8s/volumes")
        assert found is not None
        assert found.properties.compression == "ZSTD"
        assert found.properties.quota == 0


@each_release
async def test_an_update_changes_what_is_said_and_nothing_else(release: Release) -> None:
    async with run_truenas(release) as nas:
        async with TrueNasClient(nas.endpoint()) as client:
            await client.create_dataset("tank/k8s", DatasetProperties(compression="ZSTD", quota=2 * GIB))
            await client.update_dataset("tank/k8s", DatasetProperties(quota=3 * GIB))
            found = await client.find_dataset("tank/k8s")
        assert found is not None
        assert (found.properties.quota, found.properties.compression) == (3 * GIB, "ZSTD")


@each_release
async def test_a_missing_parent_is_refused_in_the_words_of_truenas(release: Release) -> None:
    async with run_truenas(release) as nas, TrueNasClient(nas.endpoint()) as client:
        with pytest.raises(TrueNasRefusedError, match=r"Parent dataset \(tank/a\) does not exist"):
            await client.create_dataset("tank/a/b", DatasetProperties())
        with pytest.raises(TrueNasRefusedError, match=r"zpool \(flash\) does not exist"):
            await client.create_dataset("flash/a", DatasetProperties())


@each_release
async def test_a_second_creation_is_refused(release: Release) -> None:
    async with run_truenas(release) as nas, TrueNasClient(nas.endpoint()) as client:
        await client.create_dataset("tank/a", DatasetProperties())
        with pytest.raises(TrueNasRefusedError, match="already exists"):
            await client.create_dataset("tank/a", DatasetProperties())


@each_release
async def test_a_wrong_key_is_an_error_that_does_not_show_it(release: Release) -> None:
    async with run_truenas(release) as nas:
        with pytest.raises(TrueNasLoginError) as caught:
            async with TrueNasClient(nas.endpoint(api_key="1-wrong-key")):
                pass
        assert "wrong-key" not in str(caught.value)
        assert "wrong-key" not in repr(nas.endpoint(api_key="1-wrong-key"))


@each_release
async def test_a_certificate_that_nobody_vouches_for_is_refused(release: Release) -> None:
    async with run_truenas(release) as nas:
        with pytest.raises(TrueNasCertificateError, match="cannot be verified"):
            async with TrueNasClient(nas.endpoint(fingerprint="")):
                pass


@each_release
async def test_another_fingerprint_is_refused(release: Release) -> None:
    async with run_truenas(release) as nas:
        other = make_certificate(["localhost"]).fingerprint
        with pytest.raises(TrueNasCertificateError, match="not the one given"):
            async with TrueNasClient(nas.endpoint(fingerprint=other)):
                pass


@each_release
async def test_an_authority_vouches_for_a_certificate(release: Release) -> None:
    async with run_truenas(release) as nas:
        authority = nas.certificate.certificate_pem.decode()
        async with TrueNasClient(nas.endpoint(fingerprint="", authority=authority)) as client:
            assert await client.find_dataset("tank") is not None


@each_release
async def test_a_lost_answer_is_an_error_although_the_call_was_done(release: Release) -> None:
    async with run_truenas(release) as nas:
        async with TrueNasClient(nas.endpoint()) as client:
            nas.lab.add_fault("truenas", how="lost-answer", path="pool.dataset.create", times=1)
            nas.lab.add_fault("truenas", how="lost-answer", path="/api/v2.0/pool/dataset", times=1)
            with pytest.raises(TrueNasUnreachableError, match="broke the connection"):
                await client.create_dataset("tank/a", DatasetProperties())
        async with TrueNasClient(nas.endpoint()) as client:
            assert await client.find_dataset("tank/a") is not None


@each_release
async def test_a_truenas_that_is_down_is_unreachable(release: Release) -> None:
    async with run_truenas(release) as nas:
        nas.lab.add_fault("truenas", how="down")
        with pytest.raises(TrueNasUnreachableError):
            async with TrueNasClient(nas.endpoint()):
                pass


async def test_too_many_logins_are_refused_for_a_while() -> None:
    async with run_truenas() as nas:
        for _ in range(20):
            async with TrueNasClient(nas.endpoint()):
                pass
        with pytest.raises(TrueNasBusyError, match="Rate Limit"):
            async with TrueNasClient(nas.endpoint()):
                pass


@pytest.mark.parametrize("url", ["http://nas.lan", "nas.lan", "https://nas.lan/ui", "https://root@nas.lan"])
async def test_an_address_without_tls_or_with_more_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="https://HOST"):
        async with TrueNasClient(TrueNasEndpoint(url=url, api_key="1-key")):
            pass


async def test_a_release_that_wants_the_name_of_a_user_says_so_and_takes_it() -> None:
    async with run_truenas(Release.LOGIN_EX) as nas:
        with pytest.raises(TrueNasLoginError, match="name of the user") as caught:
            async with TrueNasClient(nas.endpoint(user="")):
                pass
        assert "`user: NAME`" in caught.value.remedy
        with pytest.raises(TrueNasLoginError, match=r"key of mallory: AUTH_ERR"):
            async with TrueNasClient(nas.endpoint(user="mallory")):
                pass


async def test_the_name_of_a_user_works_with_releases_before_as_well() -> None:
    async with run_truenas(Release.BOTH) as nas, TrueNasClient(nas.endpoint(user=USER)) as client:
        assert await client.find_dataset("tank") is not None
