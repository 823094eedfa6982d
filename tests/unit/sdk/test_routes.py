"""`windrow route`: what it sends, and how it shows the answer."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from typer.testing import CliRunner, Result

from windrow.cli.flags import as_flags
from windrow.cli.main import app
from windrow.client import Client
from windrow.config import Config

Json = dict[str, Any]
COST = {"hourly": "1.00", "total": "3.108", "low": "2.65", "high": "3.9", "confidence": "medium"}
ONE: Json = {
    "backend": "windrow/h100/A", "provider": "windrow", "offer": "h100/A", "gpu": "h100", "gpu_count": 4,
    "usable": True, "score": 71.5, "cost_estimate": COST, "pros": ["starts at once"], "cons": ["is dear"],
    "availability": {"status": "available", "wait_seconds": {"p50": 300.0, "p90": 600.0}},
}  # fmt: skip
REFUSED = [{"backend": "aws/spot", "provider": "aws", "offer": "p5", "reason": "The price is old."}]
ANSWER: Json = {"chosen": "windrow/h100/A", "recommendations": [ONE], "refused": REFUSED, "analysis": None}


def run(monkeypatch: pytest.MonkeyPatch, *words: str, answer: Json = ANSWER) -> tuple[Result, list[Json]]:
    """What the command printed, and what it sent."""
    sent: list[Json] = []

    def reply(request: httpx2.Request) -> httpx2.Response:
        sent.append(json.loads(request.content))
        return httpx2.Response(200, json=answer)

    transport = httpx2.MockTransport(reply)
    monkeypatch.setattr("windrow.cli.routes.client", lambda context: Client(Config("http://master", "wt_x"), transport))
    return CliRunner().invoke(app, ["route", *words]), sent


def test_options_and_a_program_become_one_request(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text("import torch")
    words = "--gpus 2 --gpu h100 --hours 3 --interruptible --max-cost 10 --optimize cost --country DE --country FR"
    done, sent = run(monkeypatch, str(program), *words.split())
    assert done.exit_code == 0, done.output
    assert sent == [
        {
            "requirements": {
                "gpu_count": 2,
                "gpu": "h100",
                "duration_hours_estimated": 3.0,
                "interruptible": True,
                "max_cost_usd": 10.0,
                "countries": ["DE", "FR"],
            },
            "preferences": {"optimize_for": "cost"},
            "code": "import torch",
        }
    ]


def test_an_intent_is_sent_as_it_is_and_options_add_to_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    intent = {"task_name": "x", "compute_preference": "cloud", "constraints": {"required_gpu_count": 8}}
    (tmp_path / "task.json").write_text(json.dumps(intent))
    _, sent = run(monkeypatch, "--intent", str(tmp_path / "task.json"))
    _, more = run(monkeypatch, "--intent", str(tmp_path / "task.json"), "--hours", "2")
    assert (sent, more) == ([intent], [intent | {"requirements": {"duration_hours_estimated": 2.0}}])


def test_the_answer_is_a_table_with_the_best_ones_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    done, _ = run(monkeypatch, "--why-not")
    for text in (
        "windrow/h100/A",
        "3.11 (2.65 to 3.90)",
        "5 min",
        "+ starts at once",
        "- is dear",
        "The price is old.",
    ):
        assert text in done.output
    done, _ = run(monkeypatch)
    assert "Not shown, 1 place that cannot do it: --why-not says why." in done.output


def test_where_no_place_can_do_it_the_reasons_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    done, _ = run(monkeypatch, answer=ANSWER | {"chosen": None, "recommendations": []})
    assert "No place can do this work." in done.output and "The price is old." in done.output


def test_what_was_read_is_told_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = [{"name": "batch_size", "value": "8", "line": 3, "confidence": "low"}]
    done, _ = run(monkeypatch, answer=ANSWER | {"analysis": {"facts": facts, "reason": None, "gpu_memory_gb": 119.2}})
    assert "line 3: batch size 8 (low)" in done.output and "119 GiB of GPU memory" in done.output
    unread: Json = {"facts": [], "reason": "It is no Python.", "gpu_memory_gb": None}
    done, _ = run(monkeypatch, answer=ANSWER | {"analysis": unread})
    assert "It is no Python." in done.output


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("requirements.duration_hours_estimated: Input is 0.", "--hours: Input is 0."),
        ("requirements.gpu: There is no GPU 'x'.", "--gpu: There is no GPU 'x'."),
        ("The request is not valid: requirements.max_cost_usd.", "The request is not valid: --max-cost."),
    ],
)
def test_a_refusal_names_the_option_that_was_written(said: str, shown: str) -> None:
    assert as_flags(said) == shown


@pytest.mark.parametrize("content", ["[", "[1]", '"x"', "[" * 100_000])
def test_a_file_that_is_no_intent_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str) -> None:
    (tmp_path / "task.json").write_text(content)
    done, sent = run(monkeypatch, "--intent", str(tmp_path / "task.json"))
    assert done.exit_code != 0 and sent == [] and "task.json is no" in str(done.exception)


def test_a_program_that_is_too_large_is_not_sent_and_the_mark_of_an_editor_neither(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "large.py").write_text("#" * ((1 << 20) + 1))
    (tmp_path / "marked.py").write_text("import torch\n", encoding="utf-8-sig")
    done, sent = run(monkeypatch, str(tmp_path / "large.py"))
    assert "more than 1 MiB" in done.output and "code" not in sent[0]
    _, sent = run(monkeypatch, str(tmp_path / "marked.py"))
    assert sent[0]["code"] == "import torch\n"


def test_a_file_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, said in (("none.py", "No such file"), (".", "directory")):
        done, sent = run(monkeypatch, str(tmp_path / name))
        assert sent == [] and said in str(done.exception)
