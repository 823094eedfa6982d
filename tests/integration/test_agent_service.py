"""A whole agent with real process workloads against a small Master over the in-memory link."""

import asyncio
import io
import os
import signal
import tarfile
from dataclasses import replace

import pytest

from tests.support.agent_world import HOST, World, creation, deletion, final_receipt, new_id, until_done
from tests.waiting import PATIENCE_S, poll_async
from windrow_agent.link.bandwidth_budget import LineLimits
from windrow_agent.runtimes.process import ProcessRuntime
from windrow_proto.ids import CommandId, SlotId, WorkloadId
from windrow_proto.messages import (
    Channel,
    ChannelClose,
    ChannelCredit,
    ChannelData,
    ChannelOpen,
)
from windrow_proto.model import (
    BandwidthSpec,
    ChannelPurpose,
    Command,
    CommandKind,
    CommandPhase,
    Kind,
    LeaseRenewal,
    SlotGrant,
    WorkloadPhase,
    WorkloadSpec,
)
from windrow_proto.units import MINUTE, SECOND


async def test_a_bug_that_its_process_has_met_is_told_with_the_next_heartbeats_and_no_longer_than_it_is_stated(
    world: World,
):
    async with world.running():
        await poll_async(lambda: world.master.heartbeats)
        assert "agent.bug_met" not in world.master.heartbeats[-1].conditions
        world.faults.append("agent.bug_met")
        await poll_async(lambda: "agent.bug_met" in world.master.heartbeats[-1].conditions)
        world.faults.clear()
        await poll_async(lambda: "agent.bug_met" not in world.master.heartbeats[-1].conditions)


async def test_it_heartbeats_and_sends_inventory_and_telemetry(world: World):
    async with world.running():
        await poll_async(lambda: len(world.master.heartbeats) >= 2)
        await poll_async(lambda: world.master.count(Kind.TELEMETRY) >= 2)
        await poll_async(lambda: any("process" in i.runtimes for i in world.master.inventories()))
    assert world.master.inventories()[-1].hostname == "tester"
    assert world.master.refusals == []


async def test_a_workload_is_created_run_billed_and_deleted(world: World):
    create, began_ns = creation("sleep", "300"), world.clock.monotonic_ns()
    async with world.running():
        await world.master.command(create)
        await until_done(world, create)
        assert world.master.phases(create.command_id)[:2] == [CommandPhase.ACCEPTED, CommandPhase.RUNNING]
        delete = deletion(create)
        await world.master.command(delete)
        await until_done(world, delete)
        final = await final_receipt(world, create)
    receipts = world.master.receipts(create.create.workload_id)
    assert [r.number for r in receipts] == list(range(1, len(receipts) + 1))
    assert (final.end_reason, final.exit_code, final.final) == ("deleted", 143, True)
    assert 0 < final.running_ns < world.clock.monotonic_ns() - began_ns
    assert world.master.observed()[-1].workloads[0].phase is WorkloadPhase.GONE


async def test_the_same_command_twice_has_one_effect_and_one_answer(world: World):
    create = creation("sh", "-c", "echo run >>$HOME/runs; sleep 300")
    async with world.running():
        for _ in range(3):
            await world.master.command(create)
        await until_done(world, create)
        await world.master.command(create)
        await poll_async(lambda: world.master.phases(create.command_id).count(CommandPhase.SUCCEEDED) >= 2)
        runs = world.folder / "process" / create.create.workload_id / "home" / "runs"
        await poll_async(lambda: runs.exists() and runs.read_text(), what="the command has begun")
    assert runs.read_text() == "run\n"


async def test_an_ended_workload_is_billed_to_its_end_and_tells_its_exit_code(world: World):
    create = creation("sh", "-c", "exit 7")
    async with world.running():
        await world.master.command(create)
        final = await final_receipt(world, create)
        await poll_async(lambda: world.master.observed()[-1].workloads[0].phase is WorkloadPhase.EXITED)
    assert (final.exit_code, final.end_reason) == (7, "exited")


async def test_a_killed_agent_leaves_work_running_and_the_next_one_goes_on_billing(world: World):
    create = creation("sleep", "300")

    async def life(service):
        await world.master.command(create)
        await until_done(world, create)

    await world.killed(life)
    running_before = world.master.receipts(create.create.workload_id)[-1].running_ns
    async with world.running() as service:
        assert service.workloads.state(create.create.workload_id).phase is WorkloadPhase.RUNNING
        delete = deletion(create)
        await world.master.command(delete)
        await until_done(world, delete)
        final = await final_receipt(world, create)
    assert final.running_ns > running_before
    assert len([r for r in world.master.receipts(create.create.workload_id) if r.final]) == 1


