"""One contract of backends: the cloud in memory, EC2 on moto and a box behind a real sshd keep the same promises."""

import asyncio
import base64
import logging
import re
import socket
import sys
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.support.backend_worlds import WORLDS, Ec2World, SshWorld, World, numbers, order, rank
from tests.support.memory_backend import Fault
from tests.support.moto_cloud import Cut, price_book
from tests.support.ports import own_port
from tests.waiting import poll_async
from windrow_master.hybrid.backends.bootstrap import FOLDER, user_data
from windrow_master.hybrid.backends.ec2 import Ec2
from windrow_master.hybrid.backends.kinds import KINDS
from windrow_master.hybrid.backends.port import (
    Backend,
    Doubtful,
    Machine,
    MachineState,
    Order,
    PurchaseId,
    Refused,
    RefusedFor,
    Wanted,
)
from windrow_master.prices.offers import Kind
from windrow_proto.clock import SystemClock
from windrow_proto.units import HOUR, SECOND, Microcents

REFUSALS = [(name, reason) for name, world in WORLDS.items() for reason in world.reasons]


@pytest.fixture(params=WORLDS)
def world(request: pytest.FixtureRequest) -> World:
    found: World = request.getfixturevalue(f"{request.param}_world")
    return found


@pytest.fixture
async def backend(world: World):
    found = world.backend()
    yield found
    await found.close()


@pytest.fixture
def market() -> str:
    return f"market-{next(numbers)}"


async def first(world: World, backend: Backend, market: str) -> Order:
    return order(world, (await backend.offers(Wanted()))[0], market)


async def seen(world: World, backend: Backend, market: str) -> Sequence[Machine]:
    """The machines when the lists have caught up."""
    world.wait()
    return await backend.describe(market)


async def test_offers_have_a_price_a_currency_a_date_and_are_the_cheapest_first(backend: Backend) -> None:
    found = await backend.offers(Wanted())

    assert found
    assert all(one.price_per_hour > 0 and len(one.currency) == 3 and one.priced_on.year >= 2025 for one in found)
    assert [one.price_per_hour for one in found] == sorted(one.price_per_hour for one in found)
    assert len({one.offer_id for one in found}) == len(found)


async def test_offers_are_those_that_are_asked_for(backend: Backend) -> None:
    one = (await backend.offers(Wanted()))[-1]

    assert await backend.offers(Wanted(offer_id=one.offer_id)) == [one]
    assert one in await backend.offers(Wanted(gpu=one.gpu, gpus=one.gpu_count, regions=frozenset({one.region})))
    assert await backend.offers(Wanted(cpus=100_000)) == []
    assert await backend.offers(Wanted(regions=frozenset({"nowhere"}))) == []


async def test_a_machine_is_described_with_all_that_its_tags_say(world: World, backend: Backend, market: str) -> None:
    asked = await first(world, backend, market)
    began_ns = world.clock.wall_ns()

    bought = await backend.provision(asked)

    (found,) = await seen(world, backend, market)
    assert found.machine_id == bought.machine_id
    assert (found.market_id, found.purchase_id, found.epoch) == (market, asked.purchase_id, 7)
    assert found.offer_id == asked.offer.offer_id
    assert found.state in (MachineState.PENDING, MachineState.RUNNING)
    assert found.launched_at_ns is not None and abs(found.launched_at_ns - began_ns) < 60e9


async def test_the_same_purchase_twice_is_one_machine(world: World, backend: Backend, market: str) -> None:
    asked = await first(world, backend, market)

    one, two = await backend.provision(asked), await world.backend().provision(asked)

    assert one.machine_id == two.machine_id
    assert len(await seen(world, backend, market)) == 1


async def test_a_lost_answer_is_doubtful_and_asking_again_finds_the_machine(
    world: World, backend: Backend, market: str
) -> None:
    asked = await first(world, backend, market)
    world.then("provision", Fault.LOST)

    with pytest.raises(Doubtful):
        await backend.provision(asked)

    (found,) = await seen(world, backend, market)
    assert found.purchase_id == asked.purchase_id
    assert (await backend.provision(asked)).machine_id == found.machine_id
    assert len(await seen(world, backend, market)) == 1


