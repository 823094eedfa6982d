"""Promises of every benchmark: figures computed as said, and one JSON object as the last line."""

import json
import os
from typing import Any

import pytest

from bench import command, ingest
from bench._report import cpu_seconds, last_line, percentile, rss_mib, scale, table

ANSWER = {
    "seconds": 2.0,
    "acked_batches": 10,
    "wanted_batches": 10,
    "socket_bytes_up": 8_400,
    "frame_bytes": 7_000,
    "ack_ms": [1.0, 2.0, 3.0],
    "lost_links": 0,
}


def phase(**changes):
    values: dict[str, Any] = {"answer": ANSWER, "values": 5_600, "seconds": 2.0, "cpu": {"access": 1.0, "master": 1.0}}
    return ingest.Phase(**(values | {"log_bytes": 5_600, "is_caught_up": True} | changes))


def ours(**changes):
    values = {
        "cold": phase(),
        "parts": [phase(), phase(), phase()],
        "alone": phase(),
        "pace": phase(),
        "kept": ingest.Kept(
            {"host_1": 16_800}, file_bytes=50_400, free_bytes=16_800, raw_bytes=16_800, all_rows=16_800
        ),
        "acked": {"host_1": 16_800},
        "joined_s": 1.0,
        "connected": {"seconds": 1.0},
    }
    return ingest.Ours(**(values | changes))


def peer(shape, cpu_s):
    return ingest.Peer(shape, 5_600, [cpu_s / 2, cpu_s, 3 * cpu_s], 1.0, 1, 1, 5_600, 5_600)


def said(capsys):
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_the_scale_comes_from_the_environment_and_is_never_nothing(monkeypatch):
    monkeypatch.delenv("BENCH_SCALE", raising=False)
    assert scale() == 1.0
    monkeypatch.setenv("BENCH_SCALE", "0")
    assert scale() == 0.01


def test_the_last_line_is_one_json_object_with_the_agreed_names(capsys):
    table([("hosts", 1_000), ("share", 0.5), ("said", "so")])
    last_line("ingest", 2.0, "samples/CPU-s", "peer", 4.0, {"a": 1})
    assert said(capsys) == {
        "bench": "ingest",
        "value": 2.0,
        "unit": "samples/CPU-s",
        "peer": "peer",
        "ratio": 4.0,
        "detail": {"a": 1},
    }


def test_without_a_peer_there_is_no_ratio(capsys):
    last_line("ingest", 2.0, "s", None, None, {})
    assert said(capsys)["ratio"] is None


def test_percentiles_are_by_nearest_rank():
    assert [percentile([4, 1, 3, 2], part) for part in (0, 0.5, 0.99, 1)] == [1, 3, 4, 4]


def test_the_processor_time_and_memory_of_this_process_can_be_read():
    assert cpu_seconds([os.getpid()]) > 0
    assert rss_mib(os.getpid()) > 1


def test_ingest_names_every_figure_of_its_budget():
    detail = ingest.detail_of(ours(), [peer("vmagent", 2.0), peer("batched", 1.0)], PLAN)
    assert set(ingest.DETAIL) <= set(detail)
    assert detail["wire_bytes_per_sample"] == 1.5
    assert detail["disk_bytes_per_sample"] == 2.0
    assert detail["log_bytes_per_sample"] == 1.0
    assert detail["victoriametrics_samples_per_cpu_s"] == 2_800
    assert detail["victoriametrics_batched_samples_per_cpu_s"] == 5_600
    assert detail["ratios"] == [0.5, 1.0, 3.0]
    assert detail["match"] is True


def test_ingest_says_when_history_does_not_hold_what_was_acknowledged():
    detail = ingest.detail_of(ours(acked={"host_1": 16_801}), [], PLAN)
    assert (detail["match"], detail["acked_values"], detail["history_values"]) == (False, 16_801, 16_800)


def test_ingest_says_what_was_missing():
    short = phase(answer=ANSWER | {"acked_batches": 9, "lost_links": 1}, is_caught_up=False)
    assert ingest.missing(ours(), peer("vmagent", 1.0)) == []
    assert len(ingest.missing(ours(parts=[phase(), short]), None)) == 4


DISK = {"fsync_ms": 2.0, "sqlite_commit_ms": 3.0}


def test_command_names_every_figure_of_its_budget():
    times = [float(n) for n in range(1, 101)]
    sustained = {"done": 100, "seconds": 2.0, "cpu_seconds": 0.1, "call_ms": times}
    found = command.Found(20, times, times, 0.5, times, DISK, sustained)
    detail = command.detail_of(found, {"p50_ms": 1.0, "p99_ms": 2.0})
    assert set(command.DETAIL) <= set(detail)
    assert (detail["p50_ms"], detail["p99_ms"], detail["commands_per_s"]) == (51.0, 100.0, 50.0)
    assert (detail["durable_limit_ms"], detail["durable_ratio"]) == (7.0, 7.29)
    assert detail["sustained_master_cpu_ms"] == 1.0


def test_command_says_nothing_of_an_api_that_was_not_heard():
    sustained = {"done": 1, "seconds": 2.0, "cpu_seconds": 0.1, "call_ms": []}
    found = command.Found(20, [1.0], [1.0], 0.5, [], DISK, sustained)
    assert command.detail_of(found, {"p50_ms": 1.0, "p99_ms": 2.0})["api_p50_ms"] is None


@pytest.mark.parametrize("part", [0.01, 0.1, 1.0, 3.0])
def test_the_plan_of_ingest_has_a_warm_a_flooded_and_a_paced_part_at_every_scale(part):
    plan, flood, pace = ingest.plan_for(part)
    assert plan.hosts >= ingest.HOSTS_MIN
    assert plan.batches == ingest.WARM_BATCHES + ingest.PARTS * flood + ingest.ALONE_BATCHES + pace
    assert min(flood, pace) >= 1


PLAN = ingest.plan_for(0.1)[0]
