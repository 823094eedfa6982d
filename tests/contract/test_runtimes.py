"""One contract for every runtime: simulated, process with and without bubblewrap, docker and Podman where they are."""

import asyncio
import contextlib
import io
import os
import signal
import tarfile
import threading
import uuid

import pytest

from tests.support.places import (
    BUBBLEWRAP,
    PLAIN,
    PROCESSES,
    REAL,
    WITH_IMAGES,
    Place,
    commands,
    files_of,
    in_pieces,
    log_of,
    new_id,
    no_progress,
    only,
    run_to_end,
    tar_bytes_of,
    tar_of,
    until_ended,
)
from tests.waiting import PATIENCE_S, poll_async
from windrow_agent.runtimes.port import ENDED_BY_HOST, Run, RunState
from windrow_agent.runtimes.process import ProcessRuntime
from windrow_proto.errors import (
    Conflict,
    ImageUnavailable,
    InvalidInput,
    NotFound,
    TooLarge,
    WindrowError,
    WorkloadFailed,
)
from windrow_proto.ids import ClusterId
from windrow_proto.model import WorkloadSpec
from windrow_proto.terminals import TerminalSize
from windrow_proto.units import MIB, MILLISECOND, MINUTE, SECOND


async def test_a_command_runs_to_its_end_with_output_and_exit_code(place: Place):
    spec = place.spec("echo", "hello", "there")
    run = await run_to_end(place, spec)
    assert (run.exit_code, run.workload_id, run.cluster_id, run.slots) == (
        0,
        spec.workload_id,
        spec.cluster_id,
        spec.slots,
    )
    assert run.started_wall_ns and run.running_ns >= 0
    assert await log_of(place, spec.workload_id) == (b"hello there\n", False)
    assert await log_of(place, spec.workload_id, offset=6) == (b"there\n", False)


async def test_the_facts_say_that_it_works_here(place: Place):
    facts = await place.runtime.facts()
    assert facts.is_usable
    assert facts.version


async def test_preparing_and_starting_twice_runs_it_once(place: Place):
    spec = place.spec("echo", "once")
    for _ in range(2):
        await place.runtime.prepare(spec, no_progress)
        await place.runtime.start(spec.workload_id)
    await until_ended(place, spec.workload_id)
    await place.runtime.prepare(spec, no_progress)
    await place.runtime.start(spec.workload_id)
    assert (await log_of(place, spec.workload_id, follow=True))[0] == b"once\n"


async def test_running_time_grows_and_stops_with_the_workload(place: Place):
    spec = place.spec("sleep", "0.5")
    await place.runtime.prepare(spec, no_progress)
    first = await place.runtime.start(spec.workload_id)
    last = await until_ended(place, spec.workload_id)
    again = await place.runtime.observe(spec.workload_id)
    assert first.running_ns <= last.running_ns
    assert 400 * MILLISECOND <= last.running_ns < MINUTE
    assert again is not None and again.running_ns == last.running_ns


async def test_who_pauses_between_looks_sees_the_end_and_looks_seldom(place: Place):
    spec = place.spec("sleep", "1")
    await place.runtime.prepare(spec, no_progress)
    await place.runtime.start(spec.workload_id)
    looks = 0
    while (run := await place.runtime.observe(spec.workload_id)) and run.state is RunState.RUNNING:
        looks += 1
        await place.runtime.pause(spec.workload_id, place.clock)
    assert run is not None and run.state is RunState.EXITED
    assert looks <= place.looks_a_second


async def test_another_agent_adopts_what_runs_and_its_time_goes_on(place: Place):
    spec = place.spec("sleep", "300")
    await place.runtime.prepare(spec, no_progress)
    before = await place.runtime.start(spec.workload_id)
    adopted = place.again()
    try:
        (run,) = await adopted.list()
        assert (run.workload_id, run.state, run.slots) == (spec.workload_id, RunState.RUNNING, spec.slots)
        assert run.running_ns >= before.running_ns
        assert run.started_wall_ns == before.started_wall_ns
        await adopted.stop(spec.workload_id, 0)
        ended = await adopted.observe(spec.workload_id)
        assert ended is not None and (ended.state, ended.exit_code) == (RunState.EXITED, 137)
    finally:
        await adopted.close()


async def test_stopping_and_removing_twice_is_the_same_as_once(place: Place):
    spec = place.spec("sleep", "300")
    await place.runtime.prepare(spec, no_progress)
    await place.runtime.start(spec.workload_id)
    for _ in range(2):
        await place.runtime.stop(spec.workload_id, 0)
    for _ in range(2):
        await place.runtime.remove(spec.workload_id)
    assert await place.runtime.observe(spec.workload_id) is None
    assert await place.runtime.list() == ()


