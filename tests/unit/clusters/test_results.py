"""Output of work that has ended by itself: brought in, kept within the quota, given out, and gone in the end."""

import asyncio
import io
import tarfile

import pytest

from tests.unit.clusters.test_routes import HOST, ScriptedStream
from windrow_master.clusters import lookup
from windrow_master.fleet.repository import CommandRepository
from windrow_master.network.tar import TarSieve
from windrow_master.storage.results import ResultService, Terms
from windrow_proto.errors import NotFound
from windrow_proto.messages import ChannelClose, ChannelData
from windrow_proto.model import CommandKind, ObservedWorkload, WorkloadPhase
from windrow_proto.units import DAY, HOUR, MINUTE, SECOND
from windrow_proto.wire_command import decode_command


def tar(**files: bytes) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return made.getvalue()


def names(archive: bytes) -> list[str]:
    return tarfile.open(fileobj=io.BytesIO(archive)).getnames()


def said(*pieces: bytes) -> ScriptedStream:
    return ScriptedStream([*(ChannelData(piece) for piece in pieces), ChannelClose()])


def terms(site, **given: int) -> ResultService:
    services = site.rooms.services
    services.results = ResultService(
        *(site.rooms.store, site.clock, site.rooms.clusters, services.artefacts, services.inside),
        Terms(**given),
    )
    return services.results


async def ended(site, *streams: ScriptedStream, code: int = 0):
    """A cluster whose command has ended; its host says these words, and the Master brings them in."""
    cluster_id, spec = await site.running()
    site.broker.streams = list(streams)
    report(site, spec, WorkloadPhase.EXITED, code)
    return cluster_id, spec


def report(site, spec, phase, code=0):
    seen = ObservedWorkload(spec.workload_id, phase, spec.slots, code, runtime=spec.runtime)
    site.write(lambda uow: site.life.on_workload(uow, HOST, seen))


async def follow(site, cluster_id):
    """Its log, as its renter's request reads it."""
    results = site.rooms.services.results
    cluster = site.rooms.store.read_now(lambda uow: lookup.find(uow, cluster_id))
    return await results.follow(results._principal(cluster), cluster_id, 0)


async def half_read(site):
    """A log of which its reader has had the first half when the work ends; and the work."""
    cluster_id, spec = await site.running()
    site.broker.streams = [said(b"first ", b"last"), said(b"first last"), said(tar())]
    followed = await follow(site, cluster_id)
    assert await anext(followed) == b"first "
    report(site, spec, WorkloadPhase.EXITED, 0)
    return followed, spec


async def look(site):
    """One look of the Master at what has ended, and what comes of it."""
    results = site.rooms.services.results
    async with asyncio.TaskGroup() as group:
        results._group = group
        await results.tick()


async def brought_in(site, cluster_id):
    """The Master looks; what is kept of the one workload then."""
    await look(site)
    (one,) = (await site.get(f"/clusters/{cluster_id}"))["workloads"]
    return one["results"]


async def test_log_and_files_are_brought_in_and_read_by_the_same_routes_when_the_host_has_cleaned_up(site):
    archive = tar(out=b"result")
    cluster_id, spec = await ended(site, said(b"hello\n", b"world\n"), said(archive[:700], archive[700:]), code=3)
    kept = await brought_in(site, cluster_id)
    assert (kept["log_bytes"], kept["files_bytes"], kept["problem"]) == (12, len(archive), None)
    assert site.spec(CommandKind.DELETE).delete.workload_id == spec.workload_id
    report(site, spec, WorkloadPhase.GONE, 3)
    shown = await site.get(f"/clusters/{cluster_id}")
    assert (shown["phase"], shown["reason"]) == ("Failed", "exit 3")
    for path, content in (
        ("logs", b"hello\nworld\n"),
        ("logs?offset=6", b"world\n"),
        ("logs?follow=true&offset=6", b"world\n"),
        ("files?changed=true", archive),
        ("files", archive),
        ("files?offset=700", archive[700:]),
    ):
        answer = await site.client.get(f"/api/v1/clusters/{cluster_id}/{path}")
        assert (answer.status_code, answer.content) == (200, content), path


