"""Secrets that jobs and clusters name: resolved at the launch, sealed to the one host, in no row."""

from pathlib import Path

import pytest

from tests.unit.clusters.test_over_hosts import look, lose, running
from tests.unit.clusters.test_over_hosts import m as m
from tests.unit.clusters.world import HOST, KEY, OWNER, STRANGER, Market, key_of, principal
from tests.unit.jobs.world import World, world
from windrow_master.clusters.model import ClusterKind, ClusterPhase, ClusterRequest
from windrow_master.clusters.repository import ClusterRepository
from windrow_master.fleet.repository import CommandRepository
from windrow_master.identity.model import Principal
from windrow_master.jobs.model import JobState
from windrow_master.secrets.model import SECRETS_MAX, SecretKind
from windrow_master.secrets.service import SecretService, SecretView
from windrow_master.store.model import AuditQuery
from windrow_proto.errors import InvalidInput, NotFound, TooMany
from windrow_proto.keys import SigningKey
from windrow_proto.model import CommandKind, CommandPhase, WorkloadPhase
from windrow_proto.sealed import RegistryLogin, SealKey
from windrow_proto.wire_command import decode_command

CANARY = "hf_Canary9Sings7In5No3Row1"
OTHER_CANARY = "hf_Canary8Sings6In4No2Row0"
S = JobState


async def kept(it: World, name: str = "HF_TOKEN", value: str = CANARY, **more: object) -> SecretView:
    """Set a secret of the owner, or of another account."""
    who, kind = more.get("who", principal()), more.get("kind", SecretKind.TEXT)
    assert isinstance(who, Principal) and isinstance(kind, SecretKind)
    return await secrets_of(it).set(who, name, kind, value)


def secrets_of(it: World) -> SecretService:
    return SecretService(it.store, KEY)


def bytes_in(folder: Path) -> bytes:
    """Every byte on the disk: the database and its log."""
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


