"""`windrow` alone, `status`, `ps` and `top`: what runs, what is left, what needs somebody, and what is used now."""

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import httpx2
import pytest
from rich.cells import cell_len
from rich.console import Console
from typer.main import get_command

from tests.support.filled import filled
from windrow.cli import front_text as text
from windrow.cli import hosts, status, top, top_text
from windrow.cli.main import app
from windrow.client import Client
from windrow.config import Config
from windrow.errors import NoMaster, NotFound

Json = dict[str, Any]
NOW = datetime(2027, 1, 15, 8, tzinfo=UTC)


def at(**ago: float) -> str:
    return (NOW - timedelta(**ago)).isoformat()


def a_cluster(name: str, phase: str = "Running", **more: Any) -> Json:
    return {
        "id": f"cluster_{name}", "name": name, "phase": phase, "kind": "box", "tier": "h100/C", "account_id": "mine",
        "price_per_hour": "2.50", "cost_so_far": "1.25", "created_at": at(hours=1), "started_at": at(minutes=30),
        "workloads": [{"host_name": "rack-7", "rank": 0, "phase": "running"}],
        "request": {"ssh_keys": ["k"], "notebook": True, "env": {}},
    } | more  # fmt: skip


def a_job(name: str, state: str = "Queued", **more: Any) -> Json:
    return {
        "id": f"job_{name}", "name": name, "state": state, "account_id": "mine", "reason": None, "attempts": [],
        "cost_so_far": "0", "created_at": at(hours=2), "request": {"array_size": None, "env": {}}, "array_index": 0,
    } | more  # fmt: skip


LAB = a_cluster("lab")
USED: Json = filled("MemberUsageOut", is_full=True) | {"host_name": "rack-7", "rank": 0}
ME: Json = {
    "account": {"id": "mine", "name": "default"}, "user": {"name": "Ada"}, "roles": ["renter"],
    "balance": {"amount": "73.15", "currency": "TEST"},
}  # fmt: skip
RUNS: Json = {
    "/me": ME, "/clusters": [LAB], "/clusters/cluster_lab": LAB, "/clusters/cluster_lab/usage": {"members": [USED]},
}  # fmt: skip
HOST: Json = filled("HostOut", is_full=True) | {"id": "host_1", "name": "rack-7", "simulated": False, "gpus": []}