async def test_without_a_command_it_stays_up_until_it_is_removed(place: Place):
    spec = place.spec()
    await place.runtime.prepare(spec, no_progress)
    run = await place.runtime.start(spec.workload_id)
    assert run.state is RunState.RUNNING
    await place.runtime.remove(spec.workload_id)
    assert await place.runtime.list() == ()


async def test_a_command_that_cannot_be_run_is_an_error_with_its_name(place: Place):
    spec = place.spec("/nonexistent/program")
    await place.runtime.prepare(spec, no_progress)
    try:
        await place.runtime.start(spec.workload_id)
    except WorkloadFailed as error:
        said = error.detail
    else:  # a container's init runs, and finds no program
        run = await until_ended(place, spec.workload_id)
        assert run.exit_code == 127
        said = run.detail
    assert "/nonexistent/program" in said


async def test_an_unknown_workload_is_not_found(place: Place):
    unknown = new_id()
    assert await place.runtime.observe(unknown) is None
    await place.runtime.stop(unknown, 0)
    await place.runtime.remove(unknown)
    for call in (
        place.runtime.start(unknown),
        place.runtime.logs(unknown, 0, False),
        place.runtime.get_files(unknown, False, 0),
        place.runtime.exec(unknown, ("true",)),
        place.runtime.put_files(unknown, in_pieces(tar_of({})), 0),
    ):
        with pytest.raises(NotFound):
            await call


async def test_files_go_in_and_only_changed_ones_come_back(place: Place):
    argv = ("write", "out.txt", "hi") if not place.is_real else ("sh", "-c", "cat kept.txt; printf hi >out.txt")
    spec = place.spec(*argv)
    await place.runtime.prepare(spec, no_progress)
    taken = await place.runtime.put_files(spec.workload_id, in_pieces(tar_of({"kept.txt": b"old", "d/x": b"y"})), 0)
    assert (taken.files, taken.bytes) == (2, 4)
    await place.runtime.start(spec.workload_id)
    await until_ended(place, spec.workload_id)
    assert await files_of(place, spec.workload_id, changed_only=True) == {"out.txt": b"hi"}
    await place.runtime.put_files(spec.workload_id, in_pieces(tar_of({"d/x": b"y", "more": b"z"})), 0)
    assert await files_of(place, spec.workload_id, changed_only=True) == {"out.txt": b"hi"}
    assert await files_of(place, spec.workload_id, changed_only=False) == {
        "kept.txt": b"old",
        "d/x": b"y",
        "more": b"z",
        "out.txt": b"hi",
    }


@pytest.mark.row("K2")
@only(REAL)
async def test_content_decides_what_changed_and_modes_links_and_times_survive(place: Place):
    """Touched is not changed, and a change that hides behind the old size and time is one."""
    sent = {"same": (0o640, b"abc"), "touched": (0o755, b"abc"), "hidden": (0o644, b"abc"), "late": (0o600, b"abc")}
    words = (
        "touch touched && cp -p hidden .t && printf xyz >hidden && touch -r .t hidden && rm .t && chmod 600 same"
        " && ln -s same link && ln late again && mkdir -p empty/er && chmod 750 empty"
        " && printf new >made && chmod 664 made && mkfifo pipe"
    )
    spec = place.spec("sh", "-c", words)
    await place.runtime.prepare(spec, no_progress)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, (mode, data) in sent.items():
            member = tarfile.TarInfo(name)
            member.mode, member.size = mode, len(data)
            member.pax_headers = {"mtime": "1700000000.123456789"}
            tar.addfile(member, io.BytesIO(data))
        member = tarfile.TarInfo("kept")
        member.type, member.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(member)
    await place.runtime.put_files(spec.workload_id, in_pieces(archive.getvalue()), 0)
    await place.runtime.start(spec.workload_id)
    assert (await until_ended(place, spec.workload_id)).exit_code == 0

    data = await tar_bytes_of(place, spec.workload_id, changed_only=True)
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        found = {one.name: one for one in tar}
    assert sorted(found) == ["again", "empty", "empty/er", "hidden", "link", "made", "pipe"]
    assert found["again"].isreg() and found["again"].size == 3
    assert found["link"].linkname == "same" and found["empty/er"].isdir()
    assert oct(found["made"].mode) == "0o664" and oct(found["hidden"].mode) == "0o644"
    assert oct(found["empty"].mode) == "0o750"
    assert found["pipe"].isfifo(), "so that whoever fetches it can say what does not come"
    everything = await tar_bytes_of(place, spec.workload_id, changed_only=False)
    with tarfile.open(fileobj=io.BytesIO(everything)) as tar:
        assert oct(tar.getmember("touched").mode) == "0o755"
        assert int(tar.getmember("late").mtime) == 1_700_000_000


