"""What a market says of its clusters, hosts, prices and accounts is so, is whole, and reads well."""

import json
import os
import re
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fake_nvml.build import FakeNvml
from tests.support.rental import NO_CAPACITY, Renter
from tests.support.stack import WINDROW, wait_for
from windrow.errors import ApiProblem

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]

UNREADABLE = ("None", "{'", "\ufffd", "Traceback")
"""What no text for people holds."""
THROTTLED = 0x48
"""What a driver says of a card that is too hot, as a mask of reasons."""


def _readable(renter: Renter, *words: str) -> str:
    done = renter.windrow(*words)
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    assert not [one for one in UNREADABLE if one in said], said
    return str(said)


def _facts(text: str) -> dict[str, str]:
    """The lines of `show` by their names."""
    return {line.split("  ")[0].strip(): line.partition("  ")[2].strip() for line in text.splitlines() if "  " in line}


@pytest.fixture
def name() -> str:
    return f"case-{uuid.uuid4().hex[:6]}"


@pytest.fixture
def lasting(renter: Renter, name: str) -> Iterator[dict[str, Any]]:
    """A cluster with a GPU that runs until the test ends."""
    more: dict[str, Any] = {"gpus": 1, "runtime": "process", "max_duration_seconds": 3600}
    made = renter.create("sh", "-c", "echo up; sleep 600", name=name, **more)
    yield made
    renter.delete(made["id"])


# --- clusters and receipts --------------------------------------------------------------------------------------------


@pytest.mark.case("M-28")
def test_a_cluster_is_shown_with_what_was_asked_its_times_its_limits_and_its_owner(
    renter: Renter, lasting: dict[str, Any]
) -> None:
    shown = _facts(_readable(renter, "cluster", "show", lasting["name"]))

    assert shown["Command"] == "sh -c 'echo up; sleep 600'"
    assert (shown["Kind"], shown["Account"]) == ("box", lasting["account_id"])
    assert (shown["GPUs"], shown["CPUs"]) == ("1 x any GPU", "1")
    assert shown["Longest running time"] == "3600 s" and shown["Ends"].startswith("at ")
    assert shown["Created"] == lasting["created_at"] and shown["Started"]


@pytest.mark.case("M-24")
def test_a_running_receipt_why_a_host_was_chosen_and_why_one_is_not_rented_have_no_raw_value(
    renter: Renter, lasting: dict[str, Any]
) -> None:
    (receipt,) = renter.all("/receipts", cluster=lasting["id"])

    assert " to now" in _readable(renter, "receipt", "show", receipt["id"])
    chosen = _readable(renter, "cluster", "explain", lasting["name"])
    assert f"Why here:\n  {renter.host()['name']} scores " in chosen
    _readable(renter, "host", "why", renter.host()["name"])
    _readable(renter, "host", "show", renter.host()["name"])


@pytest.mark.case("M-24")
def test_a_plan_that_does_not_fit_has_neither_a_price_nor_a_hold(renter: Renter) -> None:
    done = renter.windrow("cluster", "create", "--plan", "--cpus", "4000", "--", "true")

    assert done.returncode == NO_CAPACITY
    assert "None" not in done.stdout + done.stderr and "per hour;" not in done.stderr
    assert "4000 CPUs" in done.stderr


@pytest.mark.case("M-14")
def test_a_job_that_waits_and_the_error_of_a_program_say_why(renter: Renter, tmp_path: Path) -> None:
    words = ("job", "submit", "--no-files", "--gpu", "NoSuchGpu", "--json", "--", "true")
    (job,) = json.loads(renter.windrow(*words, cwd=tmp_path).stdout)
    try:
        shown = wait_for(lambda: (said := _readable(renter, "job", "show", job["id"])) and "Waits" in said and said)
    finally:
        renter.windrow("job", "cancel", job["id"])
    with pytest.raises(ApiProblem) as refused:
        renter.ask("POST", "/clusters", {"argv": ["true"], "cpus": 4000})

    assert "NoSuchGpu" in shown.partition("Waits")[2]
    assert f"{renter.host()['name']}" in str(refused.value) and "you ask for 4000" in str(refused.value)
    assert "are listed" not in str(refused.value)


