"""Arguments of job commands."""

import json
from pathlib import Path
from types import ModuleType

import httpx2
import pytest
from typer.main import get_command

from windrow.cli import clusters, jobs
from windrow.cli.jobs import _code, script_command
from windrow.cli.main import app
from windrow.cli.request import parse_span
from windrow.client import Client
from windrow.config import Config
from windrow.errors import WindrowClientError


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90.0), ("30m", 1800.0), ("1.5h", 5400.0), ("2d", 172_800.0), ("7", 7.0)]
)
def test_a_span_is_read_with_its_unit(text: str, seconds: float) -> None:
    assert parse_span(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-1s", "0", "1w", "1 h 2"])
def test_what_is_no_span_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(WindrowClientError, match="8h"):
        parse_span(text)


def test_a_script_is_run_by_what_its_name_says(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "go.sh").write_text("")
    assert script_command(tmp_path / "train.py") == ["python", "train.py"]
    assert script_command(tmp_path / "go.sh") == ["sh", "go.sh"]
    for bad in (tmp_path / "absent.py", tmp_path):
        with pytest.raises(WindrowClientError, match="ends with"):
            script_command(bad)


@pytest.mark.parametrize(
    ("state", "code", "shown"),
    [("Succeeded", 0, 0), ("Failed", 3, 3), ("Failed", -9, 1), ("Cancelled", 0, 1), ("Lost", None, 1)],
)
def test_the_shell_sees_zero_only_of_what_succeeded(state: str, code: int | None, shown: int) -> None:
    assert _code({"state": state, "exit_code": code}) == shown


def test_who_submits_what_cannot_run_now_reads_why_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    detail = "No host of this market has 1 x GPU in tier h1000, free or not: it can run only when one joins."
    ways = [{"text": "Fits on rack-7 in tier h100/C instead of h1000, for 2.50 per hour"}]
    refusal = {"detail": detail, "reasons": [{"text": "12 hosts: not in tier h1000 (h100/C)"}], "ways": ways}
    answer = httpx2.Response(201, json={"jobs": [{"id": "job_1", "refusal": refusal}]})
    told = Client(Config("http://master", "wr_x"), transport=httpx2.MockTransport(lambda request: answer))
    monkeypatch.setattr(jobs, "client", lambda context: context.with_resource(told))

    get_command(app)(["job", "submit", "--no-files", "--tier", "h1000", "--", "true"], standalone_mode=False)

    said = capsys.readouterr()
    assert said.out == "job_1\n"
    assert "".join(said.err.split()) == "".join(
        f"1 job submitted. Follow: windrow job logs -f job_1 Waiting in the queue. {detail}"
        "- 12 hosts: not in tier h1000 (h100/C)"
        "- Fits on rack-7 in tier h100/C instead of h1000, for 2.50 per hour".split()
    )


def test_after_the_name_of_an_array_is_after_all_of_it_and_after_an_id_after_one_job(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ids, sent = [f"job_{at:032x}" for at in range(3)], list[dict[str, object]]()

    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.method == "POST":
            sent.append(json.loads(request.content))
            return httpx2.Response(201, json={"jobs": [{"id": "job_1", "refusal": None}]})
        if request.url.path.endswith("/me"):
            return httpx2.Response(200, json={"account": {"id": "account_1", "name": "lab"}, "roles": []})
        of = {"name": "train", "account_id": "account_1", "group_id": ids[0], "state": "Queued"}
        rows = [of | {"id": one, "array_index": at} for at, one in enumerate(ids)]
        one = next((row for row in rows if request.url.path.endswith(str(row["id"]))), None)
        return httpx2.Response(200, json=one or {"items": rows[::-1], "next_cursor": None})

    for name in ("train", ids[1]):
        told = Client(Config("http://master", "wr_x"), transport=httpx2.MockTransport(answer))
        monkeypatch.setattr(jobs, "client", lambda context, told=told: context.with_resource(told))
        get_command(app)(["job", "submit", "--no-files", "--after", name, "--", "true"], standalone_mode=False)
    assert [one["after"] for one in sent] == [ids[::-1], [ids[1]]]


def test_a_login_is_read_from_its_file_and_sent_with_the_limits_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bodies = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        bodies.append(json.loads(request.content))
        return httpx2.Response(201, json={"jobs": [{"id": "job_1"}]})

    told = Client(Config("http://master", "wr_x"), transport=httpx2.MockTransport(answer))
    monkeypatch.setattr(jobs, "client", lambda context: context.with_resource(told))
    (tmp_path / "login.txt").write_text("a-renter:a:b\n")
    words = ["--no-files", "--image", "reg.example/a:1", "--registry-login", str(tmp_path / "login.txt")]

    limits = ["--budget", "5", "--max-duration", "30m"]
    get_command(app)(["job", "submit", *words, *limits, "--", "true"], standalone_mode=False)

    (body,) = bodies
    assert body["registry_login"] == {"username": "a-renter", "password": "a:b"}
    assert (body["budget"], body["max_duration_seconds"]) == ("5", 1800.0)
    assert "a:b" not in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("module", "words"), [(jobs, ["job", "submit", "--no-files"]), (clusters, ["cluster", "create"])]
)
def test_a_plan_is_asked_for_without_the_login(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: ModuleType, words: list[str]
) -> None:
    asked = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append((request.url.path, json.loads(request.content)))
        return httpx2.Response(200, json={"fits": True})

    told = Client(Config("http://master", "wr_x"), transport=httpx2.MockTransport(answer))
    monkeypatch.setattr(module, "client", lambda context: context.with_resource(told))
    (tmp_path / "login.txt").write_text("a-renter:a:b\n")
    words = [*words, "--image", "reg.example/a:1", "--registry-login", str(tmp_path / "login.txt"), "--plan", "--json"]

    get_command(app)([*words, "--", "true"], standalone_mode=False)

    ((path, body),) = asked
    assert path.endswith("/plan")
    assert body["image"] == "reg.example/a:1"
    assert "registry_login" not in body