async def test_a_create_after_its_delete_is_refused(world: World):
    create = creation("sleep", "300")
    async with world.running():
        delete = deletion(create)
        await world.master.command(delete)
        await until_done(world, delete)
        await world.master.command(create)
        status = await until_done(world, create, CommandPhase.REFUSED)
    assert status.error_code == "conflict"
    assert not (world.folder / "process" / create.create.workload_id).exists()


async def test_an_older_token_is_fenced_and_a_newer_one_ends_the_holder_first(world: World):
    first, newer, older = creation("sleep", "300", token=5), creation("sleep", "300", token=6), creation(token=4)
    async with world.running():
        await world.master.command(first)
        await until_done(world, first)
        await world.master.command(older)
        assert (await until_done(world, older, CommandPhase.REFUSED)).error_code == "fenced"
        await world.master.command(newer)
        await until_done(world, newer)
        assert (await final_receipt(world, first)).end_reason == "fenced"


async def test_an_unpaid_workload_ends_by_itself_and_a_renewal_keeps_it(world: World):
    kept, unpaid = creation("sleep", "300", paid_ns=20 * SECOND), creation("sleep", "300", paid_ns=2 * SECOND)
    unpaid = Command(unpaid.command_id, unpaid.kind, create=_on_slot(unpaid.create, "cpu/1"))
    async with world.running() as service:
        await world.master.command(kept)
        await world.master.command(unpaid)
        await until_done(world, kept)
        known = service.workloads.journal.book.leases[kept.create.workload_id].ends_ns
        await world.master.renew(LeaseRenewal(kept.create.workload_id, MINUTE, MINUTE, 1))
        final = await final_receipt(world, unpaid)
        assert final.end_reason == "unpaid"
        await poll_async(lambda: service.workloads.journal.book.leases[kept.create.workload_id].ends_ns > known)
        assert service.workloads.state(kept.create.workload_id).phase is WorkloadPhase.RUNNING


def _on_slot(spec: WorkloadSpec, slot: str) -> WorkloadSpec:
    return replace(spec, slots=(SlotGrant(SlotId(slot), 1),))


async def test_evidence_that_was_not_acknowledged_comes_again_and_counts_once(world: World):
    world.master.is_acking = False
    create = creation("sh", "-c", "exit 0")

    async def life(service):
        await world.master.command(create)
        await final_receipt(world, create)

    await world.killed(life)
    known = len(world.master.records)
    world.master.have.clear()
    world.master.is_acking = True
    async with world.running():
        await poll_async(lambda: world.master.duplicates > 0 and len(world.master.records) > known)
    assert len([r for r in world.master.receipts(create.create.workload_id) if r.final]) == 1


async def test_when_its_access_dies_it_is_back_through_the_other(world: World):
    async with world.running() as service:
        used = service.connector.address
        connections = world.master.connections
        world.network.remove(used)
        await world.master.drop()
        await poll_async(lambda: world.master.connections > connections)
        await asyncio.wait_for(service.connected.wait(), PATIENCE_S)
        assert service.connector.address in world.addresses and service.connector.address != used


async def test_an_unknown_command_is_said_to_be_never_seen(world: World):
    unknown = CommandId(new_id("cmd"))
    async with world.running():
        await world.master.query(unknown)
        await poll_async(lambda: world.master.phases(unknown) == [CommandPhase.NEVER_SEEN])


async def test_a_runtime_that_is_not_here_is_refused_with_what_there_is(world: World):
    create = creation("true")
    create = replace(create, create=replace(create.create, runtime="docker", image="x"))
    async with world.running():
        await world.master.command(create)
        status = await until_done(world, create, CommandPhase.REFUSED)
    assert "process" in status.error_detail


async def test_a_command_that_cannot_be_run_fails_with_the_reason(world: World):
    create = creation("/nonexistent/program")
    async with world.running():
        await world.master.command(create)
        status = await until_done(world, create, CommandPhase.FAILED)
    assert status.error_code == "workload_failed"
    assert "/nonexistent/program" in status.error_detail
    assert world.master.receipts(create.create.workload_id) == []