async def test_a_host_clears_nothing_away_while_its_log_is_followed_to_its_end(site):
    followed, spec = await half_read(site)

    async with asyncio.TaskGroup() as group:
        looking = group.create_task(look(site))
        for _ in range(200):
            await asyncio.sleep(0)
        assert not looking.done() and orders(site, spec) == []
        assert [piece async for piece in followed] == [b"last"]
    assert orders(site, spec) == [False]


async def test_who_follows_a_log_without_taking_it_holds_the_slots_for_no_longer_than_two_minutes(site):
    followed, spec = await half_read(site)

    async with asyncio.TaskGroup() as group:
        looking = group.create_task(look(site))
        waited = 0
        while not looking.done():
            site.clock.advance(MINUTE)
            waited += 1
            for _ in range(200):
                await asyncio.sleep(0)
        assert waited > 1
    assert orders(site, spec) == [False]
    await followed.aclose()


async def test_a_followed_log_that_its_host_clears_away_is_no_whole_one(site):
    cluster_id, _ = await site.running()
    site.broker.streams = [ScriptedStream([ChannelData(b"a part"), ChannelClose("not_found", "removed meanwhile")])]
    followed = await follow(site, cluster_id)
    assert await anext(followed) == b"a part"
    with pytest.raises(NotFound, match="removed meanwhile"):
        await anext(followed)


async def test_of_a_log_that_was_too_long_to_be_kept_the_rest_is_told_to_be_gone(site, monkeypatch):
    monkeypatch.setattr("windrow_master.network.workload_io.LOG_KEPT_BYTES", 9)
    cluster_id, spec = await ended(site, said(b"0123456789", b"more"), said(tar()))
    kept = await brought_in(site, cluster_id)
    report(site, spec, WorkloadPhase.GONE)
    path = f"/api/v1/clusters/{cluster_id}/logs?follow=true&offset="
    part = await site.client.get(f"{path}4")
    assert part.status_code == 200 and part.content.startswith(b"456789")
    lost = await site.client.get(f"{path}{kept['log_bytes'] + 1}")
    assert (lost.status_code, lost.json()["detail"]) == (
        404, f"Of this log its host has cleared all away but the first {kept['log_bytes']} bytes.",
    )  # fmt: skip


async def test_what_printed_and_changed_nothing_takes_no_room_and_is_answered_as_that(site):
    cluster_id, _ = await ended(site, said(), said(tar()))
    kept = await brought_in(site, cluster_id)
    assert (kept["log_bytes"], kept["files_bytes"], kept["problem"]) == (0, 0, None)
    assert (await site.get("/artefacts"))["items"] == []
    answer = await site.client.get(f"/api/v1/clusters/{cluster_id}/logs")
    assert (answer.status_code, answer.content) == (200, b"")
    answer = await site.client.get(f"/api/v1/clusters/{cluster_id}/files?changed=true")
    assert answer.status_code == 200 and names(answer.content) == []


async def test_what_is_beyond_the_quota_is_named_and_all_else_is_kept(site):
    terms(site, quota_bytes=16_384)
    archive = tar(first=b"1", large=bytes(50_000), last=b"2")
    cluster_id, _ = await ended(site, said(b"log"), said(archive))
    kept = await brought_in(site, cluster_id)
    assert kept["problem"] == "large (50,000 bytes): beyond half of what is left of your quota of results"
    answer = await site.client.get(f"/api/v1/clusters/{cluster_id}/files")
    assert names(answer.content) == ["first", "last"]
    assert (await site.client.get(f"/api/v1/clusters/{cluster_id}/files?offset=512")).status_code == 409
    assert "not kept: rank 0 on a: large (50,000 bytes)" in (await site.get(f"/clusters/{cluster_id}"))["reason"]


