"""The worker by itself, a real process behind a socket: calls, edits, and whatever functions do to it."""

import asyncio
import enum
import functools
import os
import signal
import sys
import threading
import types
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import windrow
from tests.support.worker import Worker, working
from tests.unit.functions.conftest import CODE, Code, gathered
from tests.waiting import PATIENCE_S, poll
from windrow.errors import (
    LineBroken,
    RemoteError,
    RemoteTraceback,
    ResultLost,
    RunCancelled,
    RunDied,
    RunTimedOut,
    UntrustedResult,
    WaitTimedOut,
)
from windrow.remote import loop
from windrow.worker import frames


def test_arguments_and_results_go_both_ways_with_classes_of_ones_own(worker: Worker, code: Code) -> None:
    assert code.on(worker, "add")(2, b=3) == 5
    assert code.on(worker, "twice")(code.module.Point(4)) == code.module.Point(8)
    assert code.on(worker, "later")(1) == 2


@pytest.mark.case("B-G11")
def test_an_edit_is_what_the_next_call_runs(worker: Worker, code: Code) -> None:
    (code.folder / "beside.py").write_text("VALUE = 1\n")
    code.write(CODE + "\ndef both():\n    import beside\n    return beside.VALUE, number()\n")
    assert code.on(worker, "both")() == (1, 1)
    (code.folder / "beside.py").write_text("VALUE = 2\n")
    assert code.on(worker, "both")() == (2, 1)
    code.write(
        CODE.replace("return 1", "return 9") + "\ndef both():\n    import beside\n    return beside.VALUE, number()\n"
    )
    assert code.on(worker, "both")() == (2, 9)
    (code.folder / "beside.py").unlink()
    with pytest.raises(ModuleNotFoundError):
        code.on(worker, "both")()


def test_a_call_under_way_never_sees_the_next_state_of_the_code(worker: Worker, code: Code, there: Path) -> None:
    late = (
        "\ndef late(folder):\n    import os, time\n    open(folder + '/begun', 'w').close()\n"
        "    while not os.path.exists(folder + '/go'): time.sleep(0.01)\n    import beside\n    return beside.VALUE\n"
    )
    (code.folder / "beside.py").write_text("VALUE = 'old'\n")
    code.write(CODE + late)
    run = code.on(worker, "late").remote(str(there))
    poll(lambda: (there / "begun").exists())
    (code.folder / "beside.py").write_text("VALUE = 'new'\n")
    assert code.on(worker, "number")() == 1
    (there / "go").touch()
    assert run.result(PATIENCE_S) == "old"


