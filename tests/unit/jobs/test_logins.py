"""The login of a job's registry: sealed while it waits and for its retries, given to its hosts, gone with its end."""

import pytest

from tests.unit.clusters.test_images import DIGEST, KEYS, LOGIN, TAG, found, keyed
from tests.unit.clusters.world import HOST, OTHER, principal
from tests.unit.jobs.world import World, world
from windrow_master.fleet.states import LinkEvent
from windrow_master.jobs.model import JobRequest, JobState
from windrow_proto.errors import BadProof, Conflict, InvalidInput
from windrow_proto.keys import SigningKey
from windrow_proto.model import CommandKind
from windrow_proto.sealed import LOGIN_MAX, RegistryLogin, SealKey

S = JobState


def shown(it: World, host_id) -> RegistryLogin:
    """The login that this host finds in its latest command."""
    spec = it.market.spec(host_id)
    return KEYS[host_id].open_login(spec.registry_login, spec.workload_id)


def kept_in(folder) -> bytes:
    """Returns the texts on the disk: rows, events, the audit log."""
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def test_a_job_keeps_its_login_sealed_until_its_host_is_known_for_its_retries_and_no_longer(tmp_path) -> None:
    async with world(tmp_path) as it:
        job = await it.submit(image=TAG, retries=1, login=LOGIN)
        await it.tick()
        assert (await it.get(job)).state is S.QUEUED
        it.start_again()
        it.market.join()
        keyed(it.market, HOST)
        await it.tick()
        assert shown(it, HOST) == LOGIN
        found(it.market, HOST)
        it.run()
        await it.tick()

        it.market.join(OTHER)
        keyed(it.market, OTHER)
        it.market.link(LinkEvent.SILENT)
        it.market.link(LinkEvent.SILENT_LONG)
        await it.tick()
        assert (shown(it, OTHER), it.market.spec(OTHER).image) == (LOGIN, TAG)
        sealed = (await it.get(job)).login
        assert sealed and LOGIN.password not in repr(await it.get(job))
        with pytest.raises(BadProof):
            SealKey.of(it.signing).open_login(sealed, "job_other")

        await it.jobs.cancel(principal(), job.job_id)
        await it.tick(2)
        assert ((await it.get(job)).state, (await it.get(job)).login) == (S.CANCELLED, b"")
        kept = kept_in(tmp_path)
        assert TAG.encode() in kept, "control: this is where it would be"
        assert LOGIN.password.encode() not in kept


@pytest.mark.parametrize("state", ["waits", "found no place", "was placed"])
async def test_however_a_job_ends_its_login_goes_and_running_it_again_names_the_way_out(tmp_path, state) -> None:
    async with world(tmp_path) as it:
        if state == "was placed":
            it.market.join()
            keyed(it.market, HOST)
        job = await it.submit(image=TAG, login=LOGIN, await_files=state == "waits")
        await it.tick(2)
        await it.jobs.cancel(principal(), job.job_id)
        await it.tick(2)

        assert ((await it.get(job)).state, (await it.get(job)).login) == (S.CANCELLED, b"")
        with pytest.raises(Conflict, match="submit the job again"):
            await it.jobs.rerun(principal(), job.job_id)
        plain = await it.submit(image=TAG)
        await it.jobs.cancel(principal(), plain.job_id)
        await it.jobs.rerun(principal(), plain.job_id)


async def test_a_master_with_another_key_fails_the_job_and_says_what_to_do(tmp_path) -> None:
    async with world(tmp_path) as it:
        job = await it.submit(image=TAG, login=LOGIN)
        it.signing = SigningKey.generate()
        it.start_again()
        it.market.join()
        keyed(it.market, HOST)
        await it.tick(2)

        ended = await it.get(job)
        assert (ended.state, ended.login) == (S.FAILED, b"")
        assert "submit it again with the login" in ended.reason
        assert it.market.commands(CommandKind.CREATE) == []


async def test_a_host_that_names_no_key_is_given_none_and_the_job_waits_for_one_that_does(tmp_path) -> None:
    async with world(tmp_path) as it:
        it.market.join(more={})
        job = await it.submit(image=TAG, login=LOGIN)
        await it.tick(2)
        waiting = await it.get(job)
        assert waiting.state is S.QUEUED and "too old" in waiting.reason
        keyed(it.market, HOST)
        it.start_again()
        await it.tick()
        assert shown(it, HOST) == LOGIN


async def test_all_of_an_array_have_it_and_the_same_key_again_makes_none(tmp_path) -> None:
    async with world(tmp_path) as it:
        for host_id in (HOST, OTHER):
            it.market.join(host_id)
            keyed(it.market, host_id)
        asked = JobRequest(argv=("true",), array_size=2, image=f"train@{DIGEST}")
        first = await it.jobs.submit(principal(), asked, "key", login=LOGIN)
        again = await it.jobs.submit(principal(), asked, "key", login=RegistryLogin("another", "login"))
        assert [one.job for one in first] == [one.job for one in again]
        await it.tick(2)
        assert [shown(it, host_id) for host_id in (HOST, OTHER)] == [LOGIN, LOGIN]


async def test_a_login_that_is_too_long_is_refused_and_nothing_is_made(tmp_path) -> None:
    async with world(tmp_path) as it:
        with pytest.raises(InvalidInput, match="at most"):
            await it.submit(image=TAG, login=RegistryLogin("a", "b" * LOGIN_MAX))
        assert await it.jobs.list(principal(), None, 10) == []