@pytest.mark.case("M-26")
def test_a_refused_field_is_named_with_how_it_is_written(renter: Renter) -> None:
    for words in (("--slice", "mps"), ("--gpu", "1", "--slice", "half")):
        done = renter.windrow("run", "--no-files", *words, "--", "true")
        assert done.returncode == 2, done.stderr
        assert "- slice: Wrong form. Expected: such as 2g.20gb or mps.50" in done.stderr
    done = renter.windrow("cluster", "create", "--kind", "boxes", "--", "true")
    assert done.returncode == 2 and "kind: has to be 'box', 'service'" in done.stderr
    done = renter.windrow("offer", "set", "h100", "1")
    assert done.returncode != 0 and "None" not in done.stderr


# --- accounts and records ---------------------------------------------------------------------------------------------


@pytest.mark.case("M-15")
def test_a_refusal_for_want_of_money_names_the_command_that_grants_it(renter: Renter) -> None:
    account = f"poor-{uuid.uuid4().hex[:6]}"
    link = renter.windrow("account", "add", account, "--role", "renter")
    assert link.returncode == 0, link.stderr
    with renter.stack.client() as api:
        token = api.redeem_link(link.stdout.strip().partition("#sign-in=")[2].splitlines()[0])["token"]["token"]
    own = os.environ | {"WINDROW_URL": renter.stack.cli["url"], "WINDROW_TOKEN": token}
    words = (WINDROW, "cluster", "create", "--gpu", "1", "--runtime", "simulated", "--host", _simulated(renter), "--")
    refused = subprocess.run((*words, "true"), env=own, capture_output=True, text=True, timeout=120, check=False)

    granted = renter.windrow("credit", "add", account, "5")

    assert refused.returncode == NO_CAPACITY
    assert "Have an operator grant credits (`windrow credit add`)" in refused.stderr
    assert (granted.returncode, granted.stderr) == (0, f"{account} now has 5.00 TEST.\n")


def _simulated(renter: Renter) -> str:
    """The name of a simulated host with GPUs."""
    return next(str(one["name"]) for one in renter.all("/hosts") if one["simulated"] and one["gpus"])


@pytest.mark.case("M-22")
@pytest.mark.parametrize("words", [("event", "ls"), ("audit", "ls")])
def test_records_are_listed_newest_first_and_not_all_of_them(renter: Renter, words: tuple[str, ...]) -> None:
    first = json.loads(renter.windrow(*words, "--json", "--limit", "3").stdout)
    newest = json.loads(renter.windrow(*words, "--json").stdout)

    assert len(first) == 3 and len(newest) <= 200
    assert [one["at"] for one in newest] == sorted((one["at"] for one in newest), reverse=True)


@pytest.mark.case("M-35")
def test_the_audit_log_is_narrowed_by_the_word_before_the_dot(renter: Renter) -> None:
    with_word = json.loads(renter.windrow("audit", "ls", "--action", "host", "--json", "--limit", "20").stdout)
    with_dot = json.loads(renter.windrow("audit", "ls", "--action", "host.", "--json", "--limit", "20").stdout)

    assert with_word and {one["action"].partition(".")[0] for one in with_word} == {"host"}
    assert [one["number"] for one in with_word] == [one["number"] for one in with_dot]


@pytest.mark.case("M-29")
@pytest.mark.parametrize("verb", ["show", "why", "facts", "bandwidth"])
def test_a_host_is_meant_by_its_name(renter: Renter, verb: str) -> None:
    assert renter.windrow("host", verb, renter.host()["name"]).returncode == 0


@pytest.mark.case("M-27")
def test_a_login_without_the_authority_says_how_to_get_it_and_a_logout_forgets(renter: Renter, tmp_path: Path) -> None:
    cli = renter.stack.cli
    (tmp_path / "token").write_text(cli["token"])
    own = os.environ | {"XDG_CONFIG_HOME": str(tmp_path / "config")}

    def windrow(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            (WINDROW, *words), env=own, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )

    login = ("login", cli["https_url"], "--token-file", "token")
    refused, done = windrow(*login), windrow(*login, "--ca-file", cli["ca_pem"])
    after = windrow("host", "ls"), windrow("logout"), windrow("host", "ls"), windrow("logout")

    assert refused.returncode == 6 and "windrow login --ca-file FILE" in refused.stderr
    assert "Is it running" not in refused.stderr
    assert done.returncode == 0, done.stderr
    assert [one.returncode for one in after] == [0, 0, 2, 0]
    assert not (tmp_path / "config" / "windrow" / "config.json").exists()


# --- images, boxes and processors -------------------------------------------------------------------------------------


