"""Promises of `relay`: figures computed as said, its identities usable, and every shortfall in words."""

import time
from typing import Any

import pytest

from bench import _far, _nginx, relay
from tests.support.pki import make_ca
from windrow_proto import enrol, keys
from windrow_proto.v1 import link_pb2

TIMES = [float(n) for n in range(1, 101)]
MEMORY = relay.Memory(((0, 70.0), (50, 75.0), (100, 80.0)), opened=50, open_s=0.5, open_cpu_s=0.25)


def way(extra=0.0, **changes):
    values: dict[str, Any] = {
        "ms": [ms + extra for ms in TIMES],
        "back_ms": [2 * ms + extra for ms in TIMES],
        "sent": 100,
    }
    return relay.Way(**(values | {"seconds": 0.05, "cpu_s": 0.02, "lost": 0} | changes))


def ways(**more):
    return {"direct": [way()] * 5, "access": [way(2.0)] * 5} | more


def test_relay_names_every_figure_of_its_budget():
    detail = relay.detail_of(ways(nginx=[way(1.0)] * 5), MEMORY, 1024)
    assert set(relay.DETAIL) <= set(detail)
    assert (detail["added_p50_ms"], detail["nginx_added_p50_ms"]) == (2.0, 1.0)
    assert (detail["added_round_trip_p50_ms"], detail["p99_ratio"]) == (2.0, 1.02)
    assert (detail["handshakes_per_s"], detail["handshakes_per_cpu_s"]) == (100.0, 200.0)
    assert (detail["access_cpu_us_per_message"], detail["messages_per_s"]) == (200.0, 2_000)


def test_the_memory_of_the_goal_is_carried_on_along_the_slope_and_measured_where_so_many_are_open():
    assert MEMORY.kib_per_agent == 102.4
    assert MEMORY.at_goal_mib == pytest.approx(80.0 + 9_900 * 0.1)
    measured = relay.Memory(((0, 70.0), (5_000, 500.0), (10_000, 900.0)), 1, 1.0, 1.0)
    assert measured.at_goal_mib == 900.0


def test_one_bad_run_of_five_does_not_move_the_figure():
    assert relay.of_runs([way(), way(), way(500.0), way(), way()], 0.5) == 51.0


def test_without_the_peer_no_figure_of_it_is_said():
    detail = relay.detail_of(ways(), MEMORY, 1024)
    assert not [name for name in detail if name.startswith("nginx")]
    assert any("nginx" in said for said in relay.missing(ways(), MEMORY, 100, 1024))


def test_relay_says_what_was_missing():
    good = ways(nginx=[way()] * 5)
    assert [said for said in relay.missing(good, MEMORY, 100, 1024) if "carried on" not in said] == []
    slow, short, ended = way(seconds=1.0), way(ms=TIMES[1:]), way(lost=3)
    said = relay.missing(good | {"access": [slow, short, ended]}, MEMORY, 500, 1024)
    for words in ("1 frames had not arrived", "only 100 messages", "500 agents were wanted", "3 streams ended"):
        assert any(words in one for one in said), words


def test_the_identities_written_are_those_that_both_ends_and_the_access_read(tmp_path):
    relay.write_identities(tmp_path, make_ca(), hosts=2)
    assert keys.certificate_facts(_far.read_identity(tmp_path, "master").certificate_pem).role == "master"
    assert keys.certificate_facts(_far.read_identity(tmp_path, "access").certificate_pem).role == "access"
    assert enrol.IdentityFolder(tmp_path / "relay" / "identity").load().subject_id == relay.ACCESS_ID


async def test_the_far_end_notes_how_long_a_frame_was_on_its_way():
    far = _far.FarEnd()
    sealed = _far.HEAD.pack(time.monotonic_ns() - 5_000_000, 1) + b"rest"
    assert far._arrived(link_pb2.Frame(sealed=sealed)) is True
    (ms,) = await far.take(1)
    assert ms >= 5.0
    assert far.ms == []


def test_the_peer_checks_certificates_on_both_sides():
    said = _nginx.configuration(1234, "127.0.0.1:99")
    for words in ("ssl_verify_client on", "grpc_ssl_verify on", "grpc_pass grpcs://127.0.0.1:99", "127.0.0.1:1234 ssl"):
        assert words in said
