"""Work that fails, never ends or floods its log, hosts that keep silent about it, and names meant to do harm."""

import asyncio
import os
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.support import truth
from tests.support.raw_agent import Line, RawAgent, access_address, dialled, joined
from tests.support.rental import Renter
from tests.support.stack import wait_for
from tests.waiting import PATIENCE_S, poll_async
from windrow.errors import ApiProblem
from windrow_proto.errors import InvalidInput, LinkClosed
from windrow_proto.model import (
    CommandPhase,
    CommandStatus,
    Event,
    Kind,
    Lane,
    Observed,
    ObservedWorkload,
    WorkloadPhase,
    observed_digest,
)
from windrow_proto.wire_command import decode_command, encode_status
from windrow_proto.wire_host import encode_event, encode_observed
from windrow_proto.wire_link import decode_query

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
MIB = 1 << 20
LOG_KEPT = 10 * MIB
CUT = b"[windrow: the log was cut here"


# --- the command -----------------------------------------------------------------------------------------------------


@pytest.mark.proves("a command that fails, cannot start, never ends or floods its log is answered and billed as signed")
def test_a_command_that_fails_keeps_its_exit_code_and_is_billed_for_what_it_ran(renter: Renter) -> None:
    cluster = renter.create("sh", "-c", "echo why >&2; exit 9", until="")

    workload = renter.exited(cluster["id"])
    log = renter.log(cluster["id"])
    renter.delete(cluster["id"])

    assert (workload["exit_code"], log) == (9, b"why\n")
    assert renter.flaws(cluster["id"]) == []


def test_a_command_that_is_killed_says_by_which_signal(renter: Renter) -> None:
    cluster = renter.create("sh", "-c", "kill -KILL $$", until="")

    workload = renter.exited(cluster["id"])
    renter.delete(cluster["id"])

    assert workload["exit_code"] in (-9, 137)
    assert renter.flaws(cluster["id"]) == []


def test_a_program_that_does_not_exist_is_a_stated_failure_and_the_slot_is_free_again(renter: Renter) -> None:
    before = {cluster["id"] for cluster in renter.all("/clusters")}
    done = renter.windrow("run", "--no-files", "--", "no-such-program-anywhere")
    (cluster,) = [cluster for cluster in renter.all("/clusters") if cluster["id"] not in before]

    assert done.returncode == 127, done.stderr
    assert done.stderr.count("There is no command 'no-such-program-anywhere'") == 1 and "cost 0" in done.stderr
    wait_for(lambda: all(slot["state"] == "free" for slot in renter.host()["slots"]))
    renter.delete(cluster["id"])
    assert renter.flaws(cluster["id"]) == []


def test_a_command_that_never_ends_and_ignores_the_request_to_is_ended_by_its_deletion(renter: Renter) -> None:
    script = "trap '' TERM INT HUP; echo deaf; while :; do sleep 1; done"
    cluster = renter.create("sh", "-c", script)
    wait_for(lambda: b"deaf" in renter.log(cluster["id"]))

    receipt = renter.delete(cluster["id"])

    assert receipt["lines"][0]["final"]
    assert renter.flaws(cluster["id"]) == []


def test_a_command_that_leaves_daemons_behind_leaves_none(renter: Renter) -> None:
    marker = f"left-behind-{renter.host()['id']}"
    script = f"(setsid sh -c 'while :; do sleep 1; done' {marker} &) ; echo gone"
    cluster = renter.create("sh", "-c", script, until="")

    renter.exited(cluster["id"])
    renter.delete(cluster["id"])

    assert truth.workload_processes(marker) == []


@pytest.mark.case("B-D6")
def test_a_script_whose_interpreter_is_not_there_ends_with_127_and_is_tried_once(
    renter: Renter, tmp_path: Path
) -> None:
    script = tmp_path / "s.sh"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)

    done = renter.windrow("run", "--", "./s.sh", cwd=tmp_path)

    assert done.returncode == 127, done.stderr
    assert done.stdout.count("execvp") == 1 and "interpreter" in done.stdout
    assert "sandbox could not be made" not in done.stdout


