"""The shop, opening, completion of names, confirmations, and how soon a verb starts."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from typer.main import get_command

from tests.support.filled import filled
from windrow import config
from windrow.cli import clusters, completing, jobs, opening, quoting, shop
from windrow.cli.cluster_text import Progress, place_text
from windrow.cli.context import agreed
from windrow.cli.main import app
from windrow.client import Client
from windrow.config import Config, confirm_above
from windrow.errors import InvalidInput, MasterUnreachable, WindrowClientError

Json = dict[str, Any]
GIB = 2**30


def a_class(tier: str, price: str, free: int, gib: int) -> Json:
    found = filled("MachineClassOut", is_full=True) | {"tier": tier, "price_per_hour": price, "free": free}
    return found | {"memory_bytes": gib * GIB, "simulated": False, "total": 8}


CLASSES = [
    a_class("h100/A", "2.50", 3, 80),
    a_class("rtx-4090/B", "0.40", 2, 24),
    a_class("a100/C", "1.10", 0, 40),
    a_class("h100:1g.10gb/A", "0.36", 1, 10),
]
BOX: Json = {
    "id": "cluster_1", "name": "lab", "account_id": "mine", "phase": "Running", "version": 1, "urls": {}, "steps": [],
    "request": {"notebook": True}, "workloads": [], "forward_host": "lab.localhost",
}  # fmt: skip


@pytest.fixture
def asked() -> list[httpx2.Request]:
    """The requests that the Master of `windrow` got."""
    return []


@pytest.fixture
def windrow(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], asked: list[httpx2.Request]
) -> Callable[..., str]:
    """Runs `windrow` against a Master with these answers by path; returns what it printed."""

    def run(answers: Json, *words: str) -> str:
        def answer(request: httpx2.Request) -> httpx2.Response:
            asked.append(request)
            found = answers.get(request.url.path.removeprefix("/api/v1"), [])
            is_list = isinstance(found, list)
            return httpx2.Response(200, json={"items": found, "next_cursor": None} if is_list else found)

        told = Client(Config("http://master", "wr_x"), transport=httpx2.MockTransport(answer))
        for module in (shop, opening, clusters, jobs):
            monkeypatch.setattr(module, "client", lambda context: told)
        get_command(app)(list(words), standalone_mode=False)
        return capsys.readouterr().out

    return run


def test_open_without_a_name_is_the_console_with_the_key_of_the_command(windrow: Callable[..., str]) -> None:
    assert windrow({}, "open", "--no-browser") == "http://master/#token=wr_x\n"
    assert json.loads(windrow({}, "open", "--no-browser", "--json")) == {"url": "http://master/#token=wr_x"}


# --- gpus -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "models"),
    [
        ((), ["H100 1g.10gb", "RTX-4090", "H100", "A100"]),
        (("--sort", "vram"), ["H100", "RTX-4090", "H100 1g.10gb", "A100"]),
        (("--sort", "value"), ["RTX-4090", "H100", "H100 1g.10gb", "A100"]),
    ],
)
def test_gpus_are_sorted_with_those_that_are_free_first(
    windrow: Callable[..., str], words: tuple[str, ...], models: list[str]
) -> None:
    rows = [line.split("\t") for line in windrow({"/machine-classes": CLASSES}, "gpus", *words).splitlines()]
    assert [row[0] for row in rows[1:]] == models


def test_gpus_are_narrowed_by_the_master_and_the_total_is_for_so_many_gpus_and_hours(
    windrow: Callable[..., str], asked: list[httpx2.Request]
) -> None:
    words = "--model h100 --vram 24GB --gpus 2 --max-price 0.5 --reliability 99 --up 0.5 --driver 550 --verified --free"
    words += " --region north --hours 8"
    told = {"/machine-classes": CLASSES}
    header, *rows = [line.split("\t") for line in windrow(told, "gpus", *words.split()).splitlines()]
    assert rows[0][header.index("TOTAL")] == "5.7600"
    assert dict(asked[-1].url.params) == {
        "limit": asked[-1].url.params["limit"],
        "unit": "gpu",
        "model": "h100",
        "min_memory_bytes": str(24 * 10**9),
        "min_gpus": "2",
        "max_price": "0.5",
        "region": "north",
        "min_reliability": "0.99",
        "min_up_bps": "500000",
        "driver": "550",
        "verified": "true",
        "free": "true",
    }


def test_a_price_that_is_none_is_refused(windrow: Callable[..., str]) -> None:
    with pytest.raises(InvalidInput, match=r"0\.50"):
        windrow({}, "gpus", "--max-price", "cheap")


# --- open and logs ----------------------------------------------------------------------------------------------------


def answers(cluster: Json, **more: Any) -> Json:
    me = {"account": {"id": "mine", "name": "default"}, "roles": ["renter"]}
    return {"/me": me, "/clusters": [cluster], f"/clusters/{cluster['id']}": cluster} | more


def test_the_address_of_a_service_is_printed(windrow: Callable[..., str]) -> None:
    web = BOX | {"urls": {"8080": "https://w.example/", "9090": "https://x.example/"}}
    assert windrow(answers(web), "open", "lab") == "https://w.example/\n"
    assert json.loads(windrow(answers(web), "open", "lab", "9090", "--json")) == {"url": "https://x.example/"}


def test_jupyter_is_forwarded_and_another_port_is_too(
    windrow: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[tuple[Any, ...]] = []
    monkeypatch.setattr(opening, "hold", lambda api, cluster, *more, **_: held.append(more[:3]))
    box = {"ssh_port": None, "notebook_port": 40001, "notebook_token": "secret"}
    windrow(answers(BOX, **{"/clusters/cluster_1/box": box}), "open", "lab")
    windrow(answers(BOX, **{"/clusters/cluster_1/box": box}), "open", "lab", "6006")
    assert [(port, token, local.port) for port, token, local in held] == [(40001, "secret", 8888), (6006, None, 6006)]


def test_what_cannot_be_opened_says_what_would_help(windrow: Callable[..., str]) -> None:
    with pytest.raises(InvalidInput, match="windrow open lab 8000"):
        windrow(answers(BOX | {"request": {}}), "open", "lab")
    with pytest.raises(WindrowClientError, match="windrow cluster start lab"):
        windrow(answers(BOX | {"phase": "Stopped"}), "open", "lab")


@pytest.mark.parametrize(("words", "called"), [(("logs", "lab"), "cluster_1"), (("logs", "-f", "train"), "job_1")])
def test_a_log_is_found_by_the_name_of_whatever_has_one(
    windrow: Callable[..., str], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], called: str
) -> None:
    asked: list[str] = []
    for name in ("cluster_logs", "job_logs"):
        monkeypatch.setattr(opening, name, lambda context, found, *_: asked.append(found))
    windrow(answers(BOX, **{"/jobs": [{"id": "job_1", "name": "train", "account_id": "mine"}]}), *words)
    assert asked == [called]


# --- completion -------------------------------------------------------------------------------------------------------


def completed(monkeypatch: pytest.MonkeyPatch, line: str, answer: Callable[[Any], httpx2.Response]) -> list[str]:
    """The words that a shell is given for the last one of this line."""
    monkeypatch.setattr(config, "find", lambda url=None: Config("http://master", "wr_x"))
    transport = httpx2.MockTransport(answer)
    monkeypatch.setattr("windrow.client.Client", lambda found: Client(found, transport=transport))
    command, context, words = get_command(app), None, line.split(" ")
    for word in words[:-1]:
        context = command.make_context(word, [], parent=context, resilient_parsing=True)
        command = command.commands.get(word, command) if hasattr(command, "commands") else command
    context = command.make_context("x", [], parent=context, resilient_parsing=True)
    return [one.value for one in command.params[0].shell_complete(context, words[-1])]


NAMES = [{"name": "lab"}, {"name": "llama"}, {"name": "web\n"}, {"name": None}]


@pytest.mark.parametrize("line", ["ssh l", "cluster show l", "machine delete l", "host show l", "logs l"])
def test_names_are_completed(monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, json={"items": NAMES, "next_cursor": None})

    assert completed(monkeypatch, line, answer) == ["lab", "llama"]


def test_nothing_is_completed_where_the_master_is_away_or_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(request: httpx2.Request) -> httpx2.Response:
        raise MasterUnreachable("gone")

    def slow(request: httpx2.Request) -> httpx2.Response:
        time.sleep(1)
        return httpx2.Response(500)

    monkeypatch.setattr(completing, "PATIENCE_S", 0.1)
    assert completed(monkeypatch, "ssh l", away) == completed(monkeypatch, "ssh l", slow) == []


# --- confirmations ----------------------------------------------------------------------------------------------------


class Terminal:
    """Standard input of a person."""

    def isatty(self) -> bool:
        return True


def test_without_a_terminal_a_deletion_needs_yes() -> None:
    agreed(True, "Delete lab?")
    with pytest.raises(InvalidInput, match=r"Delete lab.*--yes"):
        agreed(False, "Delete lab?")


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("WINDROW_CONFIRM_ABOVE", raising=False)
    (tmp_path / "windrow").mkdir()
    return tmp_path / "windrow" / "config.json"


def test_the_limit_is_the_environments_then_the_files(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert confirm_above() is None
    home.write_text(json.dumps({"confirm_above": "5"}))
    assert str(confirm_above()) == "5"
    monkeypatch.setenv("WINDROW_CONFIRM_ABOVE", "7.50")
    assert str(confirm_above()) == "7.50"
    monkeypatch.setenv("WINDROW_CONFIRM_ABOVE", "much")
    with pytest.raises(InvalidInput, match="WINDROW_CONFIRM_ABOVE"):
        confirm_above()


def test_a_login_keeps_the_limit(home: Path) -> None:
    home.write_text(json.dumps({"confirm_above": "5"}))
    config.save(Config("http://localhost:1", "wr_x"))
    assert str(confirm_above()) == "5"


PLAN: Json = {
    "fits": True,
    "price_per_hour": "18.20",
    "hold": "4.55",
    "balance": "100",
    "placement": [],
    "refusal": None,
}


def test_a_price_above_the_limit_is_refused_where_nobody_can_be_asked(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quoting.agree_to(PLAN, False)  # nobody has set a limit: a default stops no script
    monkeypatch.setenv("WINDROW_CONFIRM_ABOVE", "10")
    with pytest.raises(InvalidInput, match=r"18\.20 per hour, which is above 10.*--yes"):
        quoting.agree_to(PLAN, False)
    quoting.agree_to(PLAN, True)
    quoting.agree_to(PLAN | {"price_per_hour": "10"}, False)
    with pytest.raises(InvalidInput, match=r"60 per hour for 6 at once \(10 each\), which is above 10"):
        quoting.agree_to(PLAN | {"price_per_hour": "10"}, False, 6)


def test_a_person_is_asked_above_the_usual_limit(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr("windrow.cli.context.confirm", asked.append)
    monkeypatch.setattr(sys, "stdin", Terminal())
    quoting.quoted(lambda: PLAN, False, is_silent=True)
    quoting.quoted(lambda: PLAN | {"price_per_hour": "2"}, False, is_silent=True)
    assert asked == ["Rent for 18.20 per hour, which is above 10?"]


def test_the_limit_holds_for_machines_and_jobs(
    home: Path, windrow: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDROW_CONFIRM_ABOVE", "10")
    plans = answers(BOX, **{"/clusters/plan": PLAN, "/jobs/plan": PLAN})
    for words in (("cluster", "create", "--", "true"), ("job", "submit", "--no-files", "--", "true")):
        with pytest.raises(InvalidInput, match="--yes"):
            windrow(plans, *words)


# --- words ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tier", "said"), [("h100/C", "vm (H100, grade C), 2 GPUs"), ("cpu/C", "vm (CPU, grade C)"), (None, "vm")]
)
def test_a_place_is_said_in_words(tier: str | None, said: str) -> None:
    assert place_text({"host_name": "vm", "tier": tier, "slots": ["a", "b"]}) == said


def test_steps_are_lines_where_no_terminal_is(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress() as progress:
        progress({"steps": [{"name": "waiting_files", "member": None, "detail": None}]})
        progress({"steps": [{"name": "waiting_files", "member": None, "detail": None}, {"name": "running"}]})
    with progress:
        progress({"steps": [{"name": "running"}]})
    assert capsys.readouterr().err.splitlines() == ["  waiting files", "  running"], "each once"


def test_a_verb_loads_no_other() -> None:
    code = "import sys; from windrow.cli.main import main\ntry: main()\nexcept SystemExit: pass\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, "version"], capture_output=True, text=True, timeout=60, check=True
    )
    loaded = set(done.stdout.split())
    assert not loaded & {"httpx2", "cryptography", "windrow.cli.clusters", "windrow.cli.hosts", "windrow_up"}