def test_only_what_changed_is_sent_again(worker: Worker, code: Code, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[frames.Kind] = []
    encode_record = frames.encode_record

    def noted(kind: frames.Kind, number: int, record: dict[str, Any]) -> bytes:
        sent.append(kind)
        return encode_record(kind, number, record)

    code.on(worker, "number")()
    for number in range(20):
        (code.folder / f"file_{number}.py").write_text(f"VALUE = {number!r} + {uuid.uuid4().int}\n")
    session = worker.session()
    monkeypatch.setattr(frames, "encode_record", noted)
    code.on(worker, "number", session=session)()
    assert sent.count(frames.Kind.FILE) == 20  # the module itself is there already
    sent.clear()
    (code.folder / "file_3.py").write_text("VALUE = 0\n")
    code.on(worker, "number", session=session)()
    assert (sent.count(frames.Kind.FILE), sent.count(frames.Kind.TREE), sent.count(frames.Kind.CALL)) == (1, 1, 1)
    sent.clear()
    code.on(worker, "number", session=session)()
    assert sent.count(frames.Kind.TREE) == 0


def test_a_worker_that_has_forgotten_the_code_gets_it_again(worker: Worker, code: Code) -> None:
    session = worker.session()
    assert code.on(worker, "number", session=session)() == 1
    code.write(CODE.replace("return 1", "return 2"))
    session._known |= {"never sent"}
    tree = windrow.remote.function._folders.look(code.folder)
    session._known |= set(tree.files)  # wrong: the new file never went
    assert code.on(worker, "number", session=session)() == 2


def test_ten_calls_run_at_once(worker: Worker, code: Code, there: Path) -> None:
    found = list(code.on(worker, "together").map([str(there)] * 10, [10] * 10))
    assert len(set(found)) == 10


def test_a_fresh_process_for_each_call_and_a_pool_that_keeps_what_it_loads(worker: Worker, code: Code) -> None:
    cluster = worker.cluster()
    each = windrow.function(code.module.remember).to(cluster)
    assert [each(1), each(2)] == [[1], [2]]
    pool = each.distribute("pool", 1)
    assert [pool(1), pool(2)] == [[1], [1, 2]]
    pids = windrow.function(code.module.pid).to(cluster).distribute("pool", 2)
    assert len(set(pids.map(range(8)))) <= 2


def _spare(parent: int, *others: int) -> int:
    """The one child that waits, once whoever ran is gone."""
    children = Path(f"/proc/{parent}/task/{parent}/children")
    poll(lambda: len(set(map(int, children.read_text().split())) - set(others)) == 1)
    (found,) = set(map(int, children.read_text().split())) - set(others)
    return found


def test_the_next_calls_process_is_there_before_it_and_another_where_that_was_ended(worker: Worker, code: Code) -> None:
    pid, (first, parent) = code.on(worker, "pid"), code.on(worker, "family")()
    second = _spare(parent, first)
    assert pid() == second

    third = _spare(parent, first, second)
    os.kill(third, signal.SIGKILL)
    poll(lambda: not Path(f"/proc/{third}").exists(), what="the ended process was noticed")
    assert pid() not in (first, second, third)


def test_a_pool_goes_on_after_one_of_it_has_died(worker: Worker, code: Code) -> None:
    cluster = worker.cluster()
    dies = windrow.function(code.module.dies).to(cluster).distribute("pool", 1)
    with pytest.raises(RunDied):
        dies()
    assert windrow.function(code.module.number).to(cluster).distribute("pool", 1)() == 1


@pytest.mark.case("M-9")
def test_a_process_that_a_call_starts_finds_the_code_too(worker: Worker, code: Code, there: Path) -> None:
    (there / "module_beside.py").write_text("VALUE = 7\n")
    asks = (
        "\ndef asks():\n"
        "    program = f'import {__name__} as it, module_beside; print(it.number(), module_beside.VALUE)'\n"
        "    return subprocess.run([sys.executable, '-c', program], capture_output=True, text=True).stdout\n"
    )
    code.write(CODE + asks)
    own = windrow.env(variables={"PYTHONPATH": str(there)})
    assert code.on(worker, "asks", env=own)() == "1 7\n"


def test_a_function_without_a_name_goes_by_value(worker: Worker, code: Code) -> None:
    offset = 3
    assert windrow.function(_of(code, lambda n: n + offset)).to(worker.cluster())(4) == 7


def _of(code: Code, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of this file as one of that code: its folder is sent, and not this whole repository."""
    function.__module__ = code.module.__name__
    return function


@pytest.mark.case("B-G5")
def test_a_partial_function_brings_the_folder_of_what_it_calls(worker: Worker, code: Code) -> None:
    once = functools.partial(code.module.add, 1)
    assert windrow.function(once).to(worker.cluster())(2) == 3
    assert windrow.function(functools.partial(once, b=3)).to(worker.cluster())() == 4


def test_a_bound_method_is_called_on_its_object(worker: Worker, code: Code) -> None:
    code.write("class Adder:\n    def __init__(self, n): self.n = n\n    def add(self, m): return self.n + m\n")
    assert windrow.function(code.module.Adder(2).add).to(worker.cluster())(3) == 5


@pytest.mark.case("B-G6")
def test_objects_of_a_class_that_went_there_by_value_come_back_as_that_class(worker: Worker, code: Code) -> None:
    @dataclass
    class Point:
        x: int

    class Light(enum.Enum):
        RED = 1

    class Odd(Exception):
        pass

    def moved(point: Point) -> list[Any]:
        return [Point(point.x + 1), Light.RED, {"in": Point(7)}]

    def fails() -> None:
        raise Odd("odd")

    cluster, moved, fails = worker.cluster(), _of(code, moved), _of(code, fails)
    assert windrow.function(moved).to(cluster)(Point(1)) == [Point(2), Light.RED, {"in": Point(7)}]
    pool = windrow.function(moved).to(cluster).distribute("pool", 1)
    assert [pool(Point(n))[0] for n in (1, 2)] == [Point(2), Point(3)]
    with pytest.raises(Odd, match="odd"):
        windrow.function(fails).to(cluster)()
    assert windrow.function(moved).to(worker.cluster(trusts_host=True))(Point(1))[0] == Point(2)


def test_flags_come_back_alone_together_and_empty(worker: Worker, code: Code) -> None:
    code.write(
        "import enum\nclass Perm(enum.Flag):\n    R = 1\n    W = 2\n    X = 4\n"
        "class Bits(enum.IntFlag):\n    A = 1\n    B = 8\n"
        "def flags(): return [Perm.R, Perm.R | Perm.X, Perm(0), ~Perm.R, Bits.A | Bits.B, Bits(3)]\n"
    )
    made = code.on(worker, "flags")()
    assert made == code.module.flags()
    assert [type(one) for one in made] == [type(one) for one in code.module.flags()]


@pytest.mark.case("B-G8")
def test_a_generator_gives_the_same_items_here(worker: Worker, code: Code) -> None:
    code.write(
        "def some(n):\n    yield from range(n)\n    return 'end'\n"
        "def mapped(): return map(str, [1, 2])\n"
        "def fails():\n    yield 1\n    raise KeyError('late')\n"
        "async def later(n):\n    for one in range(n): yield one\n"
    )

    def all_of() -> Any:
        returned = yield from code.on(worker, "some")(3)
        yield returned

    assert list(all_of()) == [0, 1, 2, "end"]
    assert next(code.on(worker, "some")(3)) == 0
    assert list(code.on(worker, "mapped")()) == ["1", "2"]
    with pytest.raises(KeyError, match="late"):
        code.on(worker, "fails")()

    async def gathered() -> list[int]:
        return [one async for one in code.on(worker, "later")(2)]

    assert asyncio.run(gathered()) == [0, 1]


@pytest.mark.parametrize("file", ["train", "train.v2.py", "queue.py", "my-train.py"])
def test_a_script_runs_there_whatever_its_file_is_called(
    worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    folder = tmp_path / "scripts"
    folder.mkdir()
    path = folder / file
    path.write_text("class Point:\n    def __init__(self, x): self.x = x\ndef move(p): return Point(p.x + 1)\n")
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=str(path), __spec__=None)
    exec(compile(path.read_text(), str(path), "exec"), main.__dict__)
    monkeypatch.setitem(sys.modules, "__main__", main)

    moved = windrow.function(main.move).to(worker.cluster())(main.Point(1))

    assert isinstance(moved, main.Point) and moved.x == 2


NOTEBOOK = """
from dataclasses import dataclass, field

@dataclass(slots=True)
class Plain:
    a: int = 1
    inner: "Plain | None" = None

@dataclass(frozen=True, slots=True)
class Frozen:
    a: int = 1

@dataclass(frozen=True, slots=True)
class More(Frozen):
    b: list = field(default_factory=list)

class Bare:
    __slots__ = ("x", "never")
    def __init__(self, x): self.x = x
    def __eq__(self, other): return type(other) is Bare and self.x == other.x

class Free(Plain):
    pass

def made():
    return [Plain(2, Plain(3)), Frozen(4), More(5, [6]), Bare(7), Free(8)]

def returned(given):
    assert given == made() and not hasattr(given[0], "__dict__"), given
    return given
"""


@pytest.mark.parametrize("trusts", [False, True])
def test_objects_of_a_notebooks_classes_with_slots_go_there_and_come_back(
    worker: Worker, monkeypatch: pytest.MonkeyPatch, trusts: bool
) -> None:
    main = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    exec(compile(NOTEBOOK, "<stdin>", "exec"), main.__dict__)
    cluster = worker.cluster()
    cluster.trusts_host = trusts

    assert windrow.function(main.made).to(cluster)() == main.made()
    assert windrow.function(main.returned).to(cluster)(main.made()) == main.made()


def test_output_comes_by_line_from_both_streams(worker: Worker, code: Code) -> None:
    function, found = gathered(code.on(worker, "said"))
    function()
    assert sorted(found) == [(1, b"one\n"), (1, b"three"), (2, b"two\n")]


def test_binary_output_comes_as_it_is(worker: Worker, code: Code) -> None:
    function, found = gathered(code.on(worker, "binary"))
    function()
    assert sorted(found) == [(1, b"\xff\x00 a\n"), (2, b"to the other\n")]


def test_output_without_end_is_cut_and_says_so(worker: Worker, code: Code) -> None:
    function, found = gathered(code.on(worker, "endless"))
    function((64 << 20) + (1 << 20))
    assert sum(len(data) for _, data in found) <= (64 << 20) + 200
    assert b"the rest was dropped" in found[-1][1]


def test_a_line_without_end_comes_whole(worker: Worker, code: Code) -> None:
    function, found = gathered(code.on(worker, "one_line"))
    function(8 << 20)
    assert b"".join(data for _, data in found) == b"x" * (8 << 20)


def test_what_a_function_raises_is_raised_here_with_where_it_was(worker: Worker, code: Code) -> None:
    with pytest.raises(KeyError, match="nothing") as caught:
        code.on(worker, "fails")()
    cause = caught.value.__cause__
    assert isinstance(cause, RemoteTraceback)
    assert f'File "{code.folder}/{code.name}.py"' in str(cause)
    assert "in fails" in str(cause)


@pytest.mark.case("B-G9")
def test_an_exception_whose_init_wants_more_than_it_kept_is_raised_as_itself(worker: Worker, code: Code) -> None:
    with pytest.raises(Exception, match="1 and 2") as caught:
        code.on(worker, "odd")()
    assert type(caught.value).__name__ == "Odd"
    assert "in odd" in str(caught.value.__cause__)


@pytest.mark.parametrize(
    ("name", "error", "text"),
    [
        ("mute", "Mute", "exception str() failed"),
        ("rude", "Rude", "rude"),
        ("glued", "RemoteError", "glued"),
        ("noted", "Noted", "noted"),
        ("several", "ExceptionGroup", "one of them"),
        ("undecodable", "ValueError", "\udcff"),
        ("wordy", "ValueError", "characters of this traceback were left out here"),
        ("colourful", "ValueError", "characters of this traceback were left out here"),
        ("unspeakable", "Unspeakable", "rrrr"),
        ("annotated", "ValueError", "nnnn"),
        ("chained", "KeyError", "KeyError: 'chained'"),
        ("renamed", "RemoteError", "renamed"),
    ],
)
@pytest.mark.case("B-G9")
def test_an_exotic_exception_is_raised_here_as_what_it_can_be(
    worker: Worker, code: Code, name: str, error: str, text: str
) -> None:
    with pytest.raises(BaseException) as caught:
        code.on(worker, name)()
    assert type(caught.value).__name__ == error
    assert f"in {name}" in (told := str(caught.value.__cause__)) and text in told
    assert code.on(worker, "number")() == 1


def test_a_long_traceback_keeps_both_ends_and_says_what_is_left_out(worker: Worker, code: Code) -> None:
    with pytest.raises(KeyError) as caught:
        code.on(worker, "deep")()
    lines = str(caught.value.__cause__).strip().splitlines()
    (cut,) = [number for number, line in enumerate(lines) if "characters of this traceback were left out here" in line]
    assert "in deep" in "\n".join(lines[:5]) and "in ping" in "\n".join(lines[:cut])
    assert "in fails" in "\n".join(lines[-5:]) and lines[-1] == "KeyError: 'nothing'"


@pytest.mark.parametrize(
    ("name", "error", "text"),
    [
        ("unpicklable", ResultLost, "of type lock, cannot be pickled"),
        ("a_program", UntrustedResult, "subprocess.CompletedProcess"),
        ("a_lambda", UntrustedResult, "cloudpickle"),
        ("dies", RunDied, "SIGKILL"),
        ("leaves", RunDied, "exit code 5"),
        ("recursion", RecursionError, "maximum recursion"),
        ("exits", RemoteError, "SystemExit: 3"),
    ],
)
@pytest.mark.case("B-G9")
def test_a_bad_end_is_a_clear_error(worker: Worker, code: Code, name: str, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        code.on(worker, name)()
    assert code.on(worker, "number")() == 1


def test_a_trusted_host_may_return_anything(worker: Worker, code: Code) -> None:
    assert code.on(worker, "a_program", trusts_host=True)().returncode == 0
    assert code.on(worker, "a_lambda", trusts_host=True)()() == 1


def test_a_large_result_comes_whole_and_one_too_large_says_so(worker: Worker, code: Code) -> None:
    assert len(code.on(worker, "huge")(20 << 20)) == 20 << 20
    with pytest.raises(ResultLost, match="larger than 256 MiB"):
        code.on(worker, "huge")(256 << 20)


def test_a_cancelled_call_ends_with_what_it_started(worker: Worker, code: Code, there: Path) -> None:
    run = code.on(worker, "sleep").remote(str(there))
    poll(lambda: (there / "begun").exists())
    run.cancel()
    with pytest.raises(RunCancelled):
        run.result(PATIENCE_S)


def test_a_call_that_ignores_the_interrupt_is_ended_by_force(worker: Worker, code: Code, there: Path) -> None:
    run = code.on(worker, "deaf").remote(str(there))
    poll(lambda: (there / "begun").exists())
    run.cancel()
    with pytest.raises(RunCancelled):
        run.result(PATIENCE_S)


def test_an_import_without_end_can_be_cancelled(worker: Worker, code: Code, there: Path) -> None:
    (code.folder / f"{code.name}.py").write_text(
        f"open({str(there / 'begun')!r}, 'w').close()\nimport time\nwhile True: time.sleep(0.1)\n"
    )
    run = code.on(worker, "number").remote()
    poll(lambda: (there / "begun").exists())
    run.cancel()
    with pytest.raises(RunCancelled):
        run.result(PATIENCE_S)


def test_a_time_limit_ends_a_call(worker: Worker, code: Code, there: Path) -> None:
    with pytest.raises(RunTimedOut):
        code.on(worker, "sleep").options(timeout_s=0.2)(str(there))


def test_what_a_call_leaves_running_ends_with_it(worker: Worker, code: Code) -> None:
    pid = code.on(worker, "offspring")()
    poll(lambda: not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text().split()[2])


def test_a_dead_client_leaves_its_run_and_the_next_has_all_of_it(worker: Worker, code: Code, there: Path) -> None:
    session = worker.session()
    run = code.on(worker, "together", session=session).remote(str(there), 2)
    loop.finish(session.close())
    with pytest.raises(LineBroken):
        loop.finish(_broken(session))
    (there / "other").touch()
    number = run.id.removeprefix("run_").partition(".")[0]
    ended = loop.finish(worker.session().attach(number, lambda _stream, _data: None))
    assert ended.record["status"] == "returned"


async def _broken(session: Any) -> None:
    line = session._line
    while not line.is_over:
        await asyncio.sleep(0.01)
    await line.send(b"")


def test_a_line_that_breaks_is_there_again_and_nothing_is_lost_or_twice(
    worker: Worker, code: Code, there: Path
) -> None:
    session = worker.session()
    function, found = gathered(code.on(worker, "sleep", session=session))
    run = function.remote(str(there))
    poll(lambda: found == [(1, b"begun\n")])
    loop.finish(_cut(session))
    poll(lambda: session._line is not None and not session._line.is_over)
    run.cancel()
    with pytest.raises(RunCancelled):
        run.result(PATIENCE_S)
    assert found == [(1, b"begun\n")]


async def _cut(session: Any) -> None:
    line = session._line
    line._writer.transport.abort()
    while not line.is_over:
        await asyncio.sleep(0.01)


def test_a_wait_may_end_before_the_call(worker: Worker, code: Code, there: Path) -> None:
    run = code.on(worker, "sleep").remote(str(there))
    with pytest.raises(WaitTimedOut):
        run.result(0.05)
    run.cancel()
    with pytest.raises(RunCancelled):
        run.result(PATIENCE_S)


def test_asynchronous_callers_await_map_and_cancel(worker: Worker, code: Code, there: Path) -> None:
    cluster = worker.cluster()

    async def work() -> list[int]:
        assert await windrow.function(code.module.add).to(cluster).aio(1, b=1) == 2
        found = [one async for one in windrow.function(code.module.add).to(cluster).aio_map([1, 2], [3, 4])]
        try:
            async with asyncio.timeout(PATIENCE_S) as limit:
                asyncio.get_running_loop().call_later(0.5, limit.reschedule, 0)
                await windrow.function(code.module.sleep).to(cluster).aio(str(there))
        except TimeoutError:
            found.append(-1)
        return found

    assert asyncio.run(work()) == [4, 6, -1]


def test_a_worker_that_was_killed_is_a_broken_line(tmp_path: Path, code: Code, there: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("windrow.remote.session.RECONNECT_S", 0.5)
    with working(tmp_path) as own:
        run = code.on(own, "sleep").remote(str(there))
        poll(lambda: (there / "begun").exists())
        own.process.kill()
        with pytest.raises(LineBroken):
            run.result(PATIENCE_S)


def test_a_stopped_worker_leaves_no_process(tmp_path: Path, code: Code, there: Path) -> None:
    with working(tmp_path) as own:
        code.on(own, "deaf").remote(str(there))
        poll(lambda: (there / "begun").exists())
    poll(lambda: not _processes(tmp_path))


@pytest.mark.parametrize("is_importing", [False, True])
def test_a_killed_worker_leaves_no_process(
    tmp_path: Path, code: Code, there: Path, monkeypatch: pytest.MonkeyPatch, is_importing: bool
) -> None:
    monkeypatch.setattr("windrow.remote.session.RECONNECT_S", 0.5)
    with working(tmp_path) as own:
        assert code.on(own, "number").distribute("pool", 1)() == 1
        if is_importing:
            (code.folder / f"{code.name}.py").write_text(
                f"open({str(there / 'begun')!r}, 'w').close()\nimport time\nwhile True: time.sleep(0.1)\n"
            )
        run = code.on(own, "busy").remote(str(there))
        poll(lambda: (there / "begun").exists())
        own.process.kill()
        own.process.wait()
        poll(lambda: not _processes(tmp_path), what="all that the worker began has ended")
        with pytest.raises(LineBroken):
            run.result(PATIENCE_S)


def _processes(place: Path) -> list[str]:
    """Those that run in the environment of this worker."""
    return [pid for pid in filter(str.isdigit, os.listdir("/proc")) if str(place).encode() in _environment(pid)]


def _environment(pid: str) -> bytes:
    try:
        return Path("/proc", pid, "environ").read_bytes()
    except OSError:
        return b""


@pytest.mark.case("M-5")
def test_a_log_that_grows_in_the_folder_and_files_that_come_and_go_stop_no_call(worker: Worker, code: Code) -> None:
    over = threading.Event()

    def write() -> None:
        with (code.folder / "m.log").open("w") as log:
            log.write("begun\n")
            while not over.wait(0.002):
                log.write("a line\n" * 100)
                log.flush()
                swap = code.folder / ".m.swp"
                swap.touch()
                swap.unlink()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(8):
            assert code.on(worker, "number")() == 1
    finally:
        over.set()
        writer.join()