async def test_files_beyond_the_cap_are_refused_and_what_is_there_comes_from_any_byte_on(place: Place):
    spec = place.spec()
    await place.runtime.prepare(spec, no_progress)
    await place.runtime.put_files(spec.workload_id, in_pieces(tar_of({"a": b"x" * 100, "b": b"y" * 5000})), 0)
    whole = await tar_bytes_of(place, spec.workload_id, False)
    for offset in (1, 511, 700, 2000, len(whole) - 1, len(whole), len(whole) + 5):
        assert await tar_bytes_of(place, spec.workload_id, False, offset) == whole[offset:]
    with pytest.raises(TooLarge):
        await place.runtime.put_files(spec.workload_id, in_pieces(tar_of({"c": b"z" * 3 * MIB})), MIB)


@pytest.mark.parametrize("name", ["../out", "/etc/out", "a/../../out"])
async def test_an_archive_that_leads_out_of_the_folder_is_refused(place: Place, name: str):
    spec = place.spec()
    await place.runtime.prepare(spec, no_progress)
    with pytest.raises(InvalidInput):
        await place.runtime.put_files(spec.workload_id, in_pieces(tar_of({name: b"x"})), 0)


async def test_a_stream_that_is_no_archive_is_refused(place: Place):
    spec = place.spec()
    await place.runtime.prepare(spec, no_progress)
    with pytest.raises(InvalidInput):
        await place.runtime.put_files(spec.workload_id, in_pieces(b"not a tar" * 1000), 0)


async def test_one_more_command_runs_beside_it(place: Place):
    spec = place.spec()
    await place.runtime.prepare(spec, no_progress)
    with pytest.raises(Conflict):
        await place.runtime.exec(spec.workload_id, ("echo", "early"))
    await place.runtime.start(spec.workload_id)
    session = await place.runtime.exec(spec.workload_id, ("echo", "beside"))
    output = b""
    while (piece := await session.read()) is not None:
        output += piece[1]
    await session.close()
    assert (output, session.exit_code) == (b"beside\n", 0)


async def test_a_log_is_followed_until_the_end(place: Place):
    argv = ("echo", "a line") if not place.is_real else ("sh", "-c", "echo a line; sleep 0.5; echo last")
    spec = place.spec(*argv)
    await place.runtime.prepare(spec, no_progress)
    await place.runtime.start(spec.workload_id)
    data, _ = await log_of(place, spec.workload_id, follow=True)
    assert data in (b"a line\n", b"a line\nlast\n")
    assert data.endswith(b"last\n") or not place.is_real


@only(REAL)
@pytest.mark.parametrize("words", ["yes 0123456789 | head -c 750000", "dd if=/dev/zero bs=250000 count=3"])
async def test_a_flooded_log_is_cut_and_says_so(place: Place, words: str):
    cap = MIB // 4
    spec = place.spec("sh", "-c", words, log_cap_bytes=cap)
    await run_to_end(place, spec)
    data, truncated = await log_of(place, spec.workload_id, follow=True)
    assert truncated
    assert cap <= len(data) < cap + 200
    assert b"the log was cut here" in data[-200:]


@only(REAL)
async def test_stopping_asks_before_it_kills(place: Place):
    spec = place.spec("sh", "-c", "trap 'echo asked; exit 3' TERM; echo ready; while true; do sleep 0.1; done")
    await place.runtime.prepare(spec, no_progress)
    await place.runtime.start(spec.workload_id)
    await _until_ready(place, spec)
    await place.runtime.stop(spec.workload_id, 10 * SECOND)
    run = await until_ended(place, spec.workload_id)
    assert run.exit_code == 3
    assert b"asked" in (await log_of(place, spec.workload_id))[0]


@only(REAL)
async def test_what_ignores_the_question_is_killed_with_all_it_started(place: Place):
    nap = _nap()
    spec = place.spec("sh", "-c", f"trap '' TERM; (trap '' TERM; {nap}) & echo ready; {nap}; {nap}")
    await place.runtime.prepare(spec, no_progress)
    await place.runtime.start(spec.workload_id)
    await _until_ready(place, spec)
    await place.runtime.stop(spec.workload_id, 100 * MILLISECOND)
    run = await until_ended(place, spec.workload_id)
    assert run.exit_code == 137
    assert not _sleepers(nap)


