"""The image of a cluster: one digest for all its hosts and attempts, and logins that only their host can read."""

from dataclasses import replace

import pytest

from tests.unit.clusters.test_over_hosts import by_rank, gang, look, lose, met
from tests.unit.clusters.world import HOST, OTHER, key_of, market_world, principal
from windrow_master.clusters.images import pin_of, pins
from windrow_master.clusters.model import ClusterKind, ClusterPhase, ClusterRequest
from windrow_master.fleet.repository import HostRepository
from windrow_proto.errors import BadProof, Conflict, InvalidInput
from windrow_proto.model import CommandKind, CommandPhase, WorkloadPhase
from windrow_proto.sealed import SEAL_KEY, RegistryLogin

THIRD = "host_c"
DIGEST = "sha256:" + "1f" * 32
TAG, PINNED = "reg.example/train:1", f"reg.example/train:1@{DIGEST}"
LOGIN = RegistryLogin("somebody", "their-password")
KEYS = {host: key_of(host) for host in (HOST, OTHER, THIRD)}


@pytest.fixture
def m(tmp_path):
    with market_world(tmp_path) as made:
        for at, host_id in enumerate((HOST, OTHER, THIRD)):
            made.join(host_id)
            met(made, host_id, f"10.0.0.{at + 1}")
        yield made


def keyed(m, host_id, *, is_old=False):
    """The host names its key for secrets, as its agent does; an old one does not."""

    def change(uow):
        told = uow[HostRepository].get(host_id).inventory
        more = {} if is_old else {SEAL_KEY: KEYS[host_id].public}
        m.fleet.hosts.inventory(uow, host_id, replace(told, more=more))

    m.write(change)


def found(m, host_id, image=PINNED, step="pulling"):
    m.status(CommandKind.CREATE, CommandPhase.RUNNING, host_id, step=step, result={"image": image} if image else {})


async def test_the_digest_that_one_host_found_is_shown_and_decides_for_no_other_host(m):
    view = await gang(m, 1, image=TAG, argv=("train",), restart_members=True)
    (first,) = by_rank(view).values()
    assert m.spec(first.host_id).image == TAG

    found(m, first.host_id)
    spec = m.spec(first.host_id)
    m.report(spec, WorkloadPhase.WAITING_MEMBERS, first.host_id)
    m.report(spec, WorkloadPhase.RUNNING, first.host_id)
    seen = await look(m, view)
    assert [one.image for one in seen.workloads] == [PINNED]
    assert PINNED in [step.detail for step in seen.cluster.steps if step.name == "image"]

    lose(m, first.host_id)
    for _ in range(3):
        await m.clusters.tick()

    new = by_rank(await look(m, view))[0]
    assert new.host_id != first.host_id
    assert m.spec(new.host_id).image == TAG


async def test_the_digest_that_two_hosts_found_by_themselves_is_what_a_third_is_told_to_run(m):
    view = await gang(m, 2, image=TAG, kind=ClusterKind.RAY, argv=())
    hosts = [one.host_id for one in by_rank(view).values()]
    for host_id in hosts:
        assert m.spec(host_id).image == TAG
        found(m, host_id)
        m.report(m.spec(host_id), WorkloadPhase.WAITING_MEMBERS, host_id)
    for host_id in hosts:
        m.report(m.spec(host_id), WorkloadPhase.RUNNING, host_id)
    assert (await look(m, view)).cluster.phase is ClusterPhase.RUNNING

    lose(m, hosts[1])
    for _ in range(3):
        await m.clusters.tick()

    (new,) = {one.host_id for one in by_rank(await look(m, view)).values()} - set(hosts)
    assert m.spec(new).image == PINNED


@pytest.mark.parametrize("second", [f"{TAG}@sha256:{'2e' * 32}", ""], ids=["another digest", "none"])
async def test_members_whose_hosts_found_different_images_do_not_start(m, second):
    view = await gang(m, 2, image=TAG, argv=("train",))
    hosts = [one.host_id for one in by_rank(view).values()]
    for host_id, image in zip(hosts, (PINNED, second), strict=True):
        found(m, host_id, image=image)
        m.report(m.spec(host_id), WorkloadPhase.WAITING_MEMBERS, host_id)

    seen = await look(m, view)
    assert seen.cluster.phase is ClusterPhase.FAILED
    assert DIGEST in seen.cluster.reason and "by its digest" in seen.cluster.reason
    assert not [one for one in seen.workloads if one.start_command]


async def test_a_digest_in_the_request_goes_to_the_host_as_it_is(m):
    view = await gang(m, 1, image=PINNED, argv=("train",))

    assert [m.spec(one.host_id).image for one in by_rank(view).values()] == [PINNED]


async def test_a_host_cannot_put_another_image_in_the_place_of_what_was_asked_for(m):
    _, view = await m.clusters.create(principal(), ClusterRequest(image=TAG, argv=("true",)))
    host_id = view.workloads[0].host_id
    for said in (f"reg.example/other:1@{DIGEST}", f"reg.example/train:2@{DIGEST}", "reg.example/train:1@sha256:0", TAG):
        found(m, host_id, image=said)

    assert (await m.workload(view.cluster.cluster_id)).image == TAG


async def test_a_login_is_sealed_to_each_host_for_its_workload_and_kept_in_no_row(m, tmp_path):
    for host_id in KEYS:
        keyed(m, host_id)
    _, view = await m.clusters.create(principal(), ClusterRequest(image=TAG, argv=("train",)), login=LOGIN)

    for one in by_rank(view).values():
        spec = m.spec(one.host_id)
        assert KEYS[one.host_id].open_login(spec.registry_login, spec.workload_id) == LOGIN
        with pytest.raises(BadProof):
            KEYS[one.host_id].open_login(spec.registry_login, "workload_other")
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert TAG.encode() in kept, "control: this is where it would be"
    assert LOGIN.password.encode() not in kept


async def test_a_host_that_names_no_key_gets_no_login_and_the_reason_is_said(m):
    for host_id in KEYS:
        keyed(m, host_id, is_old=True)
    with pytest.raises(Conflict, match="too old"):
        await m.clusters.create(principal(), ClusterRequest(image=TAG, argv=("true",)), login=LOGIN)

    assert set(m.slots().values()) == {"free"}


async def test_a_digest_that_is_none_is_refused(m):
    for image in ("train@sha256:12", "train@latest", f"train@{DIGEST}@{DIGEST}", f"train@md5:{'1f' * 16}"):
        with pytest.raises(InvalidInput):
            await m.clusters.create(principal(), ClusterRequest(image=image, argv=("true",)))


def test_a_pin_is_what_was_asked_for_with_a_digest_and_nothing_else() -> None:
    assert pins(PINNED, TAG)
    assert not pins(PINNED, PINNED) and not pins(TAG, TAG) and not pins(PINNED, "train:1")
    assert pin_of(TAG, ()) == TAG and pin_of("", ()) == ""
