"""The first rental through the shipped daemons: this host's own agent, a real process, a receipt that holds."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support import truth
from tests.support.ports import own_port
from tests.support.rental import Renter, body_at
from tests.support.stack import wait_for
from tests.waiting import poll
from windrow.errors import ApiProblem

pytestmark = [pytest.mark.timeout(240), pytest.mark.slow]

FIGURES = ("cpu_ratio", "memory_used_bytes", "rx_bps", "tx_bps")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.mark.proves("this host is online with live processor, memory and network figures, bandwidth and tier")
def test_this_host_is_online_with_live_figures_bandwidth_and_tier(renter: Renter) -> None:
    def measured() -> Any:
        host = renter.host()
        live = host["live"] or {}
        # The first sample of all has no rate: two instants make one.
        is_whole = all(live.get(name) is not None for name in FIGURES)
        return is_whole and host["bandwidth"] and host["tier"] and host

    host = wait_for(measured)

    live = host["live"]
    assert 0 <= live["cpu_ratio"] <= 1
    assert 0 < live["memory_used_bytes"] < host["memory_bytes"]
    assert live["rx_bps"] >= 0 and live["tx_bps"] >= 0
    assert host["bandwidth"]["up_bps"] > 0 and host["bandwidth"]["down_bps"] > 0
    assert len(host["tier_reasons"]) >= 1
    assert "process" in host["runtimes"]


def test_the_live_stream_of_the_host_grows_and_its_history_can_be_asked_for(renter: Renter) -> None:
    host_id = renter.host()["id"]
    with renter.stack.client() as api:
        stream = api.events(f"/hosts/{host_id}/stream")
        first, second = next(stream)[2], next(stream)[2]
        stream.close()  # type: ignore[attr-defined]
    names = {metric["name"] for metric in renter.all("/metrics/catalog")}
    name = min(names & set(first["host"]))

    def points() -> Any:
        with renter.stack.client() as api:
            series = api.get(f"/hosts/{host_id}/history", metric=name)["series"]
        return [point for one in series for point in one["points"] if point[1] is not None]

    assert second["at"] > first["at"]
    assert wait_for(points)


@pytest.mark.proves("`windrow run` ships the folder, returns changed files, and its receipt is the signed running time")
def test_a_run_brings_its_file_back_and_its_receipt_is_what_the_host_signed(renter: Renter, here: Path) -> None:
    (here / "in.txt").write_text("from the renter")
    command = "open('out.txt','w').write('hi'); print(open('in.txt').read())"

    done = renter.windrow("run", "--json", "--", "python", "-c", command, cwd=here)

    assert done.returncode == 0, done.stderr
    assert (here / "out.txt").read_text() == "hi"
    assert "from the renter\n" in done.stderr
    receipt = json.loads(done.stdout)["receipt"]
    (line,) = receipt["lines"]
    signed = truth.signed_receipts(renter.stack.data_dir, line["workload_id"])
    assert line["host_id"] == renter.host()["id"]
    assert signed[-1].is_final
    assert _nanoseconds(receipt["running_seconds"]) == signed[-1].running_ns
    assert (line["receipts"], line["last_number"]) == (len(signed), signed[-1].number)
    assert 0 < signed[-1].running_ns < signed[-1].signed_wall_ns - signed[-1].started_wall_ns + 10**9
    assert renter.flaws(receipt["cluster_id"]) == []


def test_the_receipt_is_as_long_as_the_process_was_there(renter: Renter) -> None:
    began = time.monotonic()
    cluster = renter.create("sleep", "3", until="")
    renter.exited(cluster["id"])
    took_s = time.monotonic() - began

    seconds = float(renter.delete(cluster["id"])["running_seconds"])

    assert 3.0 <= seconds <= took_s
    assert renter.flaws(cluster["id"]) == []


def test_files_go_in_and_only_changed_ones_come_out(renter: Renter, here: Path) -> None:
    (here / "deep" / "er").mkdir(parents=True)
    (here / "deep" / "er" / "a.bin").write_bytes(bytes(range(256)) * 4096)
    (here / "kept.txt").write_text("as it was")
    (here / "changed.txt").write_text("before")
    kept_at = (here / "kept.txt").stat().st_mtime_ns
    command = "cat deep/er/a.bin deep/er/a.bin > deep/er/twice.bin; echo after > changed.txt"

    done = renter.windrow("run", "--", "sh", "-c", command, cwd=here)

    assert done.returncode == 0, done.stderr
    assert (here / "deep" / "er" / "twice.bin").read_bytes() == bytes(range(256)) * 8192
    assert (here / "changed.txt").read_text() == "after\n"
    assert (here / "kept.txt").stat().st_mtime_ns == kept_at
    assert "2 changed files came back" in done.stderr


def test_the_exit_code_of_the_command_is_the_exit_code_of_run(renter: Renter, here: Path) -> None:
    done = renter.windrow("run", "--", "sh", "-c", "echo said; echo wrong >&2; exit 37", cwd=here)

    assert done.returncode == 37, done.stderr
    assert "said" in done.stdout and "wrong" in done.stdout


def test_the_log_streams_while_the_command_runs(renter: Renter) -> None:
    cluster = renter.create("sh", "-c", "echo first; while [ ! -e go ]; do sleep 0.1; done; echo second")

    with renter.stack.client() as api:
        stream = api.logs(cluster["id"], follow=True)
        first = next(stream)
        # It goes on only now: what was read before it did was streamed while it ran.
        told = renter.windrow("cluster", "exec", cluster["id"], "--", "touch", "go")
        rest = b"".join(stream)
    renter.delete(cluster["id"])

    assert (told.returncode, first, rest) == (0, b"first\n", b"second\n"), told.stderr


def test_one_more_command_runs_inside_with_its_output_and_exit_code(renter: Renter) -> None:
    cluster = renter.create("sh", "-c", "echo 42 > answer; sleep 300")

    wait_for(lambda: renter.windrow("cluster", "exec", cluster["id"], "--", "test", "-s", "answer").returncode == 0)
    done = renter.windrow("cluster", "exec", cluster["id"], "--", "sh", "-c", "cat answer; echo no >&2; exit 5")
    renter.delete(cluster["id"])

    assert (done.returncode, done.stdout, done.stderr) == (5, "42\n", "no\n")


LISTS = (
    "host ls",
    "gpu ls",
    "offer ls",
    "cluster ls",
    "command ls",
    "event ls",
    "token ls",
    "receipt ls",
    "ledger ls",
    "ledger balances",
)


@pytest.mark.parametrize("words", LISTS)
def test_every_list_is_one_json_array_when_asked(renter: Renter, words: str) -> None:
    done = renter.windrow(*words.split(), "--json")

    assert done.returncode == 0, done.stderr
    assert isinstance(json.loads(done.stdout), list)


def test_one_thing_is_one_json_object_when_asked(renter: Renter) -> None:
    host_id = renter.host()["id"]
    cluster = renter.create("true", until="")
    renter.exited(cluster["id"])
    receipt = renter.delete(cluster["id"])
    command = renter.all("/commands", host=host_id)[0]

    for words in (
        ("host", "show", host_id),
        ("command", "show", command["id"]),
        ("cluster", "show", cluster["id"]),
        ("cluster", "explain", cluster["id"]),
        ("receipt", "show", receipt["id"]),
        ("cluster", "create", "--plan", "--", "true"),
    ):
        done = renter.windrow(*words[:2], "--json", *words[2:])
        assert isinstance(json.loads(done.stdout), dict), (words, done.stderr)


def test_what_is_not_there_is_said_with_its_own_exit_code(renter: Renter) -> None:
    done = renter.windrow("cluster", "show", "cluster_" + "0" * 32)

    assert done.returncode == 3
    assert "not_found" in done.stderr and done.stdout == ""


def test_a_port_of_a_service_answers_while_it_runs_and_is_closed_afterwards(renter: Renter) -> None:
    serve = (
        "import http.server,os;open('index.html','w').write('served');"
        "http.server.HTTPServer(('127.0.0.1',int(os.environ['PORT'])),http.server.SimpleHTTPRequestHandler).serve_forever()"
    )
    port = own_port()

    cluster = renter.create(
        "python", "-c", serve, kind="service", ports=[port], env={"PORT": str(port)}, runtime="process"
    )

    assert wait_for(lambda: body_at(port)) == b"served"
    (workload,) = renter.ask("GET", f"/clusters/{cluster['id']}")["workloads"]
    assert workload["ports"]
    renter.delete(cluster["id"])
    poll(lambda: body_at(port) is None, what="the port is closed")
    assert renter.flaws(cluster["id"]) == []


def test_a_request_no_host_can_meet_says_why_for_each_host_and_costs_nothing(renter: Renter, here: Path) -> None:
    before = renter.balance()

    done = renter.windrow("run", "--gpu", "H100:2", "--", "true", cwd=here)
    with pytest.raises(ApiProblem) as refused:
        renter.create("true", cpus=4000)

    assert done.returncode == 5
    assert renter.host()["name"] in done.stderr
    assert refused.value.code == "no_capacity"
    (reason,) = [one["reason"] for one in refused.value.reasons if one["hosts"][0]["id"] == renter.host()["id"]]
    assert "4000" in reason or "processor" in reason
    assert renter.balance() == before


def _nanoseconds(seconds: str) -> int:
    whole, _, part = seconds.partition(".")
    return int(whole) * 10**9 + int(part.ljust(9, "0"))
