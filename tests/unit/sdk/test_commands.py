"""The `windrow` command loads what it is asked for."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from windrow.cli import main
from windrow.cli.cluster_text import print_plan, state_text
from windrow.cli.output import print_error
from windrow.errors import ApiProblem
from windrow.words import counted, seconds_text

LOADS = """
import json, sys
from windrow.cli import main
main.load_commands(json.loads(sys.argv[1]))
print("windrow_up" in sys.modules, "up" in {one.name for one in main.app.registered_commands})
"""


@pytest.mark.parametrize(
    ("words", "is_loaded"),
    [
        (["host", "ls"], False),
        (["--url", "http://up", "run", "--", "up"], False),
        (["--url=http://up", "version"], False),
        (["up", "--once"], True),
        (["--url", "host", "up"], True),
        (["--help"], True),
        ([], False),
    ],
)
def test_the_verbs_of_other_distributions_are_loaded_only_where_none_of_ours_is_asked_for(
    words: list[str], is_loaded: bool
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADS, json.dumps(words)], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.split() == [str(is_loaded)] * 2


@pytest.mark.parametrize("answer", ["", "n\n"])
def test_a_question_without_a_yes_is_never_told_as_done(answer: str) -> None:
    words = [sys.executable, "-c", "from windrow.cli.main import main; main()"]

    done = subprocess.run(
        [*words, "--url", "http://127.0.0.1:9", "account", "suspend", "mara"],
        input=answer, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert done.returncode == 1
    assert done.stderr.endswith("Not confirmed: nothing was done.\n")


def test_a_refusal_prints_its_reasons_and_what_would_fit_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    hosts = [{"id": f"host_{number}", "name": f"h{number}"} for number in range(3)]
    busy = {"code": "busy", "text": f"997 hosts: no free GPU {'(in use, running) ' * 9}".strip(), "hosts": hosts}
    refusal = {
        "detail": "No host can run this now: no free GPU.",
        "is_possible": True,
        "reasons": [{"text": "mine: offline (its link is offline)"}, busy, {"text": "2 hosts: no GPU"}],
        "ways": [{"text": "Fits on rack-7 for 0.30 more per hour than you allow (2.00)"}],
    }
    problem = ApiProblem(409, {"code": "no_capacity", "request_id": "r1", **refusal})

    print_error(problem)

    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        "Error: No host can run this now: no free GPU.",
        "  - mine: offline (its link is offline)",
        f"  - {busy['text']}",
        "  - 2 hosts: no GPU",
        "  - Fits on rack-7 for 0.30 more per hour than you allow (2.00)",
        "  code no_capacity, request r1",
    ]
    assert str(problem).splitlines()[1:] == [f"  {line}" for line in problem.lines], "Python shows the same"


def test_a_plan_that_fits_nowhere_prints_the_same_lines(capsys: pytest.CaptureFixture[str]) -> None:
    refusal = {"detail": "rig cannot run this now: no GPU.", "reasons": [{"text": "rig: no GPU"}], "ways": []}

    print_plan({"fits": False, "refusal": refusal})

    assert capsys.readouterr().err.splitlines() == ["rig cannot run this now: no GPU.", "  - rig: no GPU"]


def test_a_reason_that_is_about_no_host_names_none(capsys: pytest.CaptureFixture[str]) -> None:
    reasons = [{"reason": "Too long."}, {"host_name": "rig", "reason": "It is full."}]

    print_error(ApiProblem(422, {"code": "invalid_input", "detail": "No.", "reasons": reasons}))

    assert capsys.readouterr().err.splitlines()[1:] == ["  - Too long.", "  - rig: It is full."]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs `windrow` with these words; returns its exit code."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # Typer puts its own there
    return lambda *words: main._ran(words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("cluster rm", "No such command 'rm'. Did you mean: windrow cluster delete? See: windrow cluster --help"),
        ("volume delete", "No such command 'delete'. Did you mean: windrow volume rm? See: windrow volume --help"),
        ("job rm", "No such command 'rm'. Did you mean: windrow job cancel? See: windrow job --help"),
        ("htop", "No such command 'htop'. Did you mean: windrow top? See: windrow --help"),
        ("ls", "No such command 'ls'. Did you mean: windrow ps? See: windrow --help"),
        ("cluster ps", "No such command 'ps'. Did you mean: windrow cluster ls? See: windrow cluster --help"),
        ("jobb", "No such command 'jobb'. Did you mean 'job'? See: windrow --help"),
        ("xyz", "No such command 'xyz'. See: windrow --help"),
    ],
)
def test_a_verb_of_another_program_is_answered_with_ours(
    ran: Callable[..., int], capsys: pytest.CaptureFixture[str], words: str, said: str
) -> None:
    assert ran(*words.split()) == 2
    assert capsys.readouterr().err == f"Error: {said}\n"


def test_each_of_our_verbs_in_that_table_is_there() -> None:
    there = set(_paths(get_command(main.app)))
    verbs = there | {path.rpartition(" ")[2] for path in there}

    assert {ours for all_of in main.WORDS_OF_OTHERS.values() for ours in all_of} <= verbs


def test_every_verb_takes_h_for_help(ran: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    for path in ("", "cluster create"):
        assert ran(*path.split(), "-h") == 0
        assert f"Usage: windrow {path}".rstrip() in capsys.readouterr().out
    app: Any = get_command(main.app)
    for path in _paths(app):
        context: Any = app.make_context("windrow", [], resilient_parsing=True)
        for name in path.split():
            context = context.command.commands[name].make_context(name, [], context, resilient_parsing=True)
        assert "-h" in context.help_option_names


def _paths(group: Any, before: str = "") -> Iterator[str]:
    for name, command in getattr(group, "commands", {}).items():
        yield before + name
        yield from _paths(command, f"{before}{name} ")


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (
            {
                "detail": "The request is not valid: hosts, max_price_per_hour.",
                "reasons": [
                    {"field": "max_price_per_hour", "reason": "not an amount of money: 'x'"},
                    {"field": "volumes.0", "reason": "Wrong form"},
                    {"field": "price_per_hour", "reason": "not an amount of money: 'x'"},
                ],
            },
            [
                "Error: The request is not valid: hosts, --max-price.",
                "  - --max-price: not an amount of money: 'x'",
                "  - --volume: Wrong form",
                "  - PRICE_PER_HOUR: not an amount of money: 'x'",
            ],
        ),
        ({"detail": "hosts must be 1."}, ["Error: hosts must be 1."]),
        (
            {"detail": "host_id must be left out with more than one host."},
            ["Error: --host must be left out with more than one host."],
        ),
        ({"detail": "The image env_x of hosts is gone."}, ["Error: The image env_x of hosts is gone."]),
    ],
)
def test_a_field_that_the_master_refuses_is_named_as_it_is_written(
    capsys: pytest.CaptureFixture[str], document: dict[str, Any], said: list[str]
) -> None:
    print_error(ApiProblem(422, document))

    assert capsys.readouterr().err.splitlines() == said


def test_counts_and_seconds_are_said_as_people_do() -> None:
    assert [counted(count, "file") for count in (0, 1, 2)] == ["0 files", "1 file", "2 files"]
    spans: list[float | str] = ["1.620127382", "3.0", "0", "59.96", "3600.4", 0.0123]
    assert list(map(seconds_text, spans)) == ["1.62 s", "3 s", "0 s", "60 s", "3600 s", "0.0123 s"]


def test_the_state_of_work_is_one_sentence() -> None:
    assert state_text("train", "Failed", "its command ended with 3") == "train is Failed: its command ended with 3."
    assert state_text("train", "Failed", "The host is lost.") == "train is Failed: The host is lost."
    assert state_text("train", "Running", None) == "train is Running."


def test_no_message_has_a_plural_in_brackets() -> None:
    root = Path(__file__).parents[3]
    sources = [*(root / "sdk/windrow").rglob("*.py"), *(root / "master/windrow_master").rglob("*.py")]
    odd = [f"{path}: {found[0]}" for path in sources for found in re.finditer(r"\} \w+\(s\)", path.read_text())]

    assert [one for one in odd if "remote/cluster.py" not in one] == []
