"""The first script of a bought machine: small, without credentials, its end set up before anything is fetched."""

import subprocess

import pytest

from windrow_master.hybrid.backends.bootstrap import reachability, user_data
from windrow_master.hybrid.backends.port import USER_DATA_MAX, PurchaseId
from windrow_master.onboarding.join_line import join_line
from windrow_proto.errors import InvalidInput
from windrow_proto.units import SECOND

TOKEN = "wj_" + "t" * 43 + "." + "0" * 32
LINE = join_line("https://market.example:8443", "sha256//" + "A" * 43 + "=", TOKEN)
TEXT = user_data(LINE, PurchaseId("01K"), 1_800_000_000 * SECOND + 1, 1800)


def test_the_script_is_one_that_a_shell_can_read_and_far_below_what_providers_take() -> None:
    read = subprocess.run(["sh", "-n"], input=TEXT, text=True, capture_output=True, timeout=60, check=False)

    assert (read.returncode, read.stderr) == (0, "")
    assert TEXT.startswith("#!/bin/sh\n") and len(TEXT) < USER_DATA_MAX // 4
    assert "@" not in TEXT.replace(LINE, "")


def test_the_end_is_set_up_first_and_the_token_is_last() -> None:
    assert "ENDS_AT=1800000001 ORPHAN_TTL=1800" in TEXT, "rounded up: never too early"
    assert TEXT.index("systemctl enable --now windrow-dead-man.timer") < TEXT.index("curl") < TEXT.index(TOKEN)
    assert TEXT.count(TOKEN) == 1 and TEXT[TEXT.index(TOKEN) :].count("\n") < 5


def test_a_script_that_was_cut_runs_no_part_of_the_join_line() -> None:
    for at in range(TEXT.index("curl -fsSL") + 1, TEXT.rindex("done"), 41):
        read = subprocess.run(["sh", "-n"], input=TEXT[:at], text=True, capture_output=True, timeout=60, check=False)
        assert read.returncode != 0, TEXT[:at]


def test_a_script_that_is_too_long_is_refused() -> None:
    with pytest.raises(InvalidInput):
        user_data("#" * USER_DATA_MAX, PurchaseId("01K"), 0, 1800)


@pytest.mark.parametrize(
    ("url", "is_good"),
    [
        ("https://market.example.org:8443", True),
        ("https://8.8.8.8:8443", True),
        ("https://[2606:4700::1111]:8443", True),
        ("https://127.0.0.1:8443", False),
        ("https://[::1]:8443", False),
        ("https://localhost:8443", False),
        ("https://10.1.2.3:8443", False),
        ("https://0.0.0.0:8443", False),
        ("https://box.local:8443", False),
        ("https://box:8443", False),
        ("", False),
    ],
)
def test_a_master_that_only_its_own_network_reaches_is_told_before_anything_is_bought(url: str, is_good: bool) -> None:
    found = reachability(url)

    assert (found.what, found.is_good, bool(found.way_out)) == ("reachability", is_good, not is_good)
