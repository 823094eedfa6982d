"""Jobs for programs: what is sent, what a watch tells, plain and asynchronous, against a pretend Master."""

import asyncio
import io
import json
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx2
import pytest

from windrow import jobs
from windrow.client import Client
from windrow.config import Config
from windrow.errors import ApiProblem, MasterUnreachable, WaitTimedOut, WindrowClientError
from windrow.jobs import Job, JobStatus, Log, Platform

Handler = Callable[[httpx2.Request], httpx2.Response]


def job(state: str, **more: Any) -> dict[str, Any]:
    """A job as the API says it."""
    ended = "2030-01-01T00:00:00Z" if state in ("Succeeded", "Failed", "Cancelled", "Lost") else None
    rest: dict[str, Any] = {
        "id": "job_1",
        "name": "train",
        "account_id": "account_1",
        "reason": None,
        "attempts": [],
        "exit_code": None,
        "cost_so_far": "0.00",
    }
    return {**rest, "state": state, "ended_at": ended, **more}


def platform(handler: Handler) -> Platform:
    return Platform(client=Client(Config("http://master", "wr_x"), transport=httpx2.MockTransport(handler)))


class Replies:
    """A Master whose job goes on with each look; an exception is raised, and None is an answer that is not there."""

    STEPS = ({"name": "pulling", "detail": None, "progress": 0.5},)

    def __init__(self, *looks: dict[str, Any] | httpx2.Response | None) -> None:
        self.looks, self.asked = list(looks), 0

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        if "/clusters/" in request.url.path:
            return httpx2.Response(200, json={"id": "cluster_2", "steps": list(self.STEPS)})
        self.asked += 1
        look = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        if look is None:
            raise httpx2.ConnectError("away", request=request)
        return look if isinstance(look, httpx2.Response) else httpx2.Response(200, json=look)


MOVED = [{"cluster_id": "cluster_1"}, {"cluster_id": "cluster_2"}]
LOOKS = (
    job("Queued", reason="no host fits"),
    job("Queued", reason="no host fits"),
    job("Starting", attempts=MOVED),
    job("Running", attempts=MOVED, cost_so_far="0.10"),
    job("Succeeded", attempts=MOVED, cost_so_far="0.25", exit_code=0),
)


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "JOB_LOOK_S", 0.0)


def plain(one: Job) -> list[JobStatus]:
    return list(one.monitor())


def asynchronous(one: Job) -> list[JobStatus]:
    async def watched() -> list[JobStatus]:
        return [status async for status in one.monitor()]

    return asyncio.run(watched())


BOTH = pytest.mark.parametrize("watch", [plain, asynchronous])


@BOTH
def test_a_monitor_tells_each_change_once_and_ends_with_the_final_one(watch: Callable[[Job], list[JobStatus]]) -> None:
    replies = Replies(*LOOKS)
    told = watch(Job(platform(replies).client, job("Queued")))
    assert [status.state for status in told] == ["Queued", "Starting", "Running", "Succeeded"]
    assert told[0].reason == "no host fits"
    assert (told[0].attempt, told[0].cluster_id, told[0].step_progress) == (0, None, None)
    assert (told[1].step, told[1].step_progress) == ("pulling", 0.5)
    assert (told[1].attempt, told[1].cluster_id, told[1].previous_cluster_id) == (2, "cluster_2", "cluster_1")
    last = told[-1]
    assert (last.cost, last.exit_code, last.is_over, last.succeeded) == (Decimal("0.25"), 0, True, True)
    assert replies.asked == len(LOOKS)


@BOTH
def test_a_master_that_is_away_or_busy_for_a_while_does_not_end_a_monitor(
    watch: Callable[[Job], list[JobStatus]],
) -> None:
    busy = httpx2.Response(503, json={"code": "unavailable", "detail": "later", "retryable": True})
    replies = Replies(job("Running"), None, None, busy, job("Succeeded", exit_code=0))
    assert [one.state for one in watch(Job(platform(replies).client, job("Running")))] == ["Running", "Succeeded"]


def test_a_master_that_stays_away_and_one_that_says_no_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = Replies(httpx2.Response(404, json={"code": "not_found", "detail": "No such job."}))
    with pytest.raises(ApiProblem, match="No such job"):
        plain(Job(platform(gone).client, job("Running")))
    monkeypatch.setattr(jobs, "ABSENT_S", -1.0)
    with pytest.raises(MasterUnreachable):
        plain(Job(platform(Replies(None)).client, job("Running")))


def test_a_wait_gives_the_final_status_or_says_that_it_goes_on() -> None:
    failed = Job(platform(Replies(job("Running"), job("Failed", exit_code=3))).client, job("Running"))
    assert (failed.wait().exit_code, asyncio.run(failed.aio_wait()).succeeded) == (3, False)
    runs = Job(platform(Replies(job("Running"))).client, job("Running"))
    with pytest.raises(WaitTimedOut, match="goes on"):
        runs.wait(timeout_s=0)
    with pytest.raises(WaitTimedOut):
        asyncio.run(runs.aio_wait(timeout_s=0))