@only(REAL)
async def test_children_left_behind_end_with_the_command(place: Place):
    nap = _nap()
    spec = place.spec("sh", "-c", f"{nap} & true")
    await run_to_end(place, spec)
    assert not _sleepers(nap)


@only(REAL)
async def test_an_exec_that_is_closed_leaves_nothing(place: Place):
    nap = _nap()
    spec = place.spec()
    await place.runtime.prepare(spec, no_progress)
    await place.runtime.start(spec.workload_id)
    # It is asked first: a busy Podman may lose what a command says at once (github.com/containers/podman/issues/25855).
    session = await place.runtime.exec(spec.workload_id, ("sh", "-c", f"read -r word; echo $word; {nap}"))
    await session.write(b"up\n")
    assert (await session.read()) == (1, b"up\n")
    await session.close()
    await poll_async(lambda: nap not in commands(), what="the command has ended")


@only(REAL)
async def test_an_exec_takes_input_and_tells_its_exit_code_and_both_streams(place: Place):
    spec = place.spec()
    await place.runtime.prepare(spec, no_progress)
    await place.runtime.start(spec.workload_id)
    session = await place.runtime.exec(spec.workload_id, ("sh", "-c", "cat; echo bad >&2; exit 5"))
    await session.write(b"given\n")
    await session.write(b"")
    pieces = []
    while (piece := await session.read()) is not None:
        pieces.append(piece)
    await session.close()
    assert b"".join(data for stream, data in pieces if stream == 1) == b"given\n"
    assert b"".join(data for stream, data in pieces if stream == 2) == b"bad\n"
    assert session.exit_code == 5


@only(REAL)
async def test_a_shell_has_a_terminal_that_is_resized_and_interrupted(place: Place):
    nap = _nap()
    spec = place.spec()
    await place.runtime.prepare(spec, no_progress)
    await place.runtime.start(spec.workload_id)
    session = await place.runtime.terminal(spec.workload_id)
    said = bytearray()

    async def hears(text: bytes) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while text not in said:
                piece = await session.read()
                assert piece is not None, bytes(said)
                said.extend(piece[1])

    await session.resize(TerminalSize(101, 37))
    await session.write(b"stty size; echo $TERM-$((6*7))\n")
    await hears(b"37 101\r\nxterm-256color-42")
    await session.write(f"{nap}\n".encode())
    await poll_async(lambda: nap in commands(), what="it sleeps")
    await session.write(b"\x03echo int$((1))\n")
    await hears(b"int1")
    await session.write(f"{nap} & exit 3\n".encode())  # what goes on in the background does not hold the terminal
    async with asyncio.timeout(PATIENCE_S):
        while await session.read() is not None:
            pass
    await session.close()
    assert session.exit_code == 3


@only(REAL)
async def test_a_closed_terminal_leaves_nothing(place: Place):
    nap = _nap()
    spec = place.spec()
    await place.runtime.prepare(spec, no_progress)
    await place.runtime.start(spec.workload_id)
    session = await place.runtime.terminal(spec.workload_id)
    await session.write(f"{nap}\n".encode())
    await poll_async(lambda: nap in commands(), what="it sleeps")
    await session.close()
    await poll_async(lambda: nap not in commands(), what="the shell and its command have ended")


@only(PROCESSES)
async def test_the_environment_is_small_and_gpus_are_named_by_uuid(place: Place):
    os.environ["WINDROW_TEST_SECRET"] = "must-not-leak"
    with contextlib.ExitStack() as stack:
        stack.callback(os.environ.pop, "WINDROW_TEST_SECRET")
        spec = place.spec("env", env={"MINE": "1", "CUDA_VISIBLE_DEVICES": "GPU-not-mine"})
        await run_to_end(place, spec)
    text = (await log_of(place, spec.workload_id))[0].decode()
    assert "MINE=1" in text.splitlines()
    assert "CUDA_VISIBLE_DEVICES=" in text.splitlines()
    assert "must-not-leak" not in text


@only(PROCESSES)
async def test_python_is_found(place: Place):
    spec = place.spec("python", "-c", "print(6 * 7)")
    run = await run_to_end(place, spec)
    assert (run.exit_code, (await log_of(place, spec.workload_id))[0]) == (0, b"42\n")