@pytest.mark.case("B-D19")
def test_output_larger_than_the_log_that_is_kept_reaches_a_pipe_whole(renter: Renter, tmp_path: Path) -> None:
    done = renter.windrow("run", "--no-files", "--", "sh", "-c", "yes flood | head -c 20000000; echo end", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert len(done.stdout) == 20_000_000 + len("end\n")
    assert done.stdout.endswith("end\n")


@pytest.mark.proves("a log is kept up to 10 MiB, and that is said in it and beside it")
def test_the_log_that_is_kept_is_cut_and_says_so(renter: Renter) -> None:
    cluster = renter.create("sh", "-c", "yes flood | head -c 20000000; echo end", until="")

    assert renter.exited(cluster["id"])["exit_code"] == 0
    truncated = _log_header(renter, cluster["id"])
    with renter.stack.client() as api:
        api.delete_cluster(cluster["id"], keep_results=True)
        api.wait_cluster(cluster["id"], lambda one: one["phase"] in ("Deleted", "Finished", "Failed"), PATIENCE_S)
    log = wait_for(lambda: CUT in (found := renter.log(cluster["id"]))[-200:] and found)

    assert truncated == "true"
    assert LOG_KEPT <= len(log) <= LOG_KEPT + MIB
    assert renter.flaws(cluster["id"]) == []


# --- a host that keeps silent ----------------------------------------------------------------------------------------


@pytest.mark.proves("a command is sent again until answered, and asked after instead of repeated once it was accepted")
async def test_a_silent_host_is_sent_the_same_command_again_and_asked_once_it_had_accepted(
    renter: Renter, tmp_path: Path
) -> None:
    agent = RawAgent(await joined(renter, tmp_path / "identity", name="silent"))
    async with dialled(agent.identity.tls, access_address(renter)) as line:
        cluster, first = await _rented(renter, agent, line)
        again = await _command(agent)
        await _answer(agent, again, CommandPhase.ACCEPTED)

    async with dialled(agent.identity.tls, access_address(renter)) as line:
        agent.restart(b"2" * 16)
        await agent.greet_over(line)
        await agent.beat()
        await _asked_after(agent, first)
        await _answer(agent, first, CommandPhase.FAILED, error_code="workload_failed", error_detail="it was lost")
        await agent.record(Kind.OBSERVED, encode_observed(_gone(first)))
        ended = await poll_async(lambda: _ended(renter, cluster))

    assert (again.command_id, again.create) == (first.command_id, first.create)
    assert ended["phase"] == "Failed"
    assert "it was lost" in ended["reason"]
    wait_for(lambda: renter.receipt(cluster))
    assert renter.flaws(cluster) == []


@pytest.mark.chaos
@pytest.mark.skipif(not os.environ.get("CHAOS"), reason="takes two minutes; `make chaos` runs it")
async def test_a_creation_that_was_never_accepted_is_asked_after_and_costs_nothing(
    renter: Renter, tmp_path: Path
) -> None:
    agent = RawAgent(await joined(renter, tmp_path / "identity", name="absent"))
    async with dialled(agent.identity.tls, access_address(renter)) as line:
        cluster, create = await _rented(renter, agent, line)

    # It was sent, so nobody can know: Unknown, and the cluster waits for the host's word.
    await poll_async(lambda: _creation(renter, agent)["state"] == "unknown", deadline_s=180)
    assert renter.ask("GET", f"/clusters/{cluster}")["phase"] == "Creating"
    async with dialled(agent.identity.tls, access_address(renter)) as line:
        agent.restart(b"2" * 16)
        await agent.greet_over(line)
        await agent.beat()
        await _asked_after(agent, create)
        await _answer(agent, create, CommandPhase.NEVER_SEEN)
        delete = await _command(agent, is_create=False)
        await _answer(agent, delete, CommandPhase.SUCCEEDED)
        ended = await poll_async(lambda: _ended(renter, cluster))

    assert delete.delete.workload_id == create.create.workload_id
    assert ended["phase"] == "Failed"
    assert _creation(renter, agent)["state"] == "timed_out"
    assert renter.receipt(cluster)["running_seconds"] == "0.000000000"
    assert renter.flaws(cluster) == []


# --- names -----------------------------------------------------------------------------------------------------------

CONTROL = "\x1b[31mred\x1b]0;title\x07\x00\x08\x7f\u202egnp.exe\u2066\r\n\t"
MARKUP = "<img src=x onerror=alert(1)>[bold red]rich[/]{{7*7}}'\";--"
NASTY = CONTROL + MARKUP
TURNED = "\u202egnp.exe\u2066" + MARKUP
LET_IN = "red\r\n\t" + MARKUP
"""The texts that the API takes and that are still no names."""
LINES = "\n\t"
"""The characters that a sentence over several lines may hold."""
DIRECTIONS = "\u202a\u202e\u2066\u2069"
FORBIDDEN = {chr(code) for code in (*range(32), *range(127, 160))} - set(LINES) | set(DIRECTIONS)


@pytest.mark.proves("names full of control characters and markup are harmless in the API, the command line and events")
async def test_nasty_names_are_harmless_everywhere(renter: Renter, tmp_path: Path) -> None:
    for name in (NASTY, TURNED):
        with pytest.raises(InvalidInput, match="character"):
            await joined(renter, tmp_path / "refused", name=name)
    agent = RawAgent(await joined(renter, tmp_path / "identity", name=LET_IN))
    async with dialled(agent.identity.tls, access_address(renter)) as line:
        await agent.greet_over(line)
        nasty = _without_nul(NASTY)
        await agent.tell_inventory(hostname=nasty, os=nasty, kernel=nasty, cpu_model=nasty, conditions=(nasty,))
        await agent.record(Kind.EVENT, encode_event(Event(nasty, agent.clock.wall_ns(), nasty, nasty)))
        await agent.beat()
        await poll_async(lambda: _host(renter, agent)["cpu_count"])
        box = {"kind": "box", "argv": ["true"], "env": {"A": nasty}}
        for name in (nasty, TURNED):
            with pytest.raises(ApiProblem, match="character"):
                renter.ask("POST", "/clusters", {**box, "name": name})
        with pytest.raises(ApiProblem, match="name must be"):
            renter.ask("POST", "/clusters", {**box, "name": LET_IN})
        cluster_id = renter.ask("POST", "/clusters", {**box, "name": "plain"})["cluster"]["id"]
        said = await asyncio.to_thread(_everything, renter, agent.host_id, cluster_id)
    renter.exited(cluster_id)
    renter.delete(cluster_id)

    for where, text in said.items():
        assert [hex(ord(one)) for one in FORBIDDEN & set(text)] == [], where
    for where in ("host name", "cluster name"):
        assert not set("<>[]{}\"';") & set(said[where]), (where, said[where])
    # Elsewhere markup stays what it is, text: the command line prints it as it is written.
    assert "[bold red]rich[/]" in said["cpu model"]
    assert "[bold red]rich[/]" in said["cli host"]


def _everything(renter: Renter, host_id: str, cluster_id: str) -> dict[str, str]:
    host = renter.ask("GET", f"/hosts/{host_id}")
    cluster = renter.ask("GET", f"/clusters/{cluster_id}")
    texts = {"host name": host["name"], "cpu model": host["cpu_model"], "cluster name": cluster["name"]}
    texts["api host"] = _strings(host)
    texts["api events"] = _strings(renter.all("/events", subject=host_id))
    texts["api cluster"] = _strings({key: value for key, value in cluster.items() if key != "request"})
    for name, words in (
        ("cli hosts", ("host", "ls")),
        ("cli host", ("host", "show", host_id)),
        ("cli events", ("event", "ls")),
        ("cli clusters", ("cluster", "ls")),
        ("cli cluster", ("cluster", "show", cluster_id)),
    ):
        done = renter.windrow(*words)
        assert done.returncode == 0, done.stderr
        texts[name] = done.stdout + done.stderr
    return texts


def _strings(value: Any) -> str:
    """Every text inside, one a line."""
    if isinstance(value, dict):
        return "\n".join(_strings(inner) for inner in value.values())
    if isinstance(value, list):
        return "\n".join(_strings(inner) for inner in value)
    return value if isinstance(value, str) else ""


def _without_nul(text: str) -> str:
    return text.replace("\x00", "")


# --- parts -----------------------------------------------------------------------------------------------------------


async def _rented(renter: Renter, agent: RawAgent, line: Line) -> tuple[str, Any]:
    """Connect this agent's host and rent it; returns the cluster and the creation that came."""
    await agent.greet_over(line)
    await agent.tell_inventory()
    await agent.beat()
    cluster = await _rent(renter, agent)
    return cluster, await _command(agent)


async def _rent(renter: Renter, agent: RawAgent) -> str:
    """Rent the host of this agent as soon as it is listed; returns the cluster."""
    request = {"kind": "box", "argv": ["true"], "host_id": agent.host_id, "runtime": "simulated"}

    def attempt() -> str:
        host = _host(renter, agent)
        if not host["price_per_hour"] or host["link_state"] != "online":
            return ""
        return str(renter.ask("POST", "/clusters", request)["cluster"]["id"])

    return await poll_async(lambda: asyncio.to_thread(attempt))


def _host(renter: Renter, agent: RawAgent) -> Any:
    return renter.ask("GET", f"/hosts/{agent.host_id}")


def _creation(renter: Renter, agent: RawAgent) -> Any:
    return next(one for one in renter.all("/commands", host=agent.host_id) if one["kind"] == "create")


async def _command(agent: RawAgent, is_create: bool = True) -> Any:
    """The next creation (or deletion) that the Master sends; measurements are not answered."""
    while True:
        try:
            command = decode_command((await agent.next(Kind.COMMAND)).body)
        except LinkClosed:
            raise AssertionError("the link was closed") from None
        if (command.create if is_create else command.delete) is not None:
            return command


async def _asked_after(agent: RawAgent, command: Any) -> None:
    """Until the Master asks after this command; it must not send a creation meanwhile."""
    while True:
        heard = await agent.next(Kind.QUERY, Kind.COMMAND)
        if heard.kind is Kind.COMMAND:
            assert decode_command(heard.body).create is None
            continue
        if command.command_id in decode_query(heard.body).command_ids:
            return


async def _answer(agent: RawAgent, command: Any, phase: CommandPhase, **more: Any) -> None:
    sequence = await agent.record(Kind.COMMAND_STATUS, encode_status(CommandStatus(command.command_id, phase, **more)))
    await agent.acked(Lane.EVIDENCE, sequence)


def _gone(command: Any) -> Observed:
    spec = command.create
    workloads = (ObservedWorkload(spec.workload_id, WorkloadPhase.GONE, spec.slots, runtime=spec.runtime),)
    return Observed(workloads, observed_digest(workloads), time.time_ns())


def _ended(renter: Renter, cluster_id: str) -> Any:
    cluster = renter.ask("GET", f"/clusters/{cluster_id}")
    return cluster["phase"] in ("Deleted", "Finished", "Failed") and cluster


def _log_header(renter: Renter, cluster_id: str) -> str:
    found = renter.stack.cli
    url = f"{found['url']}/api/v1/clusters/{cluster_id}/logs"
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {found['token']}"})
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        return str(answer.headers["X-Log-Truncated"])
