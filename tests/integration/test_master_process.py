"""The Master as a real process: serves over HTTP and its own TLS, stops in order, starts again with its past."""

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.waiting import PATIENCE_S, poll
from windrow_proto import enrol, keys
from windrow_proto.errors import JoinTokenRefused, Unavailable
from windrow_proto.wire_link import decode_region_map
from windrow_up.client import MasterHttp

ANY_PORT = ("--http-port", "0", "--https-port", "0", "--trunk-port", "0", "--health-port", "0")


@contextmanager
def _master(data_dir: Path, *flags: str) -> Iterator["subprocess.Popen[bytes]"]:
    arguments = [sys.executable, "-m", "windrow_master", "--data-dir", str(data_dir), *flags]
    with (data_dir.parent / "master.log").open("ab") as log:
        process = subprocess.Popen(arguments, stderr=log, stdout=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait(PATIENCE_S)


def _cli(data_dir: Path, process: "subprocess.Popen[bytes]") -> dict[str, Any]:
    def read() -> dict[str, Any] | None:
        assert process.poll() is None, (data_dir.parent / "master.log").read_text()[-2000:]
        try:
            record: dict[str, Any] = json.loads((data_dir / "cli.json").read_text())
        except (OSError, ValueError):
            return None
        return record if record.get("pids", {}).get("master") == process.pid else None

    found = poll(read)
    assert found is not None
    return found


def _ready(record: dict[str, Any]) -> MasterHttp:
    http = MasterHttp(record["local_url"], record["token"], Path(record["ca_pem"]))

    def answers() -> bool:
        try:
            return bool(http.call("GET", "/healthz")["status"] == "ok")
        except Unavailable:
            return False

    poll(answers)
    return http


def _waits(data_dir: Path, process: "subprocess.Popen[bytes]") -> bool:
    said = map(json.loads, (data_dir.parent / "master.log").read_text().splitlines())
    return any((one.get("event"), one.get("pid")) == ("master_locking", process.pid) for one in said)


def test_a_master_starts_is_joined_over_its_pinned_key_and_remembers_after_kill_and_stop(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with _master(data_dir, *ANY_PORT) as first:
        record = _cli(data_dir, first)
        http = _ready(record)
        assert http.call("GET", "/me")["balance"] == {"amount": "100.00", "currency": "TEST"}
        token = http.call("POST", "/join-tokens", {"role": "host"})["join_token"]
        https_url = f"https://127.0.0.1:{record['ports']['https']}"
        request = enrol.JoinRequest("host", "rack-7<script>")
        folder = enrol.IdentityFolder(tmp_path / "identity")
        identity = enrol.join(folder, https_url, token, request)
        renewed = enrol.renew(folder, wall_ns=0)
        regions = enrol.fetch_regions(https_url, identity.tls.ca_pem, identity.master_public)
        assert decode_region_map(regions).version > decode_region_map(identity.region_map).version
        assert (identity.generation, renewed.generation) == (1, 2)
        forged = token.split(".")[0] + "." + hashlib.sha256(b"other").hexdigest()[:32]
        try:
            enrol.join(enrol.IdentityFolder(tmp_path / "other"), https_url, forged, request)
            raise AssertionError("a token that names another authority must be refused")
        except JoinTokenRefused:
            pass
        first.kill()
        first.wait(PATIENCE_S)

    with _master(data_dir) as second:
        record = _cli(data_dir, second)
        http = _ready(record)
        me = http.call("GET", "/me")
        assert me["master"]["epoch"] == 2
        assert enrol.renew(folder, wall_ns=0).generation == 3
        kinds = [event["kind"] for event in http.items(f"/events?subject={identity.subject_id}")]
        assert "host.joined" in kinds
        second.send_signal(signal.SIGTERM)
        assert second.wait(PATIENCE_S) == 0

    assert not (data_dir / "master.lock").exists()
    log = (tmp_path / "master.log").read_text()
    assert record["token"] not in log and token not in log
    assert keys.public_key_sha256((data_dir / "identity" / "ca.pem").read_bytes()).hex() == record["ca_sha256"]


def test_a_master_that_waits_takes_over_address_and_past_of_one_that_was_killed(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with _master(data_dir, "--wait", *ANY_PORT) as first:
        before = _cli(data_dir, first)
        assert _ready(before).call("GET", "/me")["master"]["epoch"] == 1
        with _master(data_dir, "--wait") as second:
            poll(lambda: _waits(data_dir, second))
            assert second.poll() is None
            first.kill()
            first.wait(PATIENCE_S)
            after = _cli(data_dir, second)
            assert (after["url"], after["ports"]) == (before["url"], before["ports"])
            assert _ready(after).call("GET", "/me")["master"]["epoch"] == 2
            with _master(data_dir, "--wait") as third:
                poll(lambda: _waits(data_dir, third))
                third.send_signal(signal.SIGTERM)
                assert third.wait(PATIENCE_S) == -signal.SIGTERM, "who waits holds nothing that must be put in order"
            second.send_signal(signal.SIGTERM)
            assert second.wait(PATIENCE_S) == 0


def test_a_second_master_on_the_same_directory_says_who_has_it(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with _master(data_dir, *ANY_PORT) as first:
        _ready(_cli(data_dir, first))
        with _master(data_dir) as second:
            assert second.wait(PATIENCE_S) == 1

    assert f"process {first.pid}" in (tmp_path / "master.log").read_text()


def test_an_open_stream_does_not_hold_up_the_stop(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with _master(data_dir, *ANY_PORT) as process:
        record = _cli(data_dir, process)
        _ready(record)
        with socket.create_connection(("127.0.0.1", record["ports"]["http"]), PATIENCE_S) as stream:
            bearer = f"Authorization: Bearer {record['token']}"
            head = f"GET /api/v1/events/stream HTTP/1.1\r\nHost: localhost\r\n{bearer}\r\n\r\n"
            stream.sendall(head.encode())
            assert b"200 OK" in stream.recv(4096)
            process.send_signal(signal.SIGHUP)
            assert process.wait(PATIENCE_S) == 0
    assert os.access(data_dir / "cli.json", os.R_OK)