def test_looks_are_further_and_further_apart_where_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "JOB_LOOK_S", 1.0)
    watch = jobs._Watch(Job(platform(Replies(job("Running"))).client, job("Running")), None)
    assert watch.look() is not None
    pauses = [watch.pause_s() for _ in range(6)]
    assert pauses == [1.0, 1.5, 2.25, 3.375, 5.0, 5.0]
    assert watch.look() is None


# --- submitting -----------------------------------------------------------------------------------------------------


class Taker:
    """A Master that takes jobs and remembers what came. files: the status with which it takes the folder."""

    def __init__(self, files: int = 200) -> None:
        self.calls: list[tuple[str, str]] = []
        self.body: dict[str, Any] = {}
        self.sent: list[str] = []
        self._files = files

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.path.removeprefix("/api/v1")
        self.calls.append((request.method, path))
        if (request.method, path) == ("POST", "/jobs"):
            self.body = json.loads(request.content)
            return httpx2.Response(201, json={"jobs": [job("Submitted")]})
        if path.endswith("/files"):
            with tarfile.open(fileobj=io.BytesIO(request.read())) as tar:
                self.sent = tar.getnames()
            return httpx2.Response(self._files, json={"detail": "full"} if self._files >= 300 else {"bytes": 1})
        if path.endswith("/cancel"):
            return httpx2.Response(200, json=job("Cancelled"))
        if path == "/me":
            return httpx2.Response(200, json={"account": {"id": "account_1"}})
        if path == "/jobs":
            return httpx2.Response(200, json={"items": [job("Running", id="job_9")], "next_cursor": None})
        return httpx2.Response(200, json=job("Running", id=path.removeprefix("/jobs/")))


def test_what_is_asked_for_is_what_the_master_gets_and_the_folder_follows(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("pass")
    taker = Taker()
    found = platform(taker).submit(
        command=["python", "train.py"], folder=tmp_path, gpu="24GB", cpus=2, memory="8GB", retries=2,
        budget=Decimal("1E+1"), deadline=datetime(2030, 1, 1, tzinfo=UTC), env={"A": "1"}, after=["train", "job_5"],
    )  # fmt: skip
    assert (found.id, taker.sent) == ("job_1", ["train.py"])
    assert taker.body == {
        "argv": ["python", "train.py"], "name": "python", "gpus": 1, "gpu_memory_bytes": 24 * 10**9, "cpus": 2,
        "memory_bytes": 8 * 10**9, "retries": 2, "await_files": True,
        "budget": "10", "deadline": "2030-01-01T00:00:00+00:00", "env": {"A": "1"}, "after": ["job_9", "job_5"],
    }  # fmt: skip


def test_after_the_name_of_an_array_is_after_all_its_jobs_each_as_it_was_run_last() -> None:
    class Arrays(Taker):
        def __call__(self, request: httpx2.Request) -> httpx2.Response:
            if (request.method, request.url.path.removeprefix("/api/v1")) != ("GET", "/jobs"):
                return super().__call__(request)
            rows = [("job_9", "a", 1), ("job_8", "a", 2), ("job_7", "a", 1), ("job_6", "a", 0), ("job_5", "old", 0)]
            items = [job("Running", id=one, group_id=of, array_index=at) for one, of, at in rows]
            return httpx2.Response(200, json={"items": items, "next_cursor": None})

    taker = Arrays()
    platform(taker).submit(["true"], folder=None, after=["train", "job_7"])
    assert taker.body["after"] == ["job_9", "job_8", "job_6", "job_7"]


def test_without_a_folder_it_starts_at_once_also_asynchronously() -> None:
    taker = Taker()
    found = asyncio.run(platform(taker).aio_submit(["true"], folder=None, name="first"))
    assert (found.id, taker.body["await_files"], taker.body["name"]) == ("job_1", False, "first")
    assert taker.calls == [("POST", "/jobs")]


def test_a_login_of_its_registry_goes_with_the_request_in_the_words_of_the_api() -> None:
    taker, login = Taker(), {"username": "a-renter", "password": "a:b"}
    platform(taker).submit(["true"], None, image="reg.example/train:1", registry_login=login)
    assert (taker.body["image"], taker.body["registry_login"]) == ("reg.example/train:1", login)


def test_a_job_whose_folder_could_not_be_sent_is_cancelled(tmp_path: Path) -> None:
    taker = Taker(files=507)
    with pytest.raises(ApiProblem, match="full"):
        platform(taker).submit(["true"], tmp_path)
    assert taker.calls[-1] == ("POST", "/jobs/job_1/cancel")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"command": "python train.py"}, "list of words"),
        ({"command": []}, "list of words"),
        ({"command": ["true"], "gpu": "?"}, "24GB"),
        ({"command": ["true"], "deadline": datetime(2030, 1, 1)}, "time zone"),  # noqa: DTZ001 - that is the mistake
        ({"command": ["true"], "after": ["absent"]}, "absent"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_submitted(words: dict[str, Any], said: str) -> None:
    taker = Taker()
    with pytest.raises(WindrowClientError, match=said):
        platform(taker).submit(folder=None, **words)
    assert ("POST", "/jobs") not in taker.calls


def test_jobs_are_found_by_id_by_name_and_as_a_list() -> None:
    with platform(Taker()) as market:
        assert (market.job("job_7").id, market.job("train").id) == ("job_7", "job_9")
        assert [one.id for one in market.jobs()] == [one.id for one in asyncio.run(market.aio_jobs())] == ["job_9"]
        with pytest.raises(WindrowClientError, match="absent"):
            market.job("absent")
        assert market.job("job_7").cancel().state == "Cancelled"


# --- what it leaves -------------------------------------------------------------------------------------------------


def read(log: Log) -> list[str]:
    """Its lines, which have to be the same for both kinds of reader."""

    async def asynchronously() -> list[str]:
        return [line async for line in log]

    lines = list(log)
    assert asyncio.run(asynchronously()) == lines
    return lines


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        ([b"on", b"e\ntw", b"o"], ["one", "two"]),
        ([b"caf\xc3", b"\xa9\n\n\xff\n"], ["café", "", "\ufffd"]),
        ([], []),
        ([b"x" * 200_000], ["x" * 65_536] * 3 + ["x" * 3_392]),
    ],
)
def test_a_log_comes_in_whole_lines(pieces: list[bytes], lines: list[str]) -> None:
    client = platform(lambda request: httpx2.Response(200, content=iter(pieces))).client
    assert read(Job(client, job("Running")).logs(follow=True)) == lines