async def test_the_quota_counts_what_other_clusters_have_left_and_a_log_beyond_it_is_named(site):
    terms(site, quota_bytes=6_000)
    first, spec = await ended(site, said(b"x" * 2_900), said(tar()))
    await brought_in(site, first)
    report(site, spec, WorkloadPhase.GONE)
    row = site.spec(CommandKind.DELETE)
    assert row.delete.workload_id == spec.workload_id
    site.write(lambda uow: site.rooms.fleet.slots_released(uow, spec.slots, "test", "its host is done"))
    second, _ = await ended(site, said(b"y" * 1_551), said(tar()))
    kept = await brought_in(site, second)
    assert (
        kept["log_bytes"] is None
        and "its log (1,551 bytes) is over half of what is left of your quota" in kept["problem"]
    )
    answer = await site.client.get(f"/api/v1/clusters/{second}/logs")
    assert answer.status_code == 404 and "is over half" in answer.json()["detail"]


async def test_results_are_gone_after_their_time(site):
    terms(site, kept_ns=DAY)
    cluster_id, _ = await ended(site, said(b"hello"), said(tar(out=b"1")))
    await brought_in(site, cluster_id)
    site.clock.advance(DAY + HOUR)
    assert (await site.rooms.services.artefacts.sweep())[0] == 2
    answer = await site.client.get(f"/api/v1/clusters/{cluster_id}/logs")
    assert answer.status_code == 404 and "are kept for 30 days" in answer.json()["detail"]


async def test_a_host_that_fails_for_a_moment_is_asked_again_and_one_that_says_no_is_quoted(site):
    away = ScriptedStream([ChannelClose("unavailable", "in a moment")])
    refusing = ScriptedStream([ChannelClose("not_found", "its disk is gone")])
    cluster_id, _ = await ended(site, away, said(b"hello"), refusing)
    assert await brought_in(site, cluster_id) is None
    kept = await brought_in(site, cluster_id)
    assert (kept["log_bytes"], kept["files_bytes"]) == (5, None)
    assert kept["problem"] == "files: its disk is gone"


async def test_whoever_reads_while_the_host_cleans_up_is_answered_from_what_is_kept(site):
    cluster_id, spec = await ended(site, said(b"hello"), said(tar(out=b"1")))
    reading = site.broker.open

    async def gone_meanwhile(host_id, opening):
        """The host has cleaned up between the asking and the channel."""
        site.broker.open = reading
        await brought_in(site, cluster_id)
        report(site, spec, WorkloadPhase.GONE)
        return ScriptedStream([ChannelClose("not_found", "This host has no such workload.")])

    site.broker.open = gone_meanwhile
    answer = await site.client.get(f"/api/v1/clusters/{cluster_id}/logs")
    assert (answer.status_code, answer.content) == (200, b"hello")


async def test_work_that_its_host_cleared_away_by_itself_is_over_and_says_so(site):
    cluster_id, spec = await ended(site)
    report(site, spec, WorkloadPhase.GONE)
    kept = await brought_in(site, cluster_id)
    assert kept["problem"] == "log and files: its host cleared them away"
    answer = await site.client.get(f"/api/v1/clusters/{cluster_id}/files")
    assert answer.status_code == 404 and "its host cleared them away" in answer.json()["detail"]


# --- ends before the end ----------------------------------------------------------------------------------------------


def orders(site, spec) -> list[bool]:
    """True if each open order to end this work keeps its files, those that do first."""
    rows = site.rooms.store.read_now(lambda uow: uow[CommandRepository].open_of_host(HOST))
    deletes = [decode_command(row.body).delete for row in rows if row.kind is CommandKind.DELETE]
    ours = [one.keeps_files for one in deletes if one is not None and one.workload_id == spec.workload_id]
    return sorted(ours, reverse=True)