async def test_a_call_that_never_arrived_is_doubtful_too(world: World, backend: Backend, market: str) -> None:
    asked = await first(world, backend, market)
    world.then("provision", Fault.UNDONE)

    with pytest.raises(Doubtful):
        await backend.provision(asked)

    assert await seen(world, backend, market) == []


@pytest.mark.parametrize(("world", "reason"), REFUSALS, indirect=["world"])
async def test_a_refusal_is_one_of_five_words_and_buys_nothing(
    world: World, backend: Backend, market: str, reason: RefusedFor
) -> None:
    asked = await first(world, backend, market)

    with world.refusing(reason), pytest.raises(Refused) as no:
        await backend.provision(asked)

    assert (no.value.reason, bool(no.value.said)) == (reason, True)
    assert await seen(world, backend, market) == []
    await backend.provision(asked)
    assert len(await seen(world, backend, market)) == 1


async def test_credentials_that_are_not_right_are_refused(world: World, backend: Backend, market: str) -> None:
    asked, stranger = await first(world, backend, market), world.stranger()

    with pytest.raises(Refused) as no:
        await stranger.provision(asked)

    await stranger.close()
    assert no.value.reason is RefusedFor.AUTH
    assert await seen(world, backend, market) == []


async def test_a_machine_that_is_dearer_than_allowed_is_not_bought(world: World, backend: Backend, market: str) -> None:
    on_demand = Wanted(kinds=frozenset({Kind.ON_DEMAND}))
    offer = (await backend.offers(on_demand))[0]

    with pytest.raises(Refused) as no:
        await backend.provision(order(world, offer, market, dearest_per_hour=Microcents(offer.price_per_hour - 1)))

    assert no.value.reason is RefusedFor.PRICE
    assert await seen(world, backend, market) == []


async def ended(world: World, backend: Backend, market: str) -> bool:
    return all(one.state is MachineState.TERMINATED for one in await seen(world, backend, market))


async def test_a_machine_ends_when_asked_and_asking_again_is_fine(world: World, backend: Backend, market: str) -> None:
    asked = await first(world, backend, market)
    bought = await backend.provision(asked)

    await backend.terminate(bought.machine_id)
    await backend.terminate(bought.machine_id)

    await poll_async(lambda: ended(world, backend, market))
    await backend.terminate(bought.machine_id)
    (found,) = await seen(world, backend, market)
    assert (found.purchase_id, found.state) == (asked.purchase_id, MachineState.TERMINATED)
    assert (await backend.provision(asked)).machine_id == bought.machine_id
    assert [one.state for one in await seen(world, backend, market)] == [MachineState.TERMINATED], "nothing new for it"


async def test_a_lost_answer_to_the_end_is_doubtful_and_the_machine_ends(
    world: World, backend: Backend, market: str
) -> None:
    bought = await backend.provision(await first(world, backend, market))
    world.then("terminate", Fault.LOST)

    with pytest.raises(Doubtful):
        await backend.terminate(bought.machine_id)

    await poll_async(lambda: ended(world, backend, market))


async def test_ending_what_nobody_knows_is_fine(backend: Backend) -> None:
    for machine_id in ("i-0123456789abcdef0", "nobody", "purchase-0@nowhere", ""):
        await backend.terminate(machine_id)
        assert await backend.console(machine_id) == ""


async def test_a_list_that_does_not_come_is_doubtful_and_not_empty(world: World, backend: Backend, market: str) -> None:
    await backend.provision(await first(world, backend, market))
    world.wait()
    world.then("describe", Fault.UNDONE)

    with pytest.raises(Doubtful):
        await backend.describe(market)

    assert len(await backend.describe(market)) == 1