def test_what_goes_wrong_with_a_log_reaches_both_readers() -> None:
    log = Job(platform(Replies(None)).client, job("Running")).logs(follow=True)
    with pytest.raises(MasterUnreachable):
        list(log)
    with pytest.raises(MasterUnreachable):
        read(log)


def test_an_asynchronous_reader_leaves_a_log_that_says_nothing_more() -> None:
    hold = threading.Event()

    def pieces() -> Iterator[bytes]:
        yield b"one\n"
        hold.wait()

    async def first() -> str:
        return await anext(aiter(Log(pieces)))

    try:
        assert asyncio.run(first()) == "one"  # which waits for no thread
    finally:
        hold.set()


@pytest.mark.parametrize("cut", ["false", "true"])
def test_what_it_changed_is_written_and_a_cut_is_an_error(tmp_path: Path, cut: str) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        info = tarfile.TarInfo("out.txt")
        info.size = 4
        tar.addfile(info, io.BytesIO(b"left"))
    answer = httpx2.Response(200, content=packed.getvalue(), headers={"X-Files-Truncated": cut})
    one = Job(platform(lambda request: answer).client, job("Succeeded"))
    if cut == "true":
        with pytest.raises(WindrowClientError, match="more than the market keeps"):
            one.artefacts(tmp_path)
    else:
        assert one.artefacts(tmp_path) == ["out.txt"]
    assert (tmp_path / "out.txt").read_text() == "left"


def test_importing_windrow_loads_no_client() -> None:
    line = "import windrow, sys; print(sorted({'httpx2', 'windrow.jobs', 'windrow.client'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_any_field_of_a_request_is_an_argument_and_a_name_that_is_none_is_refused() -> None:
    taker = Taker()
    platform(taker).submit(["true"], None, volumes=["data:/data"], checkpoint_every_seconds="30s")
    assert (taker.body["volumes"], taker.body["checkpoint_every_seconds"]) == (["data:/data"], 30)
    with pytest.raises(WindrowClientError, match="'colour' is no field"):
        platform(taker).submit(["true"], None, colour="red")  # type: ignore[call-arg]  # that is the mistake


def test_a_status_says_at_which_backend_a_job_is_and_whether_it_has_changed() -> None:
    place = {"backend": "aws", "text": "aws eu-central-1b, spot m5.large (0.041 USD an hour)"}
    attempts = [{"cluster_id": "cluster_1", "place": None}, {"cluster_id": "cluster_2", "place": place}]
    moved = jobs.status_of(job("Running", attempts=attempts), None)
    assert (moved.previous_backend, moved.backend, moved.backend_changed) == ("windrow", "aws", True)
    assert moved.place == place["text"]
    first = jobs.status_of(job("Running", attempts=attempts[:1]), None)
    assert (first.backend, first.previous_backend, first.backend_changed, first.place) == ("windrow", None, False, "")
