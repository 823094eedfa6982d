"""Functions on a cluster of the shipped market: from a script as a person writes it to the result."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.rental import Renter
from tests.waiting import PATIENCE_S, poll
from windrow.client import Client
from windrow.config import Config

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]

MODULE = """
import os, time

def where(word):
    print(f"working on {word}")
    return f"{word} by {os.environ['WINDROW_CLUSTER_ID']}"

def slow(marker):
    print("begun", flush=True)
    time.sleep(2)
    return 7

def stuck():
    print("begun", flush=True)
    time.sleep(600)
"""
SCRIPT = """
import sys, json
import windrow as rh
from work import where, slow, stuck

def main(what):
    box = rh.cluster(name="rh-cpu", instance_type="CPU:1", provider="aws").up_if_not()
    if what == "where":
        print(json.dumps([rh.function(where).to(box)("it"), box.id]))
    elif what == "leave":
        # In one piece: the worker's own output comes between, from another thread.
        print(rh.function(slow).to(box).remote("x").id + "\\n", end="", flush=True)
        sys.stdin.read()
    elif what == "attach":
        print(rh.attach(sys.argv[2]).result())
    elif what == "stuck":
        rh.function(stuck).to(box)()
    elif what == "down":
        box.down()

def lease():
    print(rh.cluster(name="rh-lease", instance_type="CPU:1", client_lease_s=10).up_if_not().id, flush=True)
    sys.stdin.read()

if __name__ == "__main__":
    lease() if sys.argv[1] == "lease" else main(sys.argv[1])
"""


class Person:
    """Somebody with a script in a folder."""

    def __init__(self, renter: Renter, folder: Path) -> None:
        self.folder, cli = folder, renter.stack.cli
        (folder / "work.py").write_text(MODULE)
        (folder / "script.py").write_text(SCRIPT)
        own = {"WINDROW_URL": cli["url"], "WINDROW_TOKEN": cli["token"], "XDG_STATE_HOME": str(folder / ".venv")}
        self.environment = os.environ | own

    def begin(self, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "script.py", *words], cwd=self.folder, env=self.environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "script.py", *words], cwd=self.folder, env=self.environment, text=True,
            capture_output=True, timeout=PATIENCE_S * 2, check=False,
        )  # fmt: skip


@pytest.mark.proves("a plain Python function runs on a rented host as if it were local, through the shipped daemons")
def test_a_function_runs_on_a_cluster_follows_edits_and_outlives_its_caller(renter: Renter, tmp_path: Path) -> None:
    person = Person(renter, tmp_path)

    first = person.run("where")
    assert first.returncode == 0, first.stderr
    assert "may not buy at aws" in first.stderr
    lines = first.stdout.splitlines()
    answer, cluster_id = json.loads(lines[-1])
    assert lines[0] == "working on it"
    assert answer == f"it by {cluster_id}"

    (tmp_path / "work.py").write_text(MODULE.replace("{word} by", "{word} edited by"))
    second = person.run("where")
    assert json.loads(second.stdout.splitlines()[-1]) == [f"it edited by {cluster_id}", cluster_id]

    with person.begin("leave") as left:
        assert left.stdout is not None
        run_id = next(line.strip() for line in left.stdout if line.startswith("run_"))
        left.send_signal(signal.SIGKILL)
    attached = person.run("attach", run_id)
    assert attached.stdout == "begun\n7\n", attached.stderr

    with person.begin("stuck") as interrupted:
        assert interrupted.stdout is not None
        assert interrupted.stdout.readline() == "begun\n"
        interrupted.send_signal(signal.SIGINT)
        assert interrupted.wait(PATIENCE_S) != 0
        assert interrupted.stderr is not None
        assert "KeyboardInterrupt" in interrupted.stderr.read()

    cli = renter.stack.cli
    with Client(Config(cli["url"], cli["token"])) as api:
        api.delete_cluster(cluster_id)  # by somebody else: this person's programs remember it
        # A call that comes while its worker is being ended fails, since it may have run.
        api.wait_cluster(cluster_id, lambda found: found["phase"] == "Deleted", PATIENCE_S)
        third = person.run("where")
        assert third.returncode == 0, third.stderr
        answer, second_id = json.loads(third.stdout.splitlines()[-1])
        assert second_id != cluster_id
        assert person.run("down").returncode == 0
        api.wait_cluster(second_id, lambda found: found["phase"] == "Deleted", PATIENCE_S)
        poll(lambda: not [flaw for one in (cluster_id, second_id) for flaw in renter.flaws(one)])


@pytest.mark.long
def test_a_cluster_with_a_lease_lives_as_long_as_its_program_however_that_ends(renter: Renter, tmp_path: Path) -> None:
    person, cli = Person(renter, tmp_path), renter.stack.cli
    with Client(Config(cli["url"], cli["token"])) as api, person.begin("lease") as program:
        assert program.stdout is not None and program.stderr is not None
        cluster_id = program.stdout.readline().strip()
        assert cluster_id, program.stderr.read()
        until = api.cluster(cluster_id)["client_lease_ends_at"]
        poll(lambda: api.cluster(cluster_id)["client_lease_ends_at"] > until)
        program.send_signal(signal.SIGTERM)
        assert program.wait(PATIENCE_S) == -signal.SIGTERM
        ended = api.wait_cluster(cluster_id, lambda found: found["phase"] in ("Deleted", "Failed"), PATIENCE_S)
    assert "client has not been heard from for 10 s" in ended["reason"]
    poll(lambda: not renter.flaws(cluster_id))
