"""One test per sentence of the mission that works, on a running market: this host, and simulated ones for GPUs."""

import inspect
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.mission.sentences import BY_ID, SENTENCES
from tests.support import truth
from tests.support.killing import Killer
from tests.support.rental import Renter, renting
from tests.support.stack import wait_for
from windrow.client import Client
from windrow.config import Config
from windrow.errors import ApiProblem

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SIMULATED = 4
"""Hosts, one of each kind the agent knows how to pretend; everything else is shown on this machine's own host."""
SHOWN = ("clock_sm_hertz", "temperature_celsius", "power_watts", "utilization_ratio")
Test = TypeVar("Test", bound=Callable[..., None])


def shows(sentence_id: str) -> Callable[[Test], Test]:
    """Say which sentence a test shows; `make mission` prints it."""

    def mark(test: Test) -> Test:
        test.__dict__["sentence_id"] = BY_ID[sentence_id].id
        return test

    return mark


@pytest.fixture(autouse=True)
def _told(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> None:
    if sentence_id := getattr(request.function, "sentence_id", ""):
        record_property("sentence", sentence_id)


@pytest.fixture(scope="module")
def renter() -> Iterator[Renter]:
    with renting("--simulate", str(SIMULATED)) as found:
        wait_for(lambda: len(_simulated(found)) == SIMULATED)
        wait_for(lambda: all(_is_known(found, host["id"]) for host in found.all("/hosts")))
        yield found


def _simulated(renter: Renter) -> list[dict[str, Any]]:
    return [host for host in renter.all("/hosts") if host["simulated"] and host["link_state"] == "online"]


def _is_known(renter: Renter, host_id: str) -> bool:
    """True if a host is measured, priced, and heard of with every figure."""
    host = renter.ask("GET", f"/hosts/{host_id}")
    of_gpus = [gpu["tier"] and _has(gpu, "memory_used_bytes", *SHOWN) for gpu in host["gpus"]]
    return bool(host["price_per_hour"] and host["tier"] and _has(host, "memory_used_bytes") and all(of_gpus))


def _has(one: dict[str, Any], *names: str) -> bool:
    return all((one["live"] or {}).get(name) is not None for name in names)


def _gpu(renter: Renter) -> tuple[dict[str, Any], dict[str, Any]]:
    """A (simulated) host and one of its GPUs with live figures."""

    def look() -> Any:
        for host in _simulated(renter):
            shown = renter.ask("GET", f"/hosts/{host['id']}")
            for gpu in shown["gpus"]:
                if _has(gpu, *SHOWN):
                    return shown, gpu
        return None

    found: tuple[dict[str, Any], dict[str, Any]] = wait_for(look)
    return found


def _json(renter: Renter, *words: str) -> Any:
    done = renter.windrow(*words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_sentence_is_shown_or_open_and_never_both() -> None:
    tests = {
        found.__dict__["sentence_id"]
        for _, found in inspect.getmembers(sys.modules[__name__], inspect.isfunction)
        if "sentence_id" in found.__dict__
    }

    assert len(BY_ID) == len(SENTENCES)
    assert all(bool(one.missing) != bool(one.shows) for one in SENTENCES)
    assert {one.id for one in SENTENCES if one.shows and not one.elsewhere} <= tests
    assert not tests & {one.id for one in SENTENCES if one.missing}


@shows("marketplace")
def test_hosts_of_two_regions_are_listed_at_a_price_with_what_is_free(renter: Renter) -> None:
    hosts = wait_for(lambda: (h := _json(renter, "host", "ls")) and all(one["price_per_hour"] for one in h) and h)

    assert len(hosts) == SIMULATED + 1
    assert {host["region"] for host in hosts} <= {"local-a", "local-b"}


@shows("rental")
def test_a_renter_pays_for_the_seconds_that_the_host_signed_and_no_more(renter: Renter, tmp_path: Path) -> None:
    done = renter.windrow("run", "--json", "--", "sh", "-c", "echo computed", cwd=tmp_path)

    assert done.returncode == 0 and "computed" in done.stderr
    assert renter.flaws(json.loads(done.stdout)["receipt"]["cluster_id"]) == []


@shows("onboarding")
def test_one_line_brings_another_host_in(renter: Renter) -> None:
    made = json.loads(renter.windrow("token", "add", "--join", "--json").stdout)

    assert made["join_token"].startswith("wj_")
    assert "install.sh" in (made["command"] or "install.sh")


@shows("allocation")
def test_what_is_asked_for_is_placed_where_it_fits_and_says_why_not_elsewhere(renter: Renter) -> None:
    request = {"kind": "box", "argv": ["true"], "gpus": 1, "gpu_model": "H100", "runtime": "simulated"}

    plan = renter.ask("POST", "/clusters/plan", request)

    assert plan["fits"]
    assert plan["placement"][0]["tier"].startswith("h100/")


@shows("parts")
def test_a_market_consists_of_master_accesses_and_agents(renter: Renter) -> None:
    daemons = renter.stack.daemons()

    assert {"master", "access", "agent"} <= set(daemons)
    assert wait_for(lambda: len(renter.stack.daemons()["access"]) == 2)


@shows("agent-reports")
def test_the_agent_of_this_host_reports_what_it_is_and_does(renter: Renter) -> None:
    host = _json(renter, "host", "show", renter.host()["id"])

    assert host["cpu_count"] == os.cpu_count()
    assert host["os"] and host["kernel"] and host["memory_bytes"] > 0
    assert host["live"]["memory_used_bytes"] > 0


@shows("access-protects")
def test_every_agent_speaks_through_an_access(renter: Renter) -> None:
    def spoken_through() -> bool:
        accesses = {one["access_id"] for one in renter.ask("GET", "/operators/health")["accesses"]}
        return len(accesses) == 2 and {host["access_id"] for host in renter.all("/hosts")} <= accesses

    assert wait_for(spoken_through)


@shows("master-stores")
def test_what_was_reported_is_kept_and_can_be_asked_for(renter: Renter) -> None:
    host_id = renter.host()["id"]

    def points() -> Any:
        with renter.stack.client() as api:
            answer = api.get(f"/hosts/{host_id}/history", metric="host_memory_used_bytes")
        return [value for one in answer["series"] for _, value in one["points"] if value]

    assert min(wait_for(points)) > 0


@shows("gpu-figures")
def test_every_gpu_has_model_memory_clock_temperature_power_and_load(renter: Renter) -> None:
    _, gpu = _gpu(renter)

    assert gpu["name"] and gpu["memory_bytes"] > 0
    assert gpu["live"]["clock_sm_hertz"] > 0
    assert 0 < gpu["live"]["temperature_celsius"] < 120
    assert gpu["live"]["power_watts"] > 0
    assert 0 <= gpu["live"]["utilization_ratio"] <= 1


@shows("tiers")
def test_every_host_and_gpu_has_a_tier_with_its_reasons(renter: Renter) -> None:
    host, gpu = _gpu(renter)

    assert gpu["tier"].rpartition("/")[2] in "ABC"
    assert gpu["tier_reasons"] and host["tier_reasons"]


@shows("classifies")
def test_what_hosts_report_becomes_offers_by_tier(renter: Renter) -> None:
    tiers = {offer["tier"].partition("/")[0] for offer in _json(renter, "offer", "ls")}

    assert "cpu" in tiers and len(tiers) > 2


@shows("aggregates")
def test_the_figures_of_a_gpu_are_history_a_moment_later(renter: Renter) -> None:
    host, gpu = _gpu(renter)

    def points() -> Any:
        with renter.stack.client() as api:
            answer = api.get(f"/hosts/{host['id']}/history", metric="gpu_power_watts", gpu=gpu["uuid"])
        return [value for one in answer["series"] for _, value in one["points"] if value]

    assert min(wait_for(points)) > 0


@shows("state-machines")
def test_a_drained_host_takes_no_work_until_it_is_active_again(renter: Renter) -> None:
    host_id = renter.host()["id"]
    request = {"kind": "box", "argv": ["true"], "host_id": host_id}

    assert renter.windrow("host", "drain", host_id).returncode == 0
    drained = wait_for(lambda: (p := renter.ask("POST", "/clusters/plan", request)) and not p["fits"] and p)
    (reason,) = [one["reason"] for one in drained["refusal"]["reasons"]]
    assert renter.windrow("host", "activate", host_id).returncode == 0

    assert "drain" in reason.lower()
    assert wait_for(lambda: renter.ask("POST", "/clusters/plan", request)["fits"])


@shows("commands")
def test_each_creation_and_deletion_is_a_command_that_is_followed_to_its_end(renter: Renter) -> None:
    cluster = renter.create("sleep", "60")
    renter.delete(cluster["id"])

    def ended() -> bool:
        commands = {one["kind"]: one["state"] for one in reversed(_json(renter, "command", "ls"))}
        return (commands["create"], commands["delete"]) == ("succeeded", "succeeded")

    assert wait_for(ended)


@shows("api")
def test_the_api_describes_itself(renter: Renter) -> None:
    described = renter.ask("GET", "/openapi.json")

    assert described["openapi"].startswith("3.1")
    assert "/api/v1/clusters" in described["paths"]


@shows("nearest")
def test_the_agent_knows_its_round_trip_to_the_access_it_took(renter: Renter) -> None:
    host = wait_for(lambda: (h := renter.host()) and h["rtt_ms"] is not None and h)

    assert host["access_id"] and 0 < host["rtt_ms"] < 10_000


@shows("failover")
def test_when_its_access_dies_the_host_goes_on_reporting_through_another(renter: Renter) -> None:
    killer = Killer(renter)
    before = renter.host()

    with killer.held_down():
        os.kill(killer.access_in_use(), signal.SIGKILL)
        after = wait_for(lambda: (h := renter.host()) and h["access_id"] not in (None, before["access_id"]) and h)

    assert wait_for(lambda: renter.host()["last_seen_at"] > after["last_seen_at"])


@shows("gpu-facts")
def test_a_host_tells_cores_maker_address_driver_and_cuda_version_of_its_gpus(renter: Renter) -> None:
    host, gpu = _gpu(renter)

    assert (gpu["vendor"], bool(gpu["pci_bus_id"])) == ("nvidia", True)
    assert gpu["core_count"] > 1000
    assert host["driver_version"] and host["cuda_version"]


@shows("gpu-use")
def test_use_and_memory_of_every_gpu_are_live(renter: Renter) -> None:
    rows = wait_for(
        lambda: (
            (r := _json(renter, "gpu", "ls"))
            and all(None not in (one["memory_used_bytes"], one["utilization_ratio"]) for one in r)
            and r
        )
    )

    assert all(0 <= row["utilization_ratio"] <= 1 for row in rows)
    assert all(row["simulated"] for row in rows if row["host_id"] != renter.host()["id"])


@shows("speed-test")
def test_the_relay_measures_both_directions_when_asked(renter: Renter) -> None:
    host_id = renter.host()["id"]
    before = (renter.host()["bandwidth"] or {}).get("measured_at", "")

    assert renter.windrow("host", "measure", host_id).returncode == 0
    bandwidth = wait_for(lambda: (b := renter.host()["bandwidth"]) and b["measured_at"] > before and b)

    assert bandwidth["up_bps"] > 0 and bandwidth["down_bps"] > 0


@shows("executes")
def test_the_agent_creates_a_cluster_and_deletes_it_and_says_each_step(renter: Renter) -> None:
    made = renter.windrow("cluster", "create", "--", "sh", "-c", "echo here; sleep 60", f"mission-{os.getpid()}")
    cluster_id = made.stdout.strip()
    wait_for(lambda: b"here" in renter.log(cluster_id))
    renter.delete(cluster_id)

    assert "running" in made.stderr
    assert truth.workload_processes(f"mission-{os.getpid()}") == []


@shows("reclamation")
def test_a_gpu_is_free_then_held_then_free_again(renter: Renter) -> None:
    def state(uuid: str) -> str:
        return str(next(row for row in renter.ask("GET", "/gpus")["items"] if row["uuid"] == uuid)["slot_state"])

    cluster = renter.create("sleep", "60", gpus=1, runtime="simulated")
    (slot,) = cluster["workloads"][0]["slots"]
    uuid = slot.rpartition("/")[2]
    wait_for(lambda: state(uuid) == "running")
    renter.delete(cluster["id"])

    assert wait_for(lambda: state(uuid) == "free")


@shows("usage")
def test_a_watched_host_streams_memory_use_and_power_of_its_gpus(renter: Renter) -> None:
    host, gpu = _gpu(renter)
    wanted = {"gpu_memory_used_bytes", "gpu_utilization_ratio", "gpu_power_watts"}

    with renter.stack.client() as api:
        streamed = (data["gpus"].get(gpu["uuid"], {}) for _, _, data in api.events(f"/hosts/{host['id']}/stream"))
        live = next(figures for figures in streamed if wanted <= set(figures))

    assert None not in {live[name] for name in wanted}


@shows("security")
def test_who_shows_no_token_or_too_weak_a_one_is_refused(renter: Renter) -> None:
    made = json.loads(renter.windrow("token", "add", "looker", "--role", "auditor", "--json").stdout)
    url = renter.stack.cli["url"]

    with Client(Config(url, "wt_nobody")) as nobody, pytest.raises(ApiProblem) as unknown:
        nobody.get("/me")
    with Client(Config(url, made["token"])) as looker, pytest.raises(ApiProblem) as weak:
        looker.create_cluster({"kind": "box", "argv": ["true"]})

    assert (unknown.value.status, weak.value.status) == (401, 403)


@shows("submit")
def test_a_task_is_submitted_with_its_files_and_its_result_comes_back(renter: Renter, tmp_path: Path) -> None:
    (tmp_path / "numbers.txt").write_text("1 2 3")
    program = "open('sum.txt','w').write(str(sum(map(int, open('numbers.txt').read().split()))))"

    done = renter.windrow("run", "--", "python", "-c", program, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "sum.txt").read_text() == "6"


@shows("alerts")
def test_a_job_that_fails_is_told_in_the_inbox_with_what_to_do(renter: Renter) -> None:
    words = ("job", "submit", "--no-files", "--name", "breaks", "--json", "--", "sh", "-c", "exit 3")
    assert renter.windrow(*words).returncode == 0

    def told() -> Any:
        return [one for one in _json(renter, "alert", "ls") if one["rule"] == "job.failed"]

    (alert,) = wait_for(told)
    assert (alert["title"], alert["state"]) == ("Job failed: breaks", "firing")
    assert "windrow logs" in alert["remedy"]
    assert alert["id"] in {one["alert_id"] for one in renter.ask("GET", "/inbox")["items"]}


@shows("reports")
def test_a_report_by_any_dimension_adds_up_to_the_same(renter: Renter) -> None:
    assert renter.windrow("run", "--no-files", "--", "true").returncode == 0
    ways = [renter.ask("GET", f"/reports?measure=cost&by={by}") for by in ("day", "tier", "project")]
    ways.append(_json(renter, "report", "--measure", "cost", "--by", "host,kind"))
    totals = {one["totals"]["cost"] for one in ways}
    assert len(totals) == 1 and Decimal(*totals) > 0
    sums = {sum(Decimal(cell["values"]["cost"]) for cell in one["cells"]) for one in ways}
    assert sums == {Decimal(ways[0]["totals"]["cost"])}


@shows("rich-api")
def test_reports_are_read_by_programs_as_json_and_csv(renter: Renter) -> None:
    said = renter.ask("GET", "/reports?by=host,kind&measure=cost,held")
    assert said["by"] == ["host", "kind"] and set(said["totals"]) == {"cost", "held"}
    table = renter.windrow("report", "--by", "host,kind", "--measure", "cost,held", "--csv").stdout
    assert len(table.splitlines()) == 1 + len(said["cells"])


@shows("hybrid-select")
def test_a_resource_that_is_bound_to_a_host_is_chosen_for_what_it_can_do(renter: Renter) -> None:
    host = renter.host()
    words = ("lab-edge", "--type", "edge", "--cpu-cores", "4", "--memory-gb", "8", "--framework", "sklearn")
    assert renter.windrow("resource", "add", *words).returncode == 0
    ask = {"code": "import sklearn", "compute_preference": "edge", "requirements": {"gpu_count": 0}}
    assert renter.ask("POST", "/route", ask)["chosen"] is None, "nothing runs on it yet"
    assert renter.windrow("resource", "bind", "lab-edge", "--host", host["name"]).returncode == 0

    chosen = renter.ask("POST", "/route", ask)

    assert chosen["chosen"] == "resource/lab-edge"
    (place,) = chosen["recommendations"]
    assert (place["host"], place["cost_estimate"]["hourly"]) == (host["id"], "0.00")
    refused = renter.ask("POST", "/route", ask | {"code": "import torch"})["refused"]
    assert "pytorch is not among its frameworks: sklearn." in {one["reason"] for one in refused}
    assert renter.windrow("resource", "rm", "lab-edge", "--yes").returncode == 0


@shows("hybrid-reserve")
def test_a_job_that_follows_the_choice_reserves_its_resource_which_is_busy_until_it_ends(renter: Renter) -> None:
    assert renter.windrow("resource", "add", "lab-edge", "--type", "edge", "--cpu-cores", "4").returncode == 0
    assert renter.windrow("resource", "bind", "lab-edge", "--host", renter.host()["name"]).returncode == 0
    words = ("job", "submit", "--no-files", "--optimize", "cost", "--hours", "0.1", "--json", "--", "sleep", "600")
    done = renter.windrow(*words)
    assert done.returncode == 0, done.stderr
    (job,) = json.loads(done.stdout)
    assert "Chosen: resource/lab-edge" in done.stderr
    wait_for(lambda: _status(renter) == "busy")
    ask = {"compute_preference": "edge", "requirements": {"gpu_count": 0}}
    assert renter.ask("POST", "/route", ask)["chosen"] is None
    assert renter.windrow("job", "cancel", job["id"]).returncode == 0
    wait_for(lambda: _status(renter) == "available")
    assert renter.windrow("resource", "rm", "lab-edge", "--yes").returncode == 0


def _status(renter: Renter) -> str:
    return str(renter.ask("GET", "/resources/lab-edge")["status"])


@shows("router-recommend")
def test_a_script_is_read_and_the_best_places_are_named_with_cost_and_reasons(renter: Renter, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\ntorch.save(model.state_dict(), 'w')\n")

    done = renter.windrow("route", str(tmp_path / "train.py"), "--hours", "3", "--interruptible", "--json")

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {fact["value"] for fact in found["analysis"]["facts"]} == {"pytorch", "save"}
    for place in found["recommendations"]:
        cost = place["cost_estimate"]
        assert float(cost["low"]) <= float(cost["total"]) <= float(cost["high"])
        assert cost["source"] and place["pros"] + place["cons"] and place["availability"]["wait_seconds"]["p90"] > 0


@shows("hybrid-intent")
def test_a_task_intent_says_the_type_of_resource_the_cost_and_the_provider(renter: Renter, tmp_path: Path) -> None:
    intent = """{
"task_name": "High-Priority Training",
"ml_task": "classification",
"compute_preference": "cloud",
"constraints": {
"max_cost_per_hour_usd": 50.0,
"preferred_provider": "AWS",
"required_gpu_count": 8
}
}"""
    (tmp_path / "task.json").write_text(intent)

    done = renter.windrow("route", "--intent", str(tmp_path / "task.json"), "--json")

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["recommendations"]
    assert found and all(one["gpu_count"] >= 8 and one["provider"] != "windrow" for one in found)
    assert all(float(one["cost_estimate"]["hourly"]) <= 50 for one in found)