@only(BUBBLEWRAP)
async def test_bubblewrap_hides_the_agents_folder(place: Place, tmp_path):
    (tmp_path / "sign.key").write_text("secret")
    spec = place.spec("sh", "-c", f"cat {tmp_path}/sign.key; touch /usr/x 2>/dev/null && echo writable; echo done")
    await run_to_end(place, spec)
    log = (await log_of(place, spec.workload_id))[0]
    assert b"secret" not in log and b"writable" not in log and b"done" in log


@only(PROCESSES)
async def test_a_killed_shim_takes_its_workload_with_it_and_the_end_counts_as_unseen(place: Place):
    nap = _nap()
    spec = place.spec("sh", "-c", f"{nap} & {nap}")
    await place.runtime.prepare(spec, no_progress)
    await place.runtime.start(spec.workload_id)
    runtime = place.runtime
    assert isinstance(runtime, ProcessRuntime)
    os.kill(runtime.shim_pid(spec.workload_id) or 0, signal.SIGKILL)

    async def lost() -> bool:
        run = await runtime.observe(spec.workload_id)
        return run is not None and run.state is RunState.LOST

    await poll_async(lost, what="the loss is seen")
    await runtime.stop(spec.workload_id, 0)
    assert not _sleepers(nap)


@only(PROCESSES)
@pytest.mark.parametrize("said", ["exit 143", "exit 0"])
async def test_what_somebody_else_ends_on_its_host_is_lost_whatever_it_says(place: Place, said: str):
    words = f"trap '{said}' TERM; echo ready; while :; do sleep 0.1; done"
    runtime, spec = place.runtime, place.spec("sh", "-c", words)
    assert isinstance(runtime, ProcessRuntime)
    await runtime.prepare(spec, no_progress)
    await runtime.start(spec.workload_id)
    await _until_ready(place, spec)
    os.kill(runtime.shim_pid(spec.workload_id) or 0, signal.SIGTERM)

    async def over() -> Run | None:
        run = await runtime.observe(spec.workload_id)
        return run if run is not None and run.state is not RunState.RUNNING else None

    run = await poll_async(over, what="its end is seen")
    assert run is not None and (run.state, run.exit_code, run.detail) == (RunState.LOST, None, ENDED_BY_HOST)


@only(REAL)
async def test_a_preparation_that_is_broken_off_makes_nothing_after_it_was_removed(place: Place, monkeypatch):
    spec, begun, may_go_on = place.spec("true"), threading.Event(), threading.Event()
    kind = type(place.runtime)
    make = getattr(kind, name := "_create" if place.has_containers else "_make")

    def slowly(*args, **more):
        begun.set()
        may_go_on.wait(PATIENCE_S)
        make(*args, **more)

    monkeypatch.setattr(kind, name, slowly)
    async with asyncio.TaskGroup() as group:
        preparing = group.create_task(place.runtime.prepare(spec, no_progress))
        await asyncio.to_thread(begun.wait, PATIENCE_S)
        preparing.cancel()
        await asyncio.wait({preparing}, timeout=0.1)
        went_on_alone = preparing.done()
        may_go_on.set()
    assert preparing.cancelled() and not went_on_alone
    await place.runtime.remove(spec.workload_id)
    assert await place.runtime.list() == ()


@only(WITH_IMAGES)
async def test_an_unknown_image_is_said_to_be_unavailable(place: Place):
    spec = place.spec("echo")
    spec = WorkloadSpec(new_id(), spec.cluster_id, spec.slots, spec.runtime, "missing.invalid/none:1", ("echo",))
    with pytest.raises(ImageUnavailable):
        await place.runtime.prepare(spec, no_progress)


@only(PLAIN)
async def test_a_process_workload_with_an_image_is_refused(place: Place):
    with pytest.raises(WindrowError):
        await place.runtime.prepare(WorkloadSpec(new_id(), ClusterId("c"), (), "process", image="busybox"), no_progress)


async def _until_ready(place: Place, spec: WorkloadSpec) -> None:
    """Until the workload has said so: what it traps is trapped from then on."""

    async def ready() -> bool:
        return b"ready" in (await log_of(place, spec.workload_id))[0]

    await poll_async(ready, what="the trap is set")


def _nap() -> str:
    """A command that nobody else runs: other tests run beside this one, and containers show in the same table."""
    return f"sleep {10**6 + uuid.uuid4().int % 10**6}"


def _sleepers(nap: str) -> list[str]:
    return [line for line in commands().splitlines() if nap in line and "sh -c" not in line]
