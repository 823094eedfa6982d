"""The `windrow` command loads what it is asked for."""

import json
import subprocess
import sys

import pytest

from windrow.cli.cluster_text import print_plan
from windrow.cli.output import print_error
from windrow.errors import ApiProblem

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
        ([], True),
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
