"""The table of conditions: its rows are whole, its codes never change, and what is written from it is current."""

import json
import re

import pytest

from tests.architecture.condition_pages import ROOT, written
from windrow_proto.conditions import PAGE, ConditionCode, Effect, Scope, Severity, find, split


@pytest.mark.parametrize("code", ConditionCode)
def test_a_row_is_named_after_its_code_and_says_what_is_so_and_what_to_do_in_sentences(code: ConditionCode) -> None:
    assert code.name == code.upper().replace(".", "_")
    assert code.words.endswith(".") and code.remedy.endswith(".")
    assert "," not in code and ":" not in code


@pytest.mark.parametrize("code", ConditionCode)
def test_only_what_explains_asks_nothing_of_anybody(code: ConditionCode) -> None:
    assert code.effect is not Effect.FAULT or code.scope is Scope.GPU, "a fault is of a GPU: its slot is verified again"
    assert code.severity is not Severity.INFO or code.effect in (Effect.NONE, Effect.WITHHOLD)


def test_a_code_is_found_with_and_without_what_it_is_about() -> None:
    assert find("gpu.lost") is find("gpu.lost:GPU-1") is ConditionCode.GPU_LOST
    assert find("gpu.lost_and_found") is None and find("") is None
    assert split("gpu.lost:GPU-1") == ("gpu.lost", "GPU-1")
    assert split("gpu.lost") == ("gpu.lost", "")


def test_a_code_goes_over_the_wire_and_into_json_as_its_text() -> None:
    assert (str(ConditionCode.GPU_LOST), f"{ConditionCode.GPU_LOST}") == ("gpu.lost", "gpu.lost")
    assert json.dumps([ConditionCode.GPU_LOST]) == '["gpu.lost"]'


@pytest.mark.parametrize(("path", "text"), written(), ids=lambda value: getattr(value, "name", ""))
def test_what_is_written_from_the_table_is_current(path, text):
    assert path.read_text(encoding="utf-8") == text, "run: make conditions"


@pytest.mark.parametrize("code", ConditionCode)
def test_each_runbook_is_a_heading_of_the_page_as_github_names_it(code: ConditionCode) -> None:
    headings = re.findall(r"^### `(.+)`$", (ROOT / PAGE).read_text(encoding="utf-8"), re.M)
    links = {re.sub(r"[^a-z0-9_-]", "", heading.lower()) for heading in headings}
    assert code.runbook.removeprefix(f"{PAGE}#") in links


def test_the_contributors_page_names_files_that_are_there() -> None:
    page = (ROOT / "contributing" / "add-a-condition.md").read_text(encoding="utf-8")
    named = re.findall(r"`([a-z_]+(?:/[a-z_.-]+)+)`", page)
    assert "proto/windrow_proto/conditions.py" in named
    assert [path for path in named if not (ROOT / path).exists()] == []
