"""Traces that a lease left on its card: each is a reason in words, and a card as it was found has none."""

from dataclasses import replace

import pytest

from tests.support.personas import card
from windrow_agent.core.gpu_port import GpuLook
from windrow_agent.core.lease_exit import SILENT, left_behind, modes
from windrow_proto.units import GIB

FACTS = replace(card(), more={"compute_mode": "default", "persistence_mode": 1, "mig_pending": 0})
BEFORE = modes(FACTS)


def test_a_card_as_it_was_found_is_clean():
    assert left_behind(BEFORE, GpuLook(FACTS, 4 << 20, 0)) == ""


@pytest.mark.parametrize(
    ("look", "words"),
    [
        (None, SILENT),
        (GpuLook(FACTS, 0, 2), "2 programs still run on it"),
        (GpuLook(FACTS, 3 * GIB, 0), "3072 MiB of its memory are still in use"),
        (GpuLook(replace(FACTS, mig_enabled=True), 0, 0), "its MIG mode was off and is on"),
        (GpuLook(replace(FACTS, power_limit_mw=300_000), 0, 0), ""),
        (
            GpuLook(replace(FACTS, more={**FACTS.more, "compute_mode": "prohibited", "persistence_mode": 0}), 0, 0),
            "its persistence mode was on and is off; its compute mode was default and is prohibited",
        ),
    ],
)
def test_what_was_left_is_said_in_words(look, words):
    assert left_behind(BEFORE, look) == words


def test_what_a_card_says_no_more_or_did_not_say_before_is_no_change():
    silent = replace(FACTS, power_limit_mw=None, mig_enabled=None, more={})
    assert left_behind(BEFORE, GpuLook(silent, None, None)) == ""
    assert left_behind({}, GpuLook(FACTS, 0, 0)) == ""