async def over_time(site, *streams: ScriptedStream):
    """A cluster whose time is over; its host is told to end the program."""
    cluster_id, spec = await site.running(max_duration_seconds=60)
    site.broker.streams = list(streams)
    site.clock.advance(MINUTE)
    site.receipt(spec, 2, 60)
    await site.rooms.clusters.tick()
    assert orders(site, spec) == [True]
    return cluster_id, spec


async def test_work_whose_time_is_over_is_ended_then_brought_in_then_cleared(site):
    cluster_id, spec = await over_time(site, said(b"hello"), said(tar(out=b"1")))
    await look(site)
    assert len(site.broker.streams) == 2, "it still runs"
    report(site, spec, WorkloadPhase.EXITED, 143)
    kept = await brought_in(site, cluster_id)
    assert (kept["log_bytes"], kept["problem"]) == (5, None)
    assert orders(site, spec) == [True, False]
    report(site, spec, WorkloadPhase.GONE, 143)
    shown = await site.get(f"/clusters/{cluster_id}")
    assert (shown["phase"], shown["reason"]) == ("Deleted", "it ran for the 60 s that it may")
    answer = await site.client.get(f"/api/v1/clusters/{cluster_id}/logs")
    assert (answer.status_code, answer.content) == (200, b"hello")


async def test_a_host_that_does_not_end_the_program_is_told_to_clear_it_a_minute_later(site):
    cluster_id, spec = await over_time(site)
    site.clock.advance(MINUTE + SECOND)
    await site.rooms.clusters.tick()
    assert orders(site, spec) == [True, False]
    report(site, spec, WorkloadPhase.GONE)
    assert (await site.get(f"/clusters/{cluster_id}"))["phase"] == "Deleted"


async def test_a_renters_own_delete_keeps_nothing_unless_it_is_asked_for(site):
    for asked, is_kept in (("", False), ("?keep_results=true", True)):
        cluster_id, spec = await site.running()
        assert (await site.client.delete(f"/api/v1/clusters/{cluster_id}{asked}")).status_code == 202
        assert orders(site, spec) == [is_kept]
        site.broker.streams = [said(b"hello"), said(tar())]
        if is_kept:
            report(site, spec, WorkloadPhase.EXITED, 143)
            assert (await brought_in(site, cluster_id))["log_bytes"] == 5
        report(site, spec, WorkloadPhase.GONE)
        assert (await site.get(f"/clusters/{cluster_id}"))["phase"] == "Deleted"
        site.clock.advance(SECOND)


# --- the sieve -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [1, 100, 512, 513, 10**6])
def test_the_sieve_lets_whole_members_pass_and_names_the_others_however_the_stream_is_cut(step: int) -> None:
    long = "a/" * 60 + "long name ü"
    archive = tar(**{"small": b"1", "big": bytes(9_000), long: bytes(8_000), "last": b"22"})
    sieve = TarSieve(4_000)
    passed = b"".join(sieve.feed(archive[at : at + step]) for at in range(0, len(archive), step))
    assert names(passed) == ["small", "last"]
    assert (sieve.members, sieve.names, sieve.left_out, sieve.left_out_bytes) == (2, ["big", long], 2, 17_000)


@pytest.mark.parametrize("kind", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_what_fits_passes_byte_by_byte(kind: int) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=kind) as archive:
        for name in ("a" * 90, "b" * 20):
            info = tarfile.TarInfo(name)
            info.size = 700
            archive.addfile(info, io.BytesIO(bytes(700)))
    sieve = TarSieve(10**6)
    assert sieve.feed(made.getvalue()) == made.getvalue() and sieve.members == 2


def test_what_is_no_tar_ends_somewhere_and_harms_nobody() -> None:
    for noise in (b"\xff" * 4096, b"x" * 5000, bytes(156) + b"x" + bytes(355) + b"9999 path=" + b"1 " * 300):
        sieve = TarSieve(1_000_000)
        sieve.feed(noise)
        sieve.feed(bytes(512))