async def test_another_market_does_not_see_the_machine(world: World, backend: Backend, market: str) -> None:
    await backend.provision(await first(world, backend, market))

    assert await seen(world, backend, f"not-{market}") == []
    assert list(await backend.leftovers(f"not-{market}")) == []


async def test_a_check_looks_at_the_credentials_first_and_buys_nothing(
    world: World, backend: Backend, market: str
) -> None:
    found = await backend.check()

    assert found[0].what == "credentials" and all(one.is_good or one.way_out for one in found)
    assert found[0].is_good
    assert await seen(world, backend, market) == []


async def test_no_secret_is_in_a_log_or_an_error(world: World, market: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    backend = world.backend()
    asked, said = await first(world, backend, market), [repr(backend)]
    for fault in (Fault.UNDONE, Fault.LOST):
        world.then("provision", fault)
        with pytest.raises(Doubtful) as doubt:
            await backend.provision(asked)
        said.append(repr(doubt.value))
    for reason in world.reasons:
        with world.refusing(reason), pytest.raises(Refused) as no:
            await backend.provision(replace(asked, purchase_id=PurchaseId(f"other-{reason}")))
        said.append(repr(no.value))
        said.append(no.value.said)
    said += map(repr, await backend.check())
    await backend.close()

    told = "\n".join([*said, caplog.text])
    encoded = base64.b64encode(asked.user_data.encode()).decode()[:40]
    assert [secret for secret in (*world.secrets, asked.user_data, encoded) if secret in told] == []


def test_no_level_is_higher_than_what_this_suite_ran() -> None:
    ran = {world.kind: world.level for world in WORLDS.values() if world.level is not None}

    assert ran.keys() == KINDS.keys()
    assert [name for name, kind in KINDS.items() if rank(kind.level) < rank(ran[name])] == []


# ----- EC2 alone -----


async def test_ec2_machines_end_with_their_shutdown_and_show_their_metadata_to_nobody_else(
    ec2_world: Ec2World, market: str
) -> None:
    backend = ec2_world.backend(disk_gib=40)
    spot = (await backend.offers(Wanted(gpus=1, kinds=frozenset({Kind.SPOT}))))[0]
    asked = order(ec2_world, spot, market)

    bought = await backend.provision(asked)

    sent = ec2_world.cloud.bodies[-1]
    assert sent["InstanceInitiatedShutdownBehavior"] == "terminate"
    assert (sent["MetadataOptions.HttpTokens"], sent["MetadataOptions.HttpPutResponseHopLimit"]) == ("required", "1")
    assert not [name for name in sent if name.startswith("IamInstanceProfile")]
    disk = {
        name.rpartition(".")[2]: value for name, value in sent.items() if name.startswith("BlockDeviceMapping.1.Ebs")
    }
    assert disk == {"VolumeSize": "40", "VolumeType": "gp3", "Encrypted": "true", "DeleteOnTermination": "true"}
    assert sent["InstanceMarketOptions.SpotOptions.MaxPrice"] == "0.4422", "the dearest that is allowed, and no bid"
    made = ec2_world.cloud.client()
    (volume,) = made.describe_volumes(Filters=[{"Name": "attachment.instance-id", "Values": [bought.machine_id]}])[
        "Volumes"
    ]
    assert {one["Key"]: one["Value"] for one in volume["Tags"]} == asked.tags
    (found,) = await seen(ec2_world, backend, market)
    assert (found.offer_id, found.zone) == (spot.offer_id, spot.zone)
    await backend.close()


async def test_ec2_prices_of_another_region_are_no_offers_here_and_zones_are_amazons(ec2_world: Ec2World) -> None:
    backend = ec2_world.backend()

    found = await backend.offers(Wanted(gpus=1))

    zones = {one.zone for one in found}
    assert {one.region for one in found} == {"eu-central-1"} and len(zones) == 3
    assert {(one.price_per_hour, one.kind) for one in found} == {(100600000, Kind.ON_DEMAND), (40200000, Kind.SPOT)}
    await backend.close()


@pytest.mark.parametrize("cut", [Cut.HTML, "InternalError"])
async def test_ec2_an_answer_that_says_neither_yes_nor_no_is_doubtful(
    ec2_world: Ec2World, market: str, cut: str
) -> None:
    backend = ec2_world.backend()
    asked = await first(ec2_world, backend, market)
    ec2_world.cloud.then("RunInstances", cut)

    with pytest.raises(Doubtful):
        await backend.provision(asked)

    await backend.close()


async def test_ec2_a_slow_answer_is_doubtful_within_the_deadline(ec2_world: Ec2World, market: str) -> None:
    quick = ec2_world.backend()
    asked = await first(ec2_world, quick, market)
    backend = Ec2(ec2_world.cloud.settings(), ec2_world.clock, price_book(), read_s=0.5)
    ec2_world.cloud.then("RunInstances", Cut.SLOW)

    with pytest.raises(Doubtful):
        await backend.provision(asked)

    ec2_world.cloud.release()  # and then it is made after all
    found = await poll_async(lambda: seen(ec2_world, quick, market))
    assert [one.purchase_id for one in found] == [asked.purchase_id]
    await backend.close()
    await quick.close()


async def test_ec2_asking_again_in_other_words_is_doubtful_since_there_is_a_machine(
    ec2_world: Ec2World, market: str
) -> None:
    backend = ec2_world.backend()
    asked = await first(ec2_world, backend, market)
    await backend.provision(asked)

    with pytest.raises(Doubtful):
        await backend.provision(replace(asked, user_data="#!/bin/sh\necho another\n"))

    assert len(await seen(ec2_world, backend, market)) == 1
    await backend.close()


async def test_ec2_a_list_that_lags_lacks_the_machine_and_has_it_after_the_lag(
    ec2_world: Ec2World, market: str
) -> None:
    backend = ec2_world.backend()
    await backend.provision(await first(ec2_world, backend, market))

    assert await backend.describe(market) == []
    assert len(await seen(ec2_world, backend, market)) == 1
    await backend.close()


async def test_ec2_lists_are_read_to_their_last_page(ec2_world: Ec2World, market: str) -> None:
    backend = ec2_world.backend()
    offer = (await backend.offers(Wanted()))[0]
    wanted = {(await backend.provision(order(ec2_world, offer, market))).machine_id for _ in range(7)}
    ec2_world.wait()
    ec2_world.cloud.page_max = 5
    before = ec2_world.cloud.asked["DescribeInstances"]

    found = await backend.describe(market)

    assert {one.machine_id for one in found} == wanted
    assert ec2_world.cloud.asked["DescribeInstances"] - before >= 2
    await backend.close()


async def test_ec2_a_throttled_list_is_no_empty_list(ec2_world: Ec2World, market: str) -> None:
    backend = ec2_world.backend()
    ec2_world.cloud.then("DescribeInstances", "RequestLimitExceeded")

    with pytest.raises(Refused) as no:
        await backend.describe(market)

    assert no.value.reason is RefusedFor.LIMIT
    await backend.close()


async def test_ec2_without_its_library_says_what_to_install(
    ec2_world: Ec2World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    backend = ec2_world.backend()

    with pytest.raises(Refused, match="pip install boto3"):
        await backend.describe("market")

    (credentials,) = await backend.check()
    assert not credentials.is_good and "pip install boto3" in credentials.said


async def test_ec2_too_much_user_data_is_refused_before_amazon_is_asked(ec2_world: Ec2World, market: str) -> None:
    backend = ec2_world.backend()
    asked = await first(ec2_world, backend, market)
    before = len(ec2_world.cloud.bodies)

    with pytest.raises(Refused) as no:
        await backend.provision(replace(asked, user_data="#" * 16_385))

    assert (no.value.reason, len(ec2_world.cloud.bodies)) == (RefusedFor.LIMIT, before)
    await backend.close()


async def test_ec2_what_no_machine_uses_is_left_over_and_can_be_removed(ec2_world: Ec2World, market: str) -> None:
    backend, amazon = ec2_world.backend(), ec2_world.cloud.client()
    bought = await backend.provision(await first(ec2_world, backend, market))
    tags = [{"Key": "windrow-market", "Value": market}, {"Key": "windrow-purchase", "Value": "gone"}]
    volume = amazon.create_volume(
        AvailabilityZone="eu-central-1a", Size=8, TagSpecifications=[{"ResourceType": "volume", "Tags": tags}]
    )["VolumeId"]
    address = amazon.allocate_address(Domain="vpc", TagSpecifications=[{"ResourceType": "elastic-ip", "Tags": tags}])[
        "AllocationId"
    ]
    subnet = amazon.describe_subnets()["Subnets"][0]["SubnetId"]
    interface = amazon.create_network_interface(
        SubnetId=subnet, TagSpecifications=[{"ResourceType": "network-interface", "Tags": tags}]
    )["NetworkInterface"]["NetworkInterfaceId"]

    found = await backend.leftovers(market)

    assert {(one.kind, one.leftover_id, one.purchase_id) for one in found} == {
        ("volume", volume, "gone"),
        ("address", address, "gone"),
        ("interface", interface, "gone"),
    }
    for one in [*found, *found]:
        await backend.remove(one)
    assert await backend.leftovers(market) == []
    (machine,) = await seen(ec2_world, backend, market)
    assert (machine.machine_id, machine.state) == (bought.machine_id, MachineState.RUNNING)
    await backend.close()


async def test_ec2_a_machine_goes_to_the_subnet_of_its_zone(ec2_world: Ec2World, market: str) -> None:
    subnet = ec2_world.cloud.client().describe_subnets()["Subnets"][0]
    backend = ec2_world.backend(subnets=(subnet["SubnetId"],))

    found = await backend.offers(Wanted())
    await backend.provision(order(ec2_world, found[0], market))

    assert {one.zone for one in found} == {subnet["AvailabilityZone"]}
    assert ec2_world.cloud.bodies[-1]["SubnetId"] == subnet["SubnetId"]
    await backend.close()


async def test_ec2_a_check_says_what_is_wrong_and_what_to_do(ec2_world: Ec2World) -> None:
    class AnHourAhead(SystemClock):
        def wall_ns(self) -> int:
            return super().wall_ns() + HOUR

    backend = Ec2(ec2_world.cloud.settings(image="ami-00000000"), AnHourAhead(), price_book())

    wrong = {one.what: one for one in await backend.check() if not one.is_good}

    assert wrong.keys() == {"clock", "image", "permissions"} and all(one.way_out for one in wrong.values())
    assert re.search(r"36\d\d s off", wrong["clock"].said)
    ec2_world.cloud.then("GetCallerIdentity", "InvalidClientTokenId")
    (credentials,) = await backend.check()
    assert not credentials.is_good and "InvalidClientTokenId" in credentials.said
    await backend.close()
    allowed = ec2_world.backend()
    ec2_world.cloud.then("TerminateInstances", "UnauthorizedOperation")
    (permissions,) = [one for one in await allowed.check() if not one.is_good]
    assert permissions.what == "permissions" and "UnauthorizedOperation" in permissions.said
    await allowed.close()


# ----- SSH alone -----


async def test_ssh_the_first_script_runs_once_and_its_words_are_kept_after_the_end(
    ssh_world: SshWorld, market: str
) -> None:
    backend = ssh_world.backend()
    script = "trap 'echo tidied up; exit' TERM\necho ran >>/tmp/ran; echo 'it said so'; sleep 600 &\nwait\n"
    asked = order(ssh_world, (await backend.offers(Wanted()))[0], market, user_data=script)
    bought = await backend.provision(asked)
    await backend.provision(asked)
    await poll_async(lambda: backend.console(bought.machine_id))
    assert "sleep 600" in ssh_world.box.machine.processes()

    await backend.terminate(bought.machine_id)

    await poll_async(lambda: ended(ssh_world, backend, market))
    assert ssh_world.run("cat /tmp/ran; rm /tmp/ran") == "ran\n"
    assert await backend.console(bought.machine_id) == "it said so\ntidied up\n"
    assert "sleep 600" not in ssh_world.box.machine.processes()
    await backend.close()


async def test_ssh_of_two_buyers_at_once_one_gets_the_machine(ssh_world: SshWorld, market: str) -> None:
    backends = [ssh_world.backend() for _ in range(4)]
    offer = (await backends[0].offers(Wanted()))[0]
    ssh_world.meet(len(backends))

    said = await asyncio.gather(
        *(one.provision(order(ssh_world, offer, market)) for one in backends), return_exceptions=True
    )

    won = [one for one in said if isinstance(one, Machine)]
    lost = [one.reason for one in said if isinstance(one, Refused)]
    assert (len(won), lost) == (1, [RefusedFor.CAPACITY] * 3)
    assert [one.machine_id for one in await backends[0].describe(market)] == [won[0].machine_id]
    for one in backends:
        await one.close()


async def test_ssh_a_machine_with_another_key_is_not_talked_to(ssh_world: SshWorld, market: str) -> None:
    other = ssh_world.box.host_key.split()
    other[1] = other[1][:-6] + ("abcdef" if not other[1].endswith("abcdef") else "fedcba")
    backend = ssh_world.backend(host_key=" ".join(other))

    with pytest.raises(Refused) as no:
        await backend.provision(await first(ssh_world, backend, market))

    assert no.value.reason is RefusedFor.AUTH and "host_key" in no.value.said
    await backend.close()


async def test_ssh_a_machine_that_is_not_there_cannot_be_had_and_nobody_knows_what_it_runs(
    ssh_world: SshWorld, market: str
) -> None:
    backend = ssh_world.backend(address="127.0.0.1", port=str(own_port()))

    with pytest.raises(Refused) as no:
        await backend.provision(await first(ssh_world, backend, market))
    with pytest.raises(Doubtful):
        await backend.describe(market)

    assert no.value.reason is RefusedFor.CAPACITY
    (credentials,) = await backend.check()
    assert not credentials.is_good and credentials.way_out
    await backend.close()


async def test_ssh_a_machine_that_does_not_answer_is_doubtful_within_the_deadline(
    ssh_world: SshWorld, market: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        backend = ssh_world.backend(call_s=0.5, address="127.0.0.1", port=str(silent.getsockname()[1]))

        with pytest.raises(Doubtful):
            await backend.describe(market)

    await backend.close()


@pytest.mark.parametrize("way", ["its time is over", "no word of its Master", "nothing"])
async def test_ssh_the_dead_man_ends_the_machine_without_any_master(ssh_world: SshWorld, market: str, way: str) -> None:
    backend = ssh_world.backend()
    ends_at_ns = ssh_world.clock.wall_ns() + (HOUR if way != "its time is over" else -SECOND)
    joined = "mkdir -p /var/lib/windrow-agent/identity"
    script = user_data(joined, PurchaseId("p"), ends_at_ns, 1 if way == "no word of its Master" else 600)
    asked = order(ssh_world, (await backend.offers(Wanted()))[0], market, user_data=script, ends_at_ns=ends_at_ns)

    await backend.provision(asked)

    if way == "nothing":
        await poll_async(lambda: ssh_world.run("cat /run/windrow-dead-man/since 2>/dev/null || :"))
        assert not await ended(ssh_world, backend, market)
        return
    await poll_async(lambda: ended(ssh_world, backend, market))
    (found,) = await backend.describe(market)
    assert found.purchase_id == asked.purchase_id
    assert way in ssh_world.run(f"cat {FOLDER}.ended/*/dead-man.log")
    await backend.close()
