"""Tokens are stored before anything starts, the deleted stays deleted, and what nobody asked for goes."""

import errno
from dataclasses import replace
from unittest import mock

import pytest

from tests.unit.agent_runtime.lives import DELETE, GPU, SLACK_NS, WORK, Host, Life, create, final, played
from windrow_agent.storage.journal import Journal
from windrow_agent.workloads.orphans import ORPHAN_GRACE_NS, ORPHANS_EVERY_NS
from windrow_proto.errors import WindrowError
from windrow_proto.ids import CommandId, WorkloadId
from windrow_proto.model import (
    WorkloadPhase,
)
from windrow_proto.units import SECOND

# --- tokens, before anything starts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["append", "sync"])
@pytest.mark.parametrize("at", range(8))
@pytest.mark.parametrize("kept", [0, 1, 2])
def test_a_power_cut_at_any_write_of_a_creation_leaves_no_start_whose_token_is_unknown(operation, at, kept):
    async def story(host: Host) -> None:
        async def life(agent: Life) -> None:
            host.disk.inject(operation, errno.EIO, skip=at, times=1 << 30)
            try:
                await agent.commands.arrived(create(token=7))
            except WindrowError:
                pass
            await agent.pass_ns(SECOND)

        await host.live(life)
        host.disk.crash(keep_unsynced=lambda path, count: count * kept // 2)
        journal = Journal(host.disk, "/journal", host.clock.wall_ns, "kernel")
        has_started = host.machine.starts > 0
        assert not has_started or journal.book.marks[GPU].token == 7
        host.machine.reboot()

        async def next_life(agent: Life) -> None:
            older = create("work_0", token=6)
            await agent.commands.arrived(older)
            await agent.pass_ns(SECOND)
            assert not has_started or host.box("work_0") is None, "a lower token is refused after the power cut"

        await host.live(next_life)

    played(story)


def test_a_deleted_workload_stays_deleted_under_a_higher_token_too():
    async def story(host: Host) -> None:
        async def life(agent: Life) -> None:
            await agent.commands.arrived(DELETE)
            await agent.pass_ns(SECOND)

        async def next_life(agent: Life) -> None:
            await agent.commands.arrived(create())
            again = create(token=9)
            await agent.commands.arrived(replace(again, command_id=CommandId("create_again")))
            await agent.pass_ns(SECOND)

        await host.live(life)
        host.disk.crash()
        await host.live(next_life)

    assert played(story).machine.starts == 0


# --- what is left of others and of the past --------------------------------------------------------------------------


def test_what_carries_our_mark_and_nobody_asked_for_is_removed_after_five_minutes_and_not_before():
    async def story(host: Host) -> None:
        async def life(agent: Life) -> None:
            await host.appear("work_stray")
            await agent.pass_ns(ORPHAN_GRACE_NS - SECOND)
            assert host.box("work_stray") is not None
            await agent.pass_ns(ORPHANS_EVERY_NS + 2 * SECOND)
            assert host.box("work_stray") is None

        await host.live(life)

    played(story)


def test_what_was_deleted_and_is_there_again_goes_at_the_next_sweep():
    async def story(host: Host) -> None:
        async def life(agent: Life) -> None:
            await agent.commands.arrived(DELETE)
            await agent.pass_ns(SECOND)
            await host.appear(WORK)
            await agent.pass_ns(ORPHANS_EVERY_NS + SECOND)
            assert host.machine.boxes == {}

        await host.live(life)

    played(story)


def test_a_workload_is_gone_only_once_its_runtime_has_nothing_of_it_left():
    async def story(host: Host) -> None:
        async def life(agent: Life) -> None:
            await agent.started(create())
            with mock.patch.object(host.runtime, "remove", _nothing_removed):
                await agent.commands.arrived(DELETE)
                await agent.pass_ns(20 * SECOND)
                assert final(host).end_reason == "deleted"
                assert agent.phase is not WorkloadPhase.GONE
            again = replace(DELETE, command_id=CommandId("delete_again"))  # the Master orders what failed once more
            await agent.commands.arrived(again)
            await agent.pass_ns(SLACK_NS)

        await host.live(life)

    assert played(story).machine.boxes == {}


async def _nothing_removed(workload_id: WorkloadId) -> None:
    """Says that it did, and did not."""
