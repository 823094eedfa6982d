"""`windrow explain`, the page of errors, and the examples that every `--help` ends with."""

import json
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from tests.architecture import cli_pages, condition_pages, error_pages
from tests.support import documented
from windrow.cli import main
from windrow.cli.examples import LINES, examples_of
from windrow.errors import NotFound
from windrow.explained import PARAGRAPHS
from windrow_proto.conditions import ConditionCode
from windrow_proto.errors import table
from windrow_proto.xids import XIDS


def windrow(*words: str) -> None:
    get_command(main.app)(list(words), standalone_mode=False)


def test_every_code_of_the_master_has_a_paragraph_and_no_other() -> None:
    assert set(PARAGRAPHS) == set(table())
    assert error_pages.PAGE.read_text(encoding="utf-8") == error_pages.page()


def test_the_page_of_commands_is_that_of_the_programs() -> None:
    assert cli_pages.PAGE.read_text(encoding="utf-8") == cli_pages.page(), "run: make conditions"


@pytest.mark.parametrize("code", PARAGRAPHS)
def test_a_paragraph_says_what_happened_and_what_to_do(code: str) -> None:
    assert 80 < len(PARAGRAPHS[code]) < 500 and PARAGRAPHS[code].count(". ") >= 1


def test_a_code_is_explained_without_a_master(capsys: pytest.CaptureFixture[str]) -> None:
    windrow("explain", "no_capacity")
    assert " ".join(capsys.readouterr().out.split()) == PARAGRAPHS["no_capacity"]

    windrow("explain", "no_capacity", "--json")
    assert json.loads(capsys.readouterr().out)["text"] == PARAGRAPHS["no_capacity"]

    windrow("explain")
    assert "no_capacity" in capsys.readouterr().out


def test_a_condition_is_explained_by_the_words_of_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert condition_pages.words() == (condition_pages.ROOT / condition_pages.WORDS).read_text(encoding="utf-8")
    windrow("explain", "gpu.lost:GPU-1", "--json")
    lost = ConditionCode.GPU_LOST
    assert json.loads(capsys.readouterr().out) == {"code": lost, "text": f"{lost.words} {lost.remedy}"}


@pytest.mark.parametrize("asked", ["xid-79", "XID-79"])
def test_an_xid_is_explained_by_the_words_of_its_table(capsys: pytest.CaptureFixture[str], asked: str) -> None:
    windrow("explain", asked, "--json")
    said = json.loads(capsys.readouterr().out)
    assert said["code"] == "xid-79"
    assert said["text"].startswith(f"{XIDS[79].name}. Mostly caused by the hardware. {XIDS[79].remedy}")


def test_a_code_that_is_none_names_the_nearest() -> None:
    with pytest.raises(NotFound, match="Did you mean no_capacity"):
        windrow("explain", "no_capcity")


def _paths(command: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    for name, inner in getattr(command, "commands", {}).items():
        yield f"{path} {name}".strip(), inner
        yield from _paths(inner, f"{path} {name}".strip())


def test_the_help_of_every_verb_ends_with_an_example() -> None:
    main.load_commands(["up"])
    bare = [path for path, command in _paths(get_command(main.app)) if "  windrow " not in (command.epilog or "")]
    assert bare == []


@pytest.mark.parametrize("line", LINES)
def test_every_example_is_a_command_line_that_its_verb_takes(line: str) -> None:
    assert documented.refusal(shlex.split(line)) == ""


def test_every_example_belongs_to_a_verb() -> None:
    main.load_commands(["up"])
    named = list(_paths(get_command(main.app)))
    verbs = [path for path, one in named if not hasattr(one, "commands") or one.invoke_without_command]
    assert set(LINES) == {line for verb in verbs for line in examples_of(verb)}


def test_verbs_are_grouped_by_what_they_are_for(capsys: pytest.CaptureFixture[str]) -> None:
    windrow("--help")
    shown = capsys.readouterr().out
    panels = [shown.index(f"─ {name} ") for name in ("Rent", "Provide", "Operate", "Account")]
    assert panels == sorted(panels)
    assert all("─ Commands ─" not in shown for _ in panels)


def test_a_machine_is_another_name_of_a_cluster() -> None:
    commands = get_command(main.app).commands  # type: ignore[attr-defined]  # of a group
    assert commands["machine"].commands.keys() == commands["cluster"].commands.keys()
    assert "windrow machine create" in commands["machine"].epilog
