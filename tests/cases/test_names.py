"""Names are taken as they are given or refused with the rule, and each thing is meant by its name."""

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.rental import Renter
from tests.support.stack import wait_for

pytestmark = [pytest.mark.timeout(240), pytest.mark.slow]

RULE = "1 to 64 of A-Z a-z 0-9"
MAKES = """
import sys, windrow
box = windrow.cluster(name=sys.argv[1]).up_if_not()
print(box.id)
"""
HOSTS = {
    "GPU_Box-01.Example.COM": "GPU_Box-01.Example.COM",
    "b\u00f4x \u65e5\u672c": "b_x __",
    "h" * 64: "h" * 64,
    "-bad-.": "-bad-.",
    "": "host",
}
JOIN = """
import os, socket, sys
socket.sethostname(sys.argv[1])
os.execv(sys.executable, [sys.executable, "-m", "windrow_agent", "join", *sys.argv[2:]])
"""


def _living(renter: Renter, name: str) -> list[str]:
    return [one["id"] for one in renter.all("/clusters", name=name) if one["phase"] not in ("Deleted", "Failed")]


@pytest.fixture
def name(renter: Renter) -> Iterator[str]:
    """Of the test's own; clusters of it are deleted at the end."""
    made = f"lab-{uuid.uuid4().hex[:6]}"
    yield made
    for one in _living(renter, made):
        renter.delete(one)


@pytest.mark.case("B-F1")
@pytest.mark.parametrize("odd", ["L\u00e4b", "a\nb", "x" * 70, " lab", "<b>", "94e9ea58", "job_1", "a/b"])
def test_a_name_that_cannot_be_kept_is_refused_with_the_rule_and_nothing_is_made(renter: Renter, odd: str) -> None:
    before = len(renter.all("/clusters"))

    for verb in (("cluster", "create", "--no-wait"), ("run", "--no-files"), ("job", "submit", "--no-files")):
        done = renter.windrow(*verb, f"--name={odd}", "--", "true")
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        assert RULE in done.stderr

    assert len(renter.all("/clusters")) == before


@pytest.mark.case("B-F3")
def test_a_second_machine_finds_the_cluster_of_a_name_and_a_name_that_may_not_be_rents_nothing(
    renter: Renter, name: str, tmp_path: Path
) -> None:
    def up(machine: str, called: str) -> "subprocess.CompletedProcess[str]":
        own = {"WINDROW_URL": renter.stack.cli["url"], "WINDROW_TOKEN": renter.stack.cli["token"]}
        own |= {"XDG_STATE_HOME": str(tmp_path / machine)}
        return subprocess.run(
            [sys.executable, "-c", MAKES, called], cwd=tmp_path, env=os.environ | own, capture_output=True, text=True,
            timeout=120, check=False,
        )  # fmt: skip

    refused = up("first", "l\u00e4b")
    first, second = up("first", name), up("second", name)

    assert refused.returncode == 1 and RULE in refused.stderr
    assert (first.returncode, second.stdout) == (0, first.stdout), first.stderr + second.stderr
    assert _living(renter, name) == first.stdout.split()


@pytest.mark.case("B-F4")
def test_a_script_that_creates_a_cluster_is_told_of_the_one_that_is_there(renter: Renter, name: str) -> None:
    script = ("cluster", "create", "--name", name, "--no-ssh", "--no-notebook")
    first = renter.windrow(*script)
    again = renter.windrow(*script)
    uses = renter.windrow(*script, "--if-not-there")

    assert (first.returncode, again.returncode, uses.returncode) == (0, 5, 0), first.stderr + uses.stderr
    assert first.stdout.strip() in again.stderr and "--if-not-there" in again.stderr
    assert uses.stdout == first.stdout
    assert _living(renter, name) == [first.stdout.strip()]
    assert renter.windrow("cluster", "show", name).returncode == 0


@pytest.mark.case("B-E16", "B-F5")
@pytest.mark.parametrize(("called", "kept"), HOSTS.items(), ids=["mixed case", "no ASCII", "64 letters", "odd", "none"])
def test_a_host_is_shown_proved_and_retired_by_the_name_of_its_machine(
    renter: Renter, tmp_path: Path, called: str, kept: str
) -> None:
    if os.geteuid() != 0:
        pytest.skip("a machine's name is changed by root alone")
    token = tmp_path / "token"
    token.write_text(renter.windrow("token", "add", "--join").stdout.split()[0])
    words = ("--token-file", str(token), "--data-dir", str(tmp_path / "agent"))
    joined = subprocess.run(
        ["unshare", "--uts", sys.executable, "-c", JOIN, called, renter.stack.cli["https_url"], *words],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert joined.returncode == 0, joined.stderr
    wait_for(lambda: kept in [one["name"] for one in renter.all("/hosts")])

    shown = renter.windrow("host", "show", "--", kept)
    proved = renter.windrow("host", "prove", "--", kept)
    retired = renter.windrow("host", "retire", "--", kept)

    assert shown.returncode == 0 and kept in shown.stdout, shown.stderr
    assert proved.returncode in (0, 5) and "There is no" not in proved.stderr, proved.stderr
    assert retired.returncode == 0, retired.stderr
    (host,) = [one for one in renter.all("/hosts", state="retired") if one["name"] == kept]
    assert host["admin_state"] == "retired"
