"""Conditions as the API and Prometheus tell them: with the remedy of the table, and unknown ones as what they are."""

from windrow_master.api.condition_shapes import condition_json, figures
from windrow_proto.conditions import PAGE, UNKNOWN_REMEDY, ConditionCode


def test_a_condition_is_told_with_its_severity_its_remedy_and_its_runbook() -> None:
    lost = ConditionCode.GPU_LOST
    assert condition_json("gpu.lost:GPU-1", lost.words, 5) == {
        "about": None,
        "code": "gpu.lost:GPU-1",
        "title": "GPU lost",
        "detail": lost.words,
        "severity": "ticket",
        "remedy": lost.remedy,
        "runbook": f"{PAGE}#gpulost",
        "since": "1970-01-01T00:00:00.000Z",
    }


def test_a_condition_of_another_version_is_told_and_says_that_it_is_not_known() -> None:
    told = condition_json("gpu.of_a_newer_agent", "", 5)
    assert (told["code"], told["remedy"], told["runbook"]) == ("gpu.of_a_newer_agent", UNKNOWN_REMEDY, PAGE)


def test_conditions_are_counted_by_code_and_strangers_make_no_series() -> None:
    told = ["gpu.lost:GPU-1", "gpu.lost:GPU-2", "audit.broken", "gpu.made_up_by_a_host:GPU-1"]
    counts = {labels["code"]: (count, labels["severity"]) for _, _, count, labels in figures(told)}
    assert counts == {"gpu.lost": (2, "ticket"), "audit.broken": (1, "page")}