@pytest.mark.docker
@pytest.mark.case("M-4")
def test_a_hosts_default_image_runs_where_a_request_names_none(renter: Renter, image: str) -> None:
    host = renter.host()["name"]
    assert renter.windrow("host", "set", host, "--default-image", image).returncode == 0
    try:
        plan = renter.ask("POST", "/clusters/plan", {"argv": ["true"], "runtime": "docker"})
    finally:
        assert renter.windrow("host", "set", host, "--no-default-image").returncode == 0

    assert [one["image"] for one in plan["placement"]] == [image]


@pytest.mark.docker
@pytest.mark.case("M-10")
def test_a_program_runs_from_the_home_folder_of_a_container_and_it_is_large(renter: Renter, image: str) -> None:
    large = "dd if=/dev/zero of=$HOME/large bs=1048576 count=600 2>/dev/null"
    script = f"cp /bin/busybox $HOME/echo && $HOME/echo hi && {large}"
    done = renter.windrow("run", "--no-files", "--image", image, "--", "sh", "-c", script)

    assert (done.returncode, done.stdout) == (0, "hi\n"), done.stderr


@pytest.mark.docker
@pytest.mark.case("M-16")
def test_a_box_whose_image_has_no_ssh_server_says_so_in_place_of_the_line_to_log_in(
    renter: Renter, image: str, name: str, tmp_path: Path
) -> None:
    key = tmp_path / "id.pub"
    key.write_text("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl me@home\n")
    words = ("cluster", "create", "--name", name, "--image", image, "--ssh-key", str(key), "--notebook")
    done = renter.windrow(*words, "--", "sleep", "600")
    try:
        assert done.returncode == 0, done.stderr
        assert "SSH is off: there is no OpenSSH server here." in done.stderr
        assert "Notebook is off: there is no Jupyter here." in done.stderr
        assert "Log in:" not in done.stderr and "cluster forward" not in done.stderr
    finally:
        renter.delete(done.stdout.strip())


@pytest.mark.case("M-16")
def test_who_has_no_key_is_told_that_ssh_is_off(renter: Renter, name: str, tmp_path: Path) -> None:
    cli = renter.stack.cli
    own = os.environ | {"HOME": str(tmp_path), "WINDROW_URL": cli["url"], "WINDROW_TOKEN": cli["token"]}
    words = (WINDROW, "cluster", "create", "--name", name, "--runtime", "process", "--no-notebook", "--plan")
    done = subprocess.run(words, env=own, capture_output=True, text=True, timeout=120, check=False)

    assert done.returncode == 0, done.stderr
    assert f"SSH is off: {tmp_path}/.ssh has no public key." in done.stderr


@pytest.mark.case("M-8")
def test_two_programs_of_one_processor_each_share_a_host_of_several(renter: Renter) -> None:
    renter.create("sleep", "600", runtime="process")

    plan = renter.ask("POST", "/clusters/plan", {"argv": ["true"], "runtime": "process"})

    assert plan["fits"], plan["refusal"]


# --- GPUs -------------------------------------------------------------------------------------------------------------


@pytest.mark.case("M-12")
def test_a_gpu_that_is_withheld_is_no_idle_one_in_any_list(renter: Renter, cards: FakeNvml) -> None:
    wait_for(lambda: set(_states(renter)) == {"idle"})
    count = len(_states(renter))
    cards.state.gpu(2).throttle = THROTTLED
    try:
        # The Master's own tests of the others may pause them too, for a moment.
        wait_for(lambda: sorted(_states(renter)) == ["idle"] * (count - 1) + ["paused"])
        wait_for(lambda: _shown_states(renter) == ["idle", "idle", "paused", "idle"])
    finally:
        cards.state.gpu(2).throttle = 0
    wait_for(lambda: _states(renter) == ["idle"] * count)


def _shown_states(renter: Renter) -> list[str]:
    shown = _readable(renter, "host", "show", renter.host()["name"])
    return [line.split()[-1] for line in shown.splitlines() if re.match(r"GPU +\d ", line)]


def _states(renter: Renter) -> list[str]:
    words = ("gpu", "ls", "--name", renter.host()["name"], "-o", "tsv")
    header, *rows = renter.windrow(*words).stdout.splitlines()
    place = header.split("\t").index("STATE")
    return [row.split("\t")[place] for row in rows]


@pytest.mark.case("M-23")
def test_the_headings_of_a_gpus_page_are_words(renter: Renter) -> None:
    lines = _readable(renter, "gpu", "show", f"{renter.host()['name']}/0").splitlines()

    assert {"Identity", "Memory"} <= set(lines)
    assert all(lines[at - 1] == "" for at in (lines.index("Identity"), lines.index("Memory")))