async def test_a_job_is_given_the_present_value_and_the_disk_never_has_it(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        await kept(it)
        job = await it.submit(secrets=("HF_TOKEN", "HF_TOKEN=TOKEN"), env={"MODE": "fast"})
        await it.tick()
        assert (await it.get(job)).state is S.QUEUED
        await kept(it, value=OTHER_CANARY)
        it.market.join()
        await it.tick()

        env = it.market.spec().env
        assert (env["HF_TOKEN"], env["TOKEN"], env["MODE"]) == (OTHER_CANARY, OTHER_CANARY, "fast")
        (command,) = it.market.commands(CommandKind.CREATE)
        assert command.create is not None and "HF_TOKEN" not in command.create.env, "sealed to the host"
        (cluster,) = it.market.read(lambda uow: uow[ClusterRepository].living())
        assert cluster.request.secrets == ("HF_TOKEN", "HF_TOKEN=TOKEN") and "HF_TOKEN" not in cluster.request.env
        disk = bytes_in(tmp_path)
        assert b"HF_TOKEN" in disk, "control: this is where it would be"
        assert CANARY.encode() not in disk and OTHER_CANARY.encode() not in disk
        (one,) = await secrets_of(it).list(principal())
        assert (one.secret.last_used_by, [user.kind for user in one.users]) == (cluster.cluster_id, ["job"])
        said = [
            (row.action, row.subject, row.fields.get("secrets"))
            for row in it.market.read(lambda uow: uow.audit_log.newest(AuditQuery(action="secret"), None, 100))
        ]
        assert ("secret.use", cluster.cluster_id, "HF_TOKEN") in said and len(said) == 3


async def test_once_the_host_has_it_its_command_is_empty_and_a_restart_gives_it_anew(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        await kept(it)
        it.market.join()
        view = await it.market.create(secrets=("HF_TOKEN",))
        spec = it.market.spec()
        it.market.status(CommandKind.CREATE, CommandPhase.SUCCEEDED)
        it.market.report(spec, WorkloadPhase.RUNNING)
        command_id = (await it.market.workload(view.cluster.cluster_id)).create_command
        row = it.market.read(lambda uow: uow[CommandRepository].get(command_id))
        done = decode_command(row.body).create
        assert done is not None and (done.env, done.sealed_env) == ({}, b"")

        await it.market.clusters.stop(principal(), view.cluster.cluster_id)
        it.market.receipt(spec, 1, 1, final=True, end_reason="deleted", exit_code=143)
        it.market.report(spec, WorkloadPhase.GONE)
        it.market.status(CommandKind.DELETE, CommandPhase.SUCCEEDED)
        (one,) = await secrets_of(it).list(principal())
        assert [(user.kind, user.is_waiting) for user in one.users] == [("cluster", True)]
        await secrets_of(it).delete(principal(), "HF_TOKEN")
        with pytest.raises(InvalidInput, match="windrow secret set HF_TOKEN"):
            await it.market.clusters.start(principal(), view.cluster.cluster_id)
        assert (await it.market.cluster(view.cluster.cluster_id)).phase is ClusterPhase.STOPPED
        await kept(it, value=OTHER_CANARY)
        await it.market.clusters.start(principal(), view.cluster.cluster_id)
        assert it.market.spec().env["HF_TOKEN"] == OTHER_CANARY


async def test_work_that_names_no_secret_of_its_own_project_is_refused_with_the_way_out(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        await kept(it, "THEIRS", who=principal(STRANGER))
        await kept(it, "GHCR", "me:password", kind=SecretKind.REGISTRY_LOGIN)
        await kept(it)
        for name in ("NONE", "THEIRS"):
            for asked in (it.submit(secrets=(name,)), it.market.create(secrets=(name,))):
                with pytest.raises(InvalidInput, match=f"windrow secret set {name}") as refused:
                    await asked
                assert refused.value.subject == name
            with pytest.raises(InvalidInput, match=name):
                await it.market.clusters.plan(principal(), ClusterRequest(argv=("true",), secrets=(name,)))
        with pytest.raises(InvalidInput, match="--registry-secret GHCR"):
            await it.submit(secrets=("GHCR",))
        with pytest.raises(InvalidInput, match="no registry login"):
            await it.submit(image="lab", registry_secret="HF_TOKEN")
        with pytest.raises(InvalidInput, match="left out beside registry_login"):
            await it.submit(image="lab", registry_secret="GHCR", login=RegistryLogin("a", "b"))
        assert await it.jobs.list(principal(), None, 10) == []
        assert await it.market.clusters.list(principal(), None, 10) == []


async def test_a_secret_that_is_deleted_while_a_job_waits_fails_the_job_with_its_name(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        await kept(it)
        job = await it.submit(secrets=("HF_TOKEN",))
        plain = await it.submit()
        await it.tick()
        view = await secrets_of(it).delete(principal(), "HF_TOKEN")
        assert [(user.kind, user.id, user.is_waiting) for user in view.users] == [("job", job.job_id, True)]
        it.market.join()
        await it.tick(2)

        ended = await it.get(job)
        assert ended.state is S.FAILED
        assert ended.reason == "There is no secret HF_TOKEN in this project. Set it: windrow secret set HF_TOKEN"
        assert (await it.get(plain)).state is S.STARTING
        with pytest.raises(InvalidInput, match="HF_TOKEN"):
            await it.jobs.rerun(principal(), job.job_id)
        await kept(it, value=OTHER_CANARY)
        await it.jobs.rerun(principal(), job.job_id)


async def test_a_job_that_waits_fails_too_while_no_host_has_a_place(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        await kept(it)
        job = await it.submit(secrets=("HF_TOKEN",))
        await it.tick()
        await secrets_of(it).delete(principal(), "HF_TOKEN")
        for _ in range(10):
            it.clock.advance(60 * 10**9)
            await it.tick()
        assert (await it.get(job)).state is S.FAILED


async def test_a_master_with_another_key_fails_the_job_and_says_what_to_do(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        await kept(it)
        job = await it.submit(secrets=("HF_TOKEN",))
        thief = SecretService(it.store, SealKey.of(SigningKey.generate()))
        it.market.clusters._secrets = it.market.clusters._launcher._named = thief
        it.market.join()
        await it.tick(2)

        ended = await it.get(job)
        assert ended.state is S.FAILED and "Set it again: windrow secret set HF_TOKEN" in ended.reason
        assert it.market.commands(CommandKind.CREATE) == []
        assert [one.secret.name for one in await thief.list(principal())] == ["HF_TOKEN"], "names are still listed"


async def test_the_login_of_a_registry_is_a_secret_that_the_image_is_pulled_with(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        await kept(it, "GHCR", "me:pass:word", kind=SecretKind.REGISTRY_LOGIN)
        it.market.join()
        job = await it.submit(image="private/image", registry_secret="GHCR")
        await it.tick()
        spec = it.market.spec()
        assert key_of(HOST).open_login(spec.registry_login, spec.workload_id) == RegistryLogin("me", "pass:word")
        assert spec.env.keys().isdisjoint({"GHCR"})
        await it.jobs.cancel(principal(), job.job_id)
        await it.tick(2)
        await it.jobs.rerun(principal(), job.job_id)
        assert b"pass:word" not in bytes_in(tmp_path)


async def test_more_than_reaches_a_host_is_refused_when_it_is_asked_for(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        for number in range(5):
            await kept(it, f"BIG_{number}", "x" * 60_000)
        with pytest.raises(InvalidInput, match="Name fewer"):
            await it.submit(secrets=tuple(f"BIG_{number}" for number in range(5)))
        await it.submit(secrets=tuple(f"BIG_{number}" for number in range(4)))
        await it.tick()
        assert len(it.market.spec().env["BIG_3"]) == 60_000


async def test_a_lost_member_is_replaced_once_its_secret_is_there_and_until_then_the_steps_say_so(m: Market) -> None:
    named = SecretService(m.store, KEY)
    await named.set(principal(), "HF_TOKEN", SecretKind.TEXT, CANARY)
    view = await running(m, kind=ClusterKind.DASK, argv=(), secrets=("HF_TOKEN",))
    held = {one.rank: one.host_id for one in view.workloads}
    await named.delete(principal(), "HF_TOKEN")
    lose(m, held[1])
    for _ in range(3):
        await m.clusters.tick()
    version = (await look(m, view)).cluster.version
    await m.clusters.tick()
    assert (await look(m, view)).cluster.version == version, "a further try writes nothing"
    (step,) = [one for one in (await look(m, view)).cluster.steps if "HF_TOKEN" in one.detail]
    assert step.detail.endswith("Set it: windrow secret set HF_TOKEN")

    await named.set(principal(), "HF_TOKEN", SecretKind.TEXT, OTHER_CANARY)
    await m.clusters.tick()
    (fresh,) = [one for one in (await look(m, view)).workloads if one.host_id not in held.values()]
    assert (fresh.rank, m.spec(fresh.host_id).env["HF_TOKEN"]) == (1, OTHER_CANARY)


async def test_a_project_has_so_many_secrets_and_replacing_one_is_no_more(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        made = await kept(it, "A_0")
        for number in range(1, SECRETS_MAX):
            await kept(it, f"A_{number}")
        with pytest.raises(TooMany, match="windrow secret rm"):
            await kept(it, "ONE_MORE")
        it.clock.advance(10**9)
        again = await kept(it, "A_0", OTHER_CANARY)
        assert again.secret.created_at_ns == made.secret.created_at_ns < again.secret.updated_at_ns
        with pytest.raises(NotFound, match="windrow secret ls"):
            await secrets_of(it).get(principal(STRANGER), "A_0")
        with pytest.raises(NotFound):
            await secrets_of(it).delete(principal(STRANGER), "A_0")
        assert len(await secrets_of(it).list(principal(OWNER))) == SECRETS_MAX
