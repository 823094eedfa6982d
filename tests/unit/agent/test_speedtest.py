"""speedtest-cli as a child process: its arguments, the meaning of its answer, and the end of one that hangs."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from tests import as_it_was
from tests.waiting import poll_async
from windrow_agent.app import main, speedtest
from windrow_agent.app.config import parse, without_proxies
from windrow_agent.core.speedtest import INTERNET, SpeedClaim, arguments, check_mini, failure, read_claim, sentence
from windrow_proto.errors import DeadlineExceeded, InvalidInput, Unavailable
from windrow_proto.units import MILLISECOND

MINI = "http://127.0.0.1:7943"
SAID = {
    "download": 93_400_000.5,
    "upload": 41_050_000.0,
    "ping": 12.5,
    "server": {"sponsor": "A Network", "name": "Town\x1b[31m", "id": "1"},
    "bytes_sent": 25_000_000,
    "bytes_received": 58_000_000,
    "client": {"ip": "203.0.113.9"},
}
CLAIM = SpeedClaim(
    INTERNET, "A Network Town[31m", 93_400_000, 41_050_000, 12_500 * MILLISECOND // 1000, 58_000_000, 25_000_000
)


@pytest.fixture
def command(monkeypatch):
    """The command in this process, which it takes for its own."""
    monkeypatch.setattr("windrow_agent.app.memory_trim.keep_small", lambda: None)
    with as_it_was.contained():
        yield main.main


# --- decisions --------------------------------------------------------------------------------------------------------


def test_its_figures_are_read_and_the_address_of_the_host_is_left_out():
    assert read_claim(json.dumps(SAID).encode(), INTERNET) == CLAIM
    assert sentence(CLAIM) == "internet: 41.0 Mbit/s up, 93.4 Mbit/s down, 12.5 ms there and back (A Network Town[31m)"


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"[]",
        b"{",
        b"[" * 100_000,
        json.dumps(SAID | {"server": None}).encode(),
        json.dumps(SAID | {"download": None}).encode(),
        json.dumps(SAID | {"download": True}).encode(),
        json.dumps(SAID | {"download": "93"}).encode(),
        json.dumps(SAID | {"download": float("nan")}).encode(),
        json.dumps(SAID | {"upload": 1e16}).encode(),
        json.dumps(SAID | {"bytes_sent": 0}).encode(),
        json.dumps(SAID | {"upload": -1}).encode(),
        json.dumps(SAID | {"ping": 1_800_000.0}).encode(),
        json.dumps({key: value for key, value in SAID.items() if key != "ping"}).encode(),
    ],
)
def test_what_are_no_whole_figures_is_a_failure(said):
    with pytest.raises(Unavailable):
        read_claim(said, INTERNET)


def test_its_vendors_servers_are_asked_over_tls_and_ours_by_its_address():
    common = ("-P", "-m", "speedtest", "--json", "--no-pre-allocate", "--timeout", "10")
    assert arguments("") == (*common, "--secure")
    assert arguments(MINI) == (*common, "--mini", f"{MINI}/")


@pytest.mark.parametrize(
    ("url", "checked"),
    [(MINI, MINI), (f"{MINI}/", MINI), ("http://[::1]:9", "http://[::1]:9"), ("http://Relay.example:9", None)],
)
def test_a_mini_server_is_an_address_and_a_port(url, checked):
    assert check_mini(url) == (checked or url.lower())


@pytest.mark.parametrize(
    "url",
    [
        *("relay:9", "https://relay:9", "http://relay", "http://relay:9/x", "http://a@relay:9", "http://relay:99999"),
        *("http://relay:9?x", "http:// relay:9", "http://[relay:9", ""),
    ],
)
def test_anything_else_is_refused(url):
    with pytest.raises(InvalidInput):
        check_mini(url)


def test_paths_are_measured_in_the_order_in_which_a_person_reads_them():
    assert parse(["speedtest"]).speed_paths == ("",)
    assert parse(["speedtest", "--mini", MINI]).speed_paths == (MINI,)
    assert parse(["speedtest", "--mini", MINI, "--internet"]).speed_paths == (MINI, "")


def test_an_access_is_reached_without_the_hosts_own_proxies(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://proxy:1")
    monkeypatch.setenv("no_proxy", "www.speedtest.net")
    found = without_proxies()
    assert found["PATH"] == os.environ["PATH"] and not [name for name in found if "proxy" in name.lower()]


def test_its_complaint_becomes_one_sentence_that_fits_the_way():
    complaint = b"Cannot retrieve speedtest configuration\nERROR: HTTP Error 403: Forbidden\n"
    assert failure(complaint, "").startswith("speedtest-cli failed: HTTP Error 403: Forbidden. The way to its vendor's")
    assert f"The relay at {MINI} serves it only" in failure(b"", MINI)


# --- the child --------------------------------------------------------------------------------------------------------


def python(text: str) -> tuple[str, ...]:
    return sys.executable, "-c", text


async def test_a_child_that_hangs_is_ended_at_the_deadline():
    mark = f"hangs-{os.getpid()}"
    with pytest.raises(DeadlineExceeded, match=r"longer than 0\.1 s"):
        await speedtest.run((*python("import time; time.sleep(3600)"), mark), None, 0.1)
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if mark.encode() in _read(path)]


async def test_what_a_child_started_is_ended_with_it(tmp_path: Path):
    note = tmp_path / "pids"
    text = (
        "import os, pathlib, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(3600)'])\n"
        f"pathlib.Path({str(tmp_path / 'written')!r}).write_text(f'{{os.getpid()}} {{child.pid}}')\n"
        f"os.rename({str(tmp_path / 'written')!r}, {str(note)!r})\n"
        "time.sleep(3600)\n"
    )
    async with asyncio.TaskGroup() as group:
        running = group.create_task(speedtest.run(python(text), None, 3600.0))
        await poll_async(note.exists, what="the child to start another")
        running.cancel()

    statuses = [Path(f"/proc/{pid}/status") for pid in note.read_text().split()]
    await poll_async(lambda: all(_is_over(status) for status in statuses), what="both to be gone")


def _is_over(status: Path) -> bool:
    said = _read(status)
    return not said or b"State:\tZ" in said


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


@pytest.mark.parametrize("is_busy", [False, True])
async def test_a_child_that_talks_without_end_is_ended(is_busy, monkeypatch):
    read = speedtest._all_of

    async def late(stream, kill):
        """As on a machine that is busy: the pipe and what is read ahead of it are full by then."""
        await asyncio.sleep(0.3 if is_busy else 0)
        return await read(stream, kill)

    monkeypatch.setattr(speedtest, "_all_of", late)
    status, said, _ = await speedtest.run(python("while True: print('x' * 1000)"), None, 60.0)
    assert status < 0 and len(said) == speedtest.OUTPUT_BYTES_MAX


async def test_a_childs_status_and_both_its_outputs_come_back():
    text = "import os, sys; print(os.environ['http_proxy']); sys.exit('why')"
    assert await speedtest.run(python(text), {"http_proxy": MINI}, 60.0) == (1, f"{MINI}\n".encode(), b"why\n")


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("there", "how"),
    [
        (("pip",), f"{sys.executable} -m pip install speedtest-cli"),
        ((), f"python3 -m pip install --target {Path(speedtest.__file__).parents[2]} speedtest-cli"),
    ],
)
def test_without_the_extra_the_command_says_how_to_get_it(there, how, monkeypatch, capsys, command):
    monkeypatch.setattr(speedtest, "find_spec", lambda name: name if name in there else None)
    assert command(["speedtest"]) == 1
    assert capsys.readouterr().err == f"speedtest-cli is not installed; it is an extra: {how}\n"


def test_a_closed_way_to_the_internet_is_said_and_the_tool_was_really_run(monkeypatch, capsys, command):
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")  # where nobody listens
    assert command(["speedtest"]) == 1
    said = capsys.readouterr().out
    assert "internet: speedtest-cli failed: <urlopen error" in said and "vendor's servers may be closed" in said
    assert "windrow-agent doctor --bandwidth" in said


def test_each_way_fails_for_itself_and_as_json_if_wanted(monkeypatch, capsys, command):
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    assert command(["speedtest", "--mini", "http://127.0.0.1:9", "--internet", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [one["path"] for one in found] == ["http://127.0.0.1:9", INTERNET]
    assert all(one["failed"] for one in found)
