"""The ends of work: by a signal, by itself, by a delete, and with which exit code."""

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.images import Images
from tests.support.person import Person
from tests.support.rental import ENDED
from tests.support.stack import wait_for
from windrow import Platform
from windrow.client import Client
from windrow.config import Config

SIGNALLED = 128
SIGNALS = (signal.SIGINT, signal.SIGTERM)
LONG = ("sleep", "600")
HOLDS_S = 60.0
"""For what has ended to hold its GPUs no more."""


def processes(word: str) -> list[str]:
    """The processes that sleep for exactly this long."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"sleep", word.encode()]:
            found.append(path.parent.name)
    return found


def box(person: Person, *argv: str, flags: tuple[str, ...] = ()) -> str:
    """The id of a cluster that runs `argv`, once it does."""
    person.windrow("cluster", "create", *flags, "--", *argv).well()
    return str(person.newest()["id"])


def is_running(person: Person, cluster: str) -> bool:
    return bool(person.renter.ask("GET", f"/clusters/{cluster}")["phase"] == "Running")


@pytest.mark.case("B-C4")
def test_ctrl_c_ends_what_only_looks_and_leaves_what_runs(person: Person) -> None:
    cluster = box(person, "sh", "-c", "echo up; sleep 600")
    for words in (("cluster", "logs", "-f", cluster), ("cluster", "exec", cluster, "--", "sh", "-c", "echo up; cat")):
        with person.started(*words) as looking:
            looking.until(b"up\n")
            said = looking.signalled(signal.SIGINT)
        assert said.code == SIGNALLED + signal.SIGINT and b"Traceback" not in said.err, said
    assert is_running(person, cluster)
    person.windrow("cluster", "delete", "--yes", cluster).well()

    person.windrow("job", "submit", "--name", "waited", "--", *LONG).well()
    wait_for(lambda: b"Running" in person.windrow("job", "ls").out)
    with person.started("job", "wait", "waited") as waiting:
        time.sleep(3)
        said = waiting.signalled(signal.SIGINT)
    assert said.code == SIGNALLED + signal.SIGINT and b"Traceback" not in said.err, said
    assert b"Running" in person.windrow("job", "ls").out


@pytest.mark.case("B-C4")
def test_ctrl_c_while_the_rental_is_made_leaves_nothing_rented(person: Person) -> None:
    with person.started("run", "--", *LONG) as run:
        assert run.process.stderr is not None
        while b" per hour" not in (line := run.process.stderr.readline()):
            assert line, "it has ended before it rented"
        said = run.signalled(signal.SIGINT)
    assert said.code == SIGNALLED + signal.SIGINT and b"Traceback" not in said.err, said
    wait_for(lambda: all(one["phase"] in ENDED for one in person.renter.all("/clusters")), HOLDS_S)


@pytest.mark.case("B-C5")
def test_a_program_that_has_ended_holds_no_gpu_and_does_not_run(person: Person) -> None:
    for number in range(2):
        person.windrow("cluster", "create", "--name", f"all{number}", "--gpu", "4", "--", "true").well()
        cluster: dict[str, Any] = person.newest("Finished")
        wait_for(lambda: all(slot["state"] == "free" for slot in person.renter.slots()), HOLDS_S)
        receipt = person.renter.receipt(cluster["id"])
        assert receipt["held"] == "0.00" and float(receipt["running_seconds"]) < HOLDS_S
        assert f"all{number}" not in person.windrow("cluster", "ls").well().text
        (line,) = [
            line
            for line in person.windrow("cluster", "ls", "--state", "Finished").well().text.splitlines()
            if f"all{number}" in line
        ]
        assert "Finished" in line and "Running" not in line, line


CODES = {"exit 0": 0, "exit 1": 1, "exit 126": 126, "exit 137": 137, "exit 255": 255, "kill -9 $$": 137}
SIGNAL_CODES = {f"kill -{number} $$": SIGNALLED + number for number in (9, 11, 15)}


@pytest.fixture(params=["process", "container"])
def flags(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """The flags of a rental for one of both runtimes."""
    if request.param == "process":
        return ()
    images: Images = request.getfixturevalue("images")
    return ("--image", images.busybox())


@pytest.mark.case("B-C7")
def test_exit_codes_are_those_of_the_program(person: Person, flags: tuple[str, ...]) -> None:
    def run(script: str) -> int:
        return person.windrow("run", "--no-files", *flags, "--", "sh", "-c", script).code

    assert {script: run(script) for script in SIGNAL_CODES} == SIGNAL_CODES
    assert run("exit 3") == 3
    cluster = box(person, *LONG, flags=flags)
    inside = ("cluster", "exec", cluster, "--", "sh", "-c")
    assert {script: person.windrow(*inside, script).code for script in CODES} == CODES
    person.windrow("cluster", "delete", "--yes", cluster).well()
    said = person.windrow("job", "submit", "--no-files", "--follow", *flags, "--", "sh", "-c", "kill -15 $$")
    assert said.code == SIGNALLED + signal.SIGTERM, said


@pytest.mark.case("B-C7")
def test_the_exit_code_of_a_job_is_told_to_a_program(person: Person) -> None:
    found = person.renter.stack.cli
    with Platform(client=Client(Config(found["url"], found["token"]))) as platform:
        job = platform.submit(["sh", "-c", "exit 137"], name="by-a-program")
        assert (status := job.wait(120)).exit_code == 137 and not status.succeeded


@pytest.mark.case("B-C8")
def test_a_program_in_a_container_meets_signals_as_elsewhere(person: Person, images: Images) -> None:
    image = images.busybox()
    said = person.windrow("run", "--no-files", "--image", image, "--", "sh", "-c", "kill -9 $$")
    assert said.code == SIGNALLED + signal.SIGKILL, said
    cluster = box(person, *LONG, flags=("--image", image))
    person.windrow("cluster", "delete", "--yes", cluster).well()
    (ended,) = person.renter.ask("GET", f"/clusters/{cluster}")["workloads"]
    assert ended["exit_code"] == SIGNALLED + signal.SIGTERM, "ten seconds later it would be killed"


@pytest.mark.case("B-C9")
@pytest.mark.parametrize("number", SIGNALS)
def test_what_exec_ran_goes_with_it(person: Person, number: signal.Signals) -> None:
    word = f"76543{int(number):02}"
    cluster = box(person, *LONG)
    with person.started("cluster", "exec", cluster, "--", "sh", "-c", f"echo up; sleep {word}") as inside:
        inside.until(b"up\n")
        wait_for(lambda: processes(word))
        assert inside.signalled(number).code in (SIGNALLED + number, -number), "as a shell tells it"
    wait_for(lambda: not processes(word), 30)
    assert is_running(person, cluster)


LISTS = ("cluster", "job", "host", "gpu", "event", "audit", "receipt", "volume")


@pytest.mark.case("B-C10")
def test_a_reader_that_has_enough_is_no_error(person: Person) -> None:
    said = person.shell("windrow run --no-files -- yes | head -2").well()
    assert said.text == "y\ny\n" and "Traceback" not in said.errors, said
    wait_for(lambda: all(one["phase"] in ENDED for one in person.renter.all("/clusters")), HOLDS_S)
    person.windrow("job", "submit", "--no-files", "--name", "many", "--", "seq", "200000").well()
    assert person.windrow("job", "wait", "many").code == 0
    said = person.shell("windrow job logs many | head -1").well()
    assert (said.out, said.err) == (b"1\n", b""), said
    for name in LISTS:
        said = person.shell(f"set -o pipefail; windrow {name} ls | head -c 1")
        assert said.code in (0, 1, SIGNALLED + signal.SIGPIPE), (name, said)
        assert "Traceback" not in said.errors and "pipe" not in said.errors, (name, said)


@pytest.mark.case("B-C12")
def test_deleting_twice_and_at_the_same_time_is_as_deleting_once(person: Person) -> None:
    cluster = box(person, *LONG)
    with ThreadPoolExecutor(2) as both:
        ended = list(both.map(lambda _: person.windrow("cluster", "delete", "--yes", cluster), range(2)))
    again = person.windrow("cluster", "delete", "--yes", cluster)
    assert [said.code for said in (*ended, again)] == [0, 0, 0], (ended, again)
    assert {said.out for said in (*ended, again)} == {again.out}
    assert len(person.renter.all("/receipts", cluster=cluster)) == 1


@pytest.mark.case("B-C13")
def test_a_child_that_keeps_the_output_open_ends_with_the_program(person: Person, flags: tuple[str, ...]) -> None:
    said = person.windrow("run", "--no-files", *flags, "--", "sh", "-c", "sleep 7654322 & echo hi; exit 3")
    assert (said.code, said.out) == (3, b"hi\n"), said
    assert processes("7654322") == []