async def test_bandwidth_is_measured_by_the_relay(world: World):
    command = Command(
        CommandId(new_id("cmd")), CommandKind.MEASURE_BANDWIDTH, bandwidth=BandwidthSpec(SECOND // 5, 1 << 20, "nonce")
    )
    async with world.running():
        await world.master.command(command)
        status = await until_done(world, command)
        await poll_async(lambda: world.master.count(Kind.BANDWIDTH) == 1)
    assert int(status.result["up_bits_per_s"]) > 0


async def test_bandwidth_is_measured_by_each_relay_that_the_master_names_its_own_first_and_once(world: World):
    named = ("acc_1", "acc_0", "acc_of_nobody")
    spec = BandwidthSpec(SECOND // 5, 1 << 20, "nonce", named)
    command = Command(CommandId(new_id("cmd")), CommandKind.MEASURE_BANDWIDTH, bandwidth=spec)
    async with world.running():
        await world.master.command(command)
        await until_done(world, command)
        await poll_async(lambda: world.master.count(Kind.BANDWIDTH) == 2)


async def test_a_relay_that_cannot_measure_takes_nothing_from_what_the_hosts_own_found(world: World):
    world.addresses = (*world.addresses, "nowhere:3")
    spec = BandwidthSpec(SECOND // 5, 1 << 20, "nonce", ("acc_2",))
    command = Command(CommandId(new_id("cmd")), CommandKind.MEASURE_BANDWIDTH, bandwidth=spec)
    async with world.running():
        await world.master.command(command)
        status = await until_done(world, command)
        await poll_async(lambda: world.master.count(Kind.BANDWIDTH) == 1)
    assert int(status.result["up_bits_per_s"]) > 0


async def test_a_measurement_beyond_the_owners_budget_of_a_day_is_refused_also_by_the_next_agent(world: World):
    world.line = LineLimits(day_bytes=3 << 20)

    async def measured(nonce: str, phase: CommandPhase):
        spec = BandwidthSpec(5 * SECOND, 1 << 20, nonce)
        command = Command(CommandId(new_id("cmd")), CommandKind.MEASURE_BANDWIDTH, bandwidth=spec)
        async with world.running():
            await world.master.command(command)
            return await until_done(world, command, phase)

    assert int((await measured("first", CommandPhase.SUCCEEDED)).result["down_bits_per_s"]) > 0
    refused = await measured("second", CommandPhase.FAILED)
    assert refused.error_code == "too_many"
    assert "of the 3 MiB that this host's owner allows" in refused.error_detail


async def test_ending_all_leaves_no_process_and_tells_the_next_master(world: World):
    create = creation("sleep", "300")

    async def life(service):
        await world.master.command(create)
        await until_done(world, create)

    await world.killed(life)
    await world.agent().end_workloads()
    cleaner = ProcessRuntime(world.folder / "process", world.folder, HOST, False)
    assert await cleaner.list() == ()
    async with world.running():
        final = await final_receipt(world, create)
    assert final.end_reason == "host_stopped"


# --- channels --------------------------------------------------------------------------------------------------------


def _tar(name: str, data: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        member = tarfile.TarInfo(name)
        member.size = len(data)
        tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


async def _collect(world: World, number: int, credit: bool = True):
    data = {0: b"", 1: b"", 2: b""}
    while True:
        step = await world.master.next(number)
        if isinstance(step, ChannelClose):
            return data, step
        if isinstance(step, ChannelData):
            assert len(step.data) <= 65_536
            data[step.stream] += step.data
            if credit:
                await world.master.channel(Channel(number, ChannelCredit(len(step.data))))


async def test_files_go_in_the_work_starts_and_changed_files_and_log_come_back(world: World):
    create = creation("sh", "-c", "cat in.txt; head -c 300000 /dev/zero >out.bin", await_files=True)
    workload_id = create.create.workload_id
    async with world.running():
        await world.master.command(create)
        await poll_async(lambda: any(s.step == "waiting_files" for s in world.master.statuses(create.command_id)))
        await world.master.channel(Channel(1, ChannelOpen(workload_id, ChannelPurpose.FILES_IN)))
        await world.master.channel(Channel(1, ChannelData(_tar("in.txt", b"hello\n"))))
        await world.master.channel(Channel(1, ChannelClose(commit=True)))
        _, close = await _collect(world, 1)
        assert (close.error_code, close.commit) == ("", True)
        await final_receipt(world, create)
        await world.master.channel(Channel(4, ChannelOpen(workload_id, ChannelPurpose.FILES_IN)))
        await world.master.channel(Channel(4, ChannelData(_tar("in.txt", b"again\n"))))
        await world.master.channel(Channel(4, ChannelClose(commit=True)))
        _, close = await _collect(world, 4)
        assert (close.error_code, close.commit) == ("", False), "sent once more, it changes nothing"
        await world.master.channel(Channel(2, ChannelOpen(workload_id, ChannelPurpose.LOGS, follow=True)))
        data, close = await _collect(world, 2)
        assert (data[0], close.error_code) == (b"hello\n", "")
        opening = ChannelOpen(workload_id, ChannelPurpose.FILES_OUT, changed_only=True)
        await world.master.channel(Channel(3, opening))
        data, close = await _collect(world, 3)
        assert (world.folder / "process" / workload_id / "work" / "in.txt").read_bytes() == b"hello\n"
    with tarfile.open(fileobj=io.BytesIO(data[0])) as tar:
        assert [(m.name, m.size) for m in tar] == [("out.bin", 300_000)]


@pytest.mark.parametrize(
    ("purpose", "ours"), [(ChannelPurpose.FILES_OUT, b"zzz"), (ChannelPurpose.LOGS, b"the end")], ids=["files", "log"]
)
async def test_what_is_removed_while_it_is_read_does_not_end_as_if_it_were_whole(
    world: World, purpose: ChannelPurpose, ours: bytes
):
    fill = "head -c 2000000 /dev/zero"
    create = creation("sh", "-c", f"{fill} >a.bin; echo z >zzz; {fill}; echo the end")
    workload_id = create.create.workload_id
    async with world.running():
        await world.master.command(create)
        await final_receipt(world, create)
        await world.master.channel(Channel(1, ChannelOpen(workload_id, purpose, changed_only=True)))
        first = await world.master.next(1)
        delete = deletion(create)
        await world.master.command(delete)
        await until_done(world, delete)
        await world.master.channel(Channel(1, ChannelCredit(len(first.data))))
        data, close = await _collect(world, 1)
    assert close.error_code == "not_found" or ours in data[0]
    if purpose is ChannelPurpose.FILES_OUT and close.error_code:
        with pytest.raises(tarfile.ReadError), tarfile.open(fileobj=io.BytesIO(first.data + data[0]), mode="r|") as tar:
            list(tar)


async def test_no_more_is_sent_than_there_is_credit_for(world: World):
    create = creation("sh", "-c", "head -c 500000 /dev/zero; sleep 300")
    workload_id = create.create.workload_id
    async with world.running():
        await world.master.command(create)
        await until_done(world, create)
        log = world.folder / "process" / workload_id / "log"
        await poll_async(lambda: log.stat().st_size == 500_000)
        await world.master.channel(Channel(1, ChannelOpen(workload_id, ChannelPurpose.LOGS)))
        first = await world.master.next(1)
        assert len(first.data) == 65_536
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(world.master.channels[1].get(), 0.5)
        await world.master.channel(Channel(1, ChannelCredit(1000)))
        assert len((await world.master.next(1)).data) == 1000


async def test_a_command_is_executed_beside_the_work_with_input_and_exit_code(world: World):
    create = creation("sleep", "300")
    workload_id = create.create.workload_id
    async with world.running():
        await world.master.command(create)
        await until_done(world, create)
        opening = ChannelOpen(workload_id, ChannelPurpose.EXEC, ("sh", "-c", "cat; echo e >&2; exit 4"), stdin=True)
        await world.master.channel(Channel(5, opening))
        await world.master.channel(Channel(5, ChannelData(b"typed\n")))
        await world.master.channel(Channel(5, ChannelClose()))
        data, close = await _collect(world, 5)
    assert (data[1], data[2], close.exit_code) == (b"typed\n", b"e\n", 4)


async def test_a_channel_to_an_unknown_workload_is_closed_with_the_reason(world: World):
    async with world.running():
        await world.master.channel(Channel(9, ChannelOpen(WorkloadId(new_id("work")), ChannelPurpose.LOGS)))
        _, close = await _collect(world, 9)
    assert close.error_code == "not_found"


async def test_a_channel_that_crashes_is_closed_and_the_line_goes_on(world: World, monkeypatch):
    def crash(*asked):
        raise ZeroDivisionError("what nobody has thought of")

    nobody = WorkloadId(new_id("work"))
    async with world.running() as service:
        monkeypatch.setattr(service.workloads, "runtime_of", crash)
        await world.master.channel(Channel(9, ChannelOpen(nobody, ChannelPurpose.LOGS)))
        _, close = await _collect(world, 9)
        monkeypatch.undo()
        await world.master.channel(Channel(10, ChannelOpen(nobody, ChannelPurpose.LOGS)))
        _, next_close = await _collect(world, 10)
    assert (close.error_code, next_close.error_code) == ("internal", "not_found")


async def test_a_shim_that_is_killed_ends_the_billing_at_what_was_proved(world: World):
    create = creation("sleep", "300")
    async with world.running() as service:
        await world.master.command(create)
        await until_done(world, create)
        runtime = service.parts.runtimes["process"]
        os.kill(runtime.shim_pid(create.create.workload_id), signal.SIGKILL)
        final = await final_receipt(world, create)
    last = world.master.receipts(create.create.workload_id)[-2]
    assert (final.end_reason, final.exit_code) == ("lost", None)
    assert final.running_ns == last.running_ns
