"""A disk that others have filled: an agent starts all the same, and owed messages are sent once there is space."""

from unittest import mock

from tests.unit.agent_runtime.lives import Host, Life, create, final, played
from windrow_agent.workloads.orphans import ORPHANS_EVERY_NS
from windrow_proto.errors import StorageFailed
from windrow_proto.model import Kind, WorkloadPhase
from windrow_proto.units import MINUTE, SECOND


def test_an_agent_that_starts_on_a_full_disk_lives_and_tells_what_ended_once_there_is_room() -> None:
    async def story(host: Host) -> None:
        async def life(agent: Life) -> None:
            await agent.started(create(paid_ns=20 * SECOND))
            host.disk.capacity_bytes = 0
            await agent.pass_ns(MINUTE)

        async def next_life(agent: Life) -> None:
            await agent.pass_ns(MINUTE)
            assert not any(receipt.final for receipt in host.receipts)
            host.disk.capacity_bytes = None
            await agent.pass_ns(20 * SECOND)

        await host.live(life)
        await host.live(next_life)

    host = played(story)
    assert host.machine.boxes == {}
    assert final(host).running_ns <= 25 * SECOND


def test_a_final_receipt_that_the_spool_refused_is_told_by_the_same_agent() -> None:
    async def story(host: Host) -> None:
        async def life(agent: Life) -> None:
            await agent.started(create(paid_ns=20 * SECOND))
            put_all = agent.workloads._outbox.put_all

            async def refusing(lane, messages):
                if any(kind is Kind.RECEIPT for kind, _ in messages):
                    raise StorageFailed("full")
                await put_all(lane, messages)

            with mock.patch.object(agent.workloads._outbox, "put_all", refusing):
                await agent.pass_ns(MINUTE)
            assert not any(receipt.final for receipt in host.receipts)
            await agent.pass_ns(2 * ORPHANS_EVERY_NS)

        await host.live(life)

    assert final(played(story)).end_reason == "unpaid"


def test_what_was_started_and_could_not_be_told_is_not_started_by_the_next_agent() -> None:
    async def story(host: Host) -> None:
        async def filled(agent: Life) -> None:
            put_all = agent.workloads._outbox.put_all

            async def put(lane, messages):
                if any(kind is Kind.RECEIPT for kind, _ in messages):
                    host.disk.capacity_bytes = 0
                return await put_all(lane, messages)

            agent.workloads._outbox.put_all = put  # type: ignore[method-assign]
            await agent.started(create())
            assert host.machine.boxes == {}, "what could not be told is taken away"

        async def next_life(agent: Life) -> None:
            await agent.pass_ns(10 * SECOND)
            assert agent.phase not in (WorkloadPhase.PREPARING, WorkloadPhase.RUNNING)

        await host.live(filled)
        host.disk.capacity_bytes = None
        await host.live(next_life)

    assert played(story).machine.starts == 1