@pytest.fixture
def windrow(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs `windrow` against a Master with these answers by path; returns what it printed."""

    def run(answers: Json, *words: str) -> str:
        def answer(request: httpx2.Request) -> httpx2.Response:
            path = request.url.path.removeprefix("/api/v1")
            found = answers.get(path, [])
            is_list = isinstance(found, list)
            return httpx2.Response(200, json={"items": found, "next_cursor": None} if is_list else found)

        told = Client(Config("http://master", "wr_x"), transport=httpx2.MockTransport(answer))
        for module in (status, top, hosts):
            monkeypatch.setattr(module, "client", lambda context: told)
        get_command(app)(list(words), standalone_mode=False)
        return capsys.readouterr().out

    return run


# --- rules ------------------------------------------------------------------------------------------------------------


def test_a_job_stands_for_its_cluster() -> None:
    train = a_job("train", "Running", attempts=[{"cluster_id": "cluster_a", "ended_at": None}])
    found = text.work_of([a_cluster("a", created_at=at(minutes=5)), LAB], [train])

    assert [(one["name"], one["kind"], one["hosts"]) for one in found] == [
        ("lab", "machine", ["rack-7"]),
        ("train", "job", ["rack-7"]),
    ]
    assert text.burn(found) == Decimal("5.00"), "both are rented"


@pytest.mark.parametrize(
    ("balance", "per_hour", "said"),
    [("73.15", "2.50", "29 h"), ("1", "0.01", "4 days"), ("1", "4", "15 min"), ("-3", "4", "0 s"), ("5", "0", None)],
)
def test_a_balance_lasts_as_long_as_it_pays(balance: str, per_hour: str, said: str | None) -> None:
    left = text.lasts(balance, Decimal(per_hour))
    assert (left and text.span_text(left)) == said or (said == "0 s" and left == timedelta(0))


def test_work_that_needs_somebody_is_named_with_what_to_run() -> None:
    work = text.work_of(
        [
            a_cluster("lost", problem="rack-7 does not answer"),
            a_cluster("late", ends_at=at(minutes=-12)),
            a_cluster("fine", ends_at=at(hours=-5)),
        ],
        [
            a_job("broken", "Failed", ended_at=at(hours=3), reason="exit code 1"),
            a_job("old", "Failed", ended_at=at(days=3)),
        ],
    )
    assert text.matters_of_work(work, NOW) == [
        text.Matter("lost", "rack-7 does not answer", "windrow status lost"),
        text.Matter("late", "ends in 12 min", "windrow status late"),
        text.Matter("broken", "failed 3 h ago: exit code 1", "windrow logs broken"),
    ]
    assert text.matters_of_money(timedelta(minutes=50))[0].about == "balance"
    assert text.matters_of_money(timedelta(hours=5)) == text.matters_of_money(None) == []


def test_a_host_in_trouble_is_named_with_its_remedy() -> None:
    host = {"name": "rack-7", "headline": "degraded", "headline_reason": "1 GPU faulty.", "headline_remedy": "Reboot."}
    (found,) = text.matters_of_hosts([host])
    assert found == text.Matter("rack-7", "degraded: 1 GPU faulty. Reboot.", "windrow host show rack-7")


# --- the command ------------------------------------------------------------------------------------------------------


def test_alone_it_says_what_runs_what_is_left_and_what_to_do_next(windrow: Callable[..., str]) -> None:
    stranger = a_cluster("other", account_id="theirs")
    shown = windrow({"/me": ME, "/clusters": [LAB, stranger], "/jobs": [a_job("train")]})

    assert "Ada in default at http://master" in shown
    assert "Balance 73.15 TEST, 2.50 per hour, lasts 29 h" in shown
    assert "lab" in shown and "train" in shown and "other" not in shown
    assert "windrow ssh lab" in shown and "windrow open lab" in shown and "None" not in shown


def test_who_rents_nothing_is_shown_how_to_begin(windrow: Callable[..., str]) -> None:
    shown = windrow({"/me": ME, "/clusters/plan": {"fits": True}})
    assert "Nothing runs." in shown and "nothing is spent" in shown and "windrow gpus" in shown


def test_a_provider_sees_their_own_hosts_that_need_them(windrow: Callable[..., str]) -> None:
    mine = HOST | {"owner_account": "mine", "headline": "degraded", "headline_reason": "a fault"}
    theirs = mine | {"name": "theirs", "owner_account": "theirs"}
    shown = windrow({"/me": ME | {"roles": ["provider"]}, "/hosts": [mine, theirs]})
    assert "rack-7: degraded: a fault" in shown and "theirs" not in shown


def test_who_is_not_signed_in_is_told_how(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def nobody(context: Any) -> Client:
        raise NoMaster

    monkeypatch.setattr(status, "client", nobody)
    get_command(app)([], standalone_mode=False)
    assert "windrow login" in capsys.readouterr().out


def test_the_overview_is_there_for_programs(windrow: Callable[..., str]) -> None:
    found = json.loads(windrow({"/me": ME, "/clusters": [LAB]}, "status", "--json"))
    assert found["money"] == {"amount": "73.15", "currency": "TEST", "per_hour": "2.50", "lasts_s": 105336}
    assert [one["name"] for one in found["work"]] == ["lab"] and found["attention"] == []


def test_one_machine_is_told_in_short(windrow: Callable[..., str]) -> None:
    shown = " ".join(windrow(RUNS, "status", "lab").split())
    assert "Machine lab State Running Hosts rack-7" in shown and "GPU 87%" in shown and "windrow ssh lab" in shown


def test_a_host_is_told_and_a_name_that_is_none_is_not_found(windrow: Callable[..., str]) -> None:
    answers = {"/me": ME, "/hosts": [HOST], "/hosts/host_1": HOST}
    assert json.loads(windrow(answers, "status", "rack-7", "--json"))["name"] == "rack-7"
    with pytest.raises(NotFound, match="windrow ps --all"):
        windrow(answers, "status", "nosuch")


def test_ps_lists_what_runs_or_waits(windrow: Callable[..., str]) -> None:
    answers = {"/me": ME, "/clusters": [LAB, a_cluster("old", "Deleted")], "/jobs": [a_job("train")]}
    assert [line.split("\t")[1] for line in windrow(answers, "ps").splitlines()] == ["NAME", "lab", "train"]
    assert len(json.loads(windrow(answers, "ps", "--all", "--json"))) == 3


@pytest.mark.parametrize("words", [("top", "lab", "--once"), ("top",)])
def test_top_shows_what_a_machine_uses_once_in_a_pipe(windrow: Callable[..., str], words: tuple[str, ...]) -> None:
    shown = windrow(RUNS, *words)
    assert "lab, Running, h100/C, 2.50 per hour, 1.25 so far" in shown
    assert "█████████░  87%" in shown and "rack-7" in shown


def test_top_shows_the_processors_and_gpus_of_a_host(windrow: Callable[..., str]) -> None:
    card = filled("GpuOut", is_full=True) | {"index": 5, "name": "NVIDIA H100 80GB HBM3", "live": None}
    answers = {"/me": ME, "/hosts": [HOST], "/hosts/host_1": HOST | {"gpus": [card]}}
    shown = windrow(answers, "top", "rack-7", "--once")
    assert "rack-7, maintenance" in shown and "5 H100 80GB HBM3" in shown and "None" not in shown


@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_top_fits_the_screen_and_keeps_its_figures(width: int) -> None:
    live = {"utilization_ratio": 0.93, "memory_used_bytes": 70 * 2**30, "temperature_celsius": 88, "power_watts": 640.5}
    card = filled("GpuOut", is_full=True) | {"index": 5, "memory_bytes": 80 * 2**30, "live": live}
    drawn = io.StringIO()
    console = Console(file=drawn, width=width)
    console.print(top_text.host_table(HOST | {"gpus": [card]}, width))
    console.print(top_text.cluster_table([USED], width))

    assert all(cell_len(line) <= width for line in drawn.getvalue().splitlines())
    assert "█████████░  93%" in drawn.getvalue() and "88 °C" in drawn.getvalue() and "640 W" in drawn.getvalue()
    assert "70.0 of 80 GiB" in drawn.getvalue()


def test_top_without_anything_says_so(windrow: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    assert windrow({"/me": ME}, "top") == ""


@pytest.mark.parametrize(
    ("fitting", "wanted"),
    [
        ({"gpus": 1, "gpu_memory_bytes": 24 * 2**30}, "--gpu 24GB "),
        ({"gpus": 1}, "--gpu 1 "),
        ({}, ""),
        ({"runtime": "simulated"}, "--runtime simulated "),
        (None, "--gpu 24GB "),
    ],
)
def test_the_suggested_run_is_one_that_this_market_has_a_place_for(fitting: Json | None, wanted: str) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        asked = {k: v for k, v in json.loads(request.content).items() if k not in ("kind", "argv")}
        return httpx2.Response(200, json={"fits": asked == fitting})

    api = Client(Config("http://master", "wr_x"), transport=httpx2.MockTransport(answer))
    assert status._wanted(api, ME) == wanted
    commands = dict(text.next_commands([], ["renter"], wanted))
    assert f"windrow run {wanted}-- python train.py" in commands
    assert f"windrow cluster create --name lab {wanted}".rstrip() in commands
