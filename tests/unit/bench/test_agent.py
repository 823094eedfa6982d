"""Figures of `agent` and `fresh`: every agreed figure, and what was missing is said."""

import os
import socket
from itertools import pairwise
from typing import Any

from bench import agent, fresh
from bench._cards import COUNT, MEMBERS, Moving
from bench._series import METRICS
from bench._wire import HEADERS_BYTES, Traffic, Wire
from tests.fake_nvml.state import FakeState
from windrow_proto.metrics import BY_NUMBER

STEADY = agent.Steady(
    seconds=10.0,
    rss=[50.0, 55.04, 54.0],
    anonymous_mib=30.0,
    cpu_s=0.05,
    traffic=Traffic(up=4_000, down=800, segments_up=10),
    exporter_rss_mib=20.0,
    exporter_cpu_s=0.1,
    exporter_bytes=[100, 300, 200],
)


def detail(**changes):
    given: dict[str, Any] = {
        "steady": STEADY,
        "starts": [(0.9, 0.5), (0.7, 0.4), (0.8, 0.6)],
        "with_docker": 70.0,
        "installed": 46.8,
    }
    return agent.detail_of(**(given | changes))


def test_agent_names_every_figure_of_its_budget():
    found = detail()
    assert set(agent.DETAIL) <= set(found)
    assert (found["rss_mib"], found["cpu_percent"], found["first_heartbeat_s"]) == (55.0, 0.5, 0.8)
    assert found["wire_bytes_per_gpu_s"] == 4_000 / (COUNT * 10.0)
    assert found["wire_bytes_per_gpu_s_with_headers"] == round((4_000 + 10 * HEADERS_BYTES) / (COUNT * 10.0), 1)
    assert found["node_exporter_bytes_per_scrape"] == 200
    assert agent.missing(found) == []


def test_agent_says_what_was_missing():
    fields = {name: getattr(STEADY, name) for name in STEADY.__slots__}
    alone = agent.Steady(**(fields | {"exporter_rss_mib": None, "exporter_bytes": []}))
    assert len(agent.missing(detail(steady=alone, with_docker=None))) == 2


def test_the_cards_move_in_the_driver_as_in_the_walk(tmp_path):
    state = FakeState(tmp_path / "state")
    moving = Moving(state, seconds=20)
    read: dict[int, list[tuple[int, ...]]] = {metric: [] for metric in MEMBERS}
    for instant in range(20):
        moving.set(instant)
        for metric, (member, _) in MEMBERS.items():
            read[metric].append(tuple(getattr(state.gpu(gpu), member) for gpu in range(COUNT)))
    assert set(MEMBERS) == set(METRICS) - {15}
    assert all(len(set(read[metric])) > 5 for metric in (1, 4, 6, 7))
    counters = [metric for metric in MEMBERS if BY_NUMBER[metric].counter]
    for metric in counters:
        assert all(x <= y for before, later in pairwise(read[metric]) for x, y in zip(before, later, strict=True))


def test_the_bytes_of_a_process_on_a_port_are_the_kernels_and_those_of_others_are_not_counted():
    with socket.create_server(("127.0.0.1", 0)) as wanted, socket.create_server(("127.0.0.1", 0)) as other:
        port = wanted.getsockname()[1]
        wire = Wire(os.getpid(), frozenset({port}))
        with socket.create_connection(("127.0.0.1", port)) as one, socket.create_connection(other.getsockname()):
            peer, _ = wanted.accept()
            with peer:
                one.sendall(b"x" * 1000)
                received = 0
                while received < 1000:
                    received += len(peer.recv(4096))
                peer.sendall(b"y" * 10)
                assert one.recv(100)
                seen = wire.look()
        assert (seen.up, seen.down) == (1000 + 1, 10)  # Linux counts the opening of a connection as one byte
        assert seen.segments_up >= 1
        assert wire.look() == seen  # a connection that ended still counts
        assert Traffic(5, 5, 5) - Traffic(1, 2, 3) == Traffic(4, 3, 2)


def test_fresh_counts_what_was_never_seen_as_missed():
    changes = [fresh.Change(at=10.0, read=10.4, seen=10.7, polled=11.0), fresh.Change(20.0, 20.6, None, None)]
    found = fresh.detail_of({"changes": changes, "xids": [0.5, None], "lost": [1.25], "chromium": "1"})
    assert (found["changes"], found["changes_missed"], found["faults_missed"], found["losses_missed"]) == (2, 1, 1, 0)
    assert (found["read_to_pixel_p99_s"], found["change_to_read_p50_s"]) == (0.3, 0.4)
    assert (found["change_to_pixel_max_s"], found["polling_change_to_pixel_p99_s"]) == (0.7, 1.0)
    assert (found["fault_to_row_p99_s"], found["lost_to_row_max_s"]) == (0.5, 1.25)
    nothing = fresh.detail_of({"changes": [], "xids": [], "lost": [], "chromium": "1"})
    assert nothing["read_to_pixel_p99_s"] is None
