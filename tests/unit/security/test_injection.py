"""Text of strangers stays text: it begins no log line, no header, no formula, no query, and steers no terminal."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from windrow.cli import output
from windrow.cli.tables import Column, Table, View
from windrow.client import Client
from windrow.config import Config, find, save
from windrow.errors import WindrowClientError
from windrow_master.api.sse import Message
from windrow_master.clusters.request import checked_name
from windrow_master.fleet.sanitise import host_name
from windrow_master.identity.decide import clean_name as member_name
from windrow_master.telemetry import export
from windrow_master.telemetry.remote.promql import selector
from windrow_proto.errors import InvalidInput
from windrow_proto.ids import HostId
from windrow_proto.scrape import Figure, exposition
from windrow_proto.wire_fields import clean_text

NASTY = (
    "a\r\nX-Injected: 1",
    'a\n{"event":"forged","level":"info"}',
    "\x1b[2J\x1b[31mred\x1b]0;title\x07",
    "\x9b31mred",
    "\u202egnp.exe\u2028b\u2029c\x85d",
    "[bold red]markup[/] [link=file:///etc/passwd]x[/link] :skull:",
    '"} 1\nwindrow_forged{x="',
    "<script>alert(1)</script>",
    "tail\\",
    "\0",
)
DAEMONS = ("windrow_proto.logs", "windrow_master.app.logs")
CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]")


def logged(module: str, script: str) -> list[str]:
    """Returns the lines that a daemon with this log writes while it runs this script."""
    set_up = "set_up('info')" if "master" in module else "configure_log()"
    head = f"import logging, structlog, threading, {module} as m\nm.{set_up}\n"
    done = subprocess.run([sys.executable, "-c", head + script], capture_output=True, timeout=60, check=False)
    return done.stderr.decode().splitlines()


# --- logs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", DAEMONS)
def test_an_event_is_one_line_whatever_its_fields_hold(module: str) -> None:
    script = f"log = structlog.get_logger('windrow_master')\nfor x in {NASTY!r}:\n    log.warning('said', text=x)\n"

    lines = logged(module, script)

    assert [json.loads(line)["text"] for line in lines] == list(NASTY)
    assert not any(CONTROLS.search(line) for line in lines)


@pytest.mark.parametrize("module", DAEMONS)
def test_what_a_library_says_and_what_ends_a_thread_or_the_process_is_one_line_too(module: str) -> None:
    secret = "wt_" + "Abcdefgh_1234567-" * 3
    script = (
        f"nasty = {NASTY[1]!r} + ' {secret}'\nlogging.getLogger('asyncio').error('never retrieved: %s', nasty)\n"
        "def fail():\n    raise RuntimeError(nasty)\n"
        "thread = threading.Thread(target=fail)\nthread.start()\nthread.join()\nfail()\n"
    )

    lines = logged(module, script)

    events = [json.loads(line) for line in lines]
    assert [event["level"] for event in events] == ["error", "critical", "critical"]
    assert all("RuntimeError" in event["exception"] for event in events[1:])
    assert secret not in "".join(lines)


def test_a_command_that_crashes_shows_neither_a_token_nor_what_its_variables_held(tmp_path: Path) -> None:
    token = "wt_" + "Abcdefgh_1234567-" * 3
    script = (
        "import sys\nfrom windrow.cli import main, hosts\n"
        "def fail(context, *a, **k):\n    found = context.obj\n    raise RuntimeError('bug')\n"
        "hosts.client = fail\nsys.argv = ['windrow', 'host', 'ls']\nmain.main()\n"
    )
    environment = {"WINDROW_URL": "http://127.0.0.1:1", "WINDROW_TOKEN": token, "HOME": str(tmp_path)}

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False, env=environment
    )

    assert done.returncode == 1 and "RuntimeError" in done.stderr
    assert token not in done.stderr + done.stdout


# --- names, headers, streams ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_no_name_that_is_kept_holds_a_control_character_or_a_line_break(text: str) -> None:
    kept = (member_name(text, "x"), host_name(text, "x"), clean_text(text, 128))

    assert not any(CONTROLS.search(name) for name in kept)
    assert not any(c in kept[0] for c in '<>"')


@pytest.mark.parametrize(
    "text",
    [*NASTY, "L\u00e4b", "a\nb", "a\n", "x" * 65, " a", "a ", "a  b", "\u0663", "\x7f"],
    ids=lambda text: ascii(text),
)
def test_a_name_of_a_cluster_or_job_is_refused_with_the_rule_and_never_changed(text: str) -> None:
    with pytest.raises(InvalidInput, match="1 to 64 of A-Z"):
        checked_name(text)


@pytest.mark.parametrize("text", ["lab", "My Lab 2", "a@b:c/d+e (f)-g_h.i", "x" * 64, ""])
def test_a_name_that_may_be_is_kept_as_it_was_given(text: str) -> None:
    assert checked_name(text) == text


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_an_event_of_a_stream_is_one_line_of_data(text: str) -> None:
    lines = Message("rows", {"name": text}, id="7").encode().decode().splitlines()

    assert lines[:2] == ["id: 7", "event: rows"]
    assert json.loads(lines[2].removeprefix("data: ")) == {"name": text}
    assert lines[3:] == [""]


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_a_label_stays_within_its_quotes_in_the_figures_and_in_questions_to_a_store(text: str) -> None:
    shown = exposition([Figure("gpus", "GPUs", 1.0, {"gpu": text})])
    asked = selector(1, [(HostId("host_1"), text)])

    assert len(shown.splitlines(keepends=False)) >= 3 and shown.count("\n") == 3
    label = re.fullmatch(r'windrow_gpus\{gpu="((?:[^"\\\n]|\\["\\n])*)"\} 1\.0', shown.split("\n")[2])
    assert label is not None
    assert re.fullmatch(r'\w+\{host="host_1",gpu="(?:[^"\\\n]|\\.)*"\}', asked) is not None


# --- spreadsheets -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "|", "%", "\uff1d", "\uff0b", "\uff0d", "\uff20"])
@pytest.mark.parametrize("before", ["", " ", "\t", "\r", "\n", "\u200b", "\ufeff", "\xa0", "\x1f"])
def test_no_cell_begins_a_formula_also_after_what_spreadsheets_strip(start: str, before: str) -> None:
    row = (0, "host_1", before + start + "cmd|' /C calc'!A0", start, "gpu_power_watts", "W", -1.5)

    line = export.csv_text([row])

    assert line.endswith(",-1.5\r\n")
    cells = line.split(",")
    assert cells[2].lstrip('"').startswith("'") and cells[3].lstrip('"').startswith("'")


# --- the terminal -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_neither_a_table_nor_json_nor_an_error_steers_the_terminal(
    text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for console in (output.out, output.err):
        monkeypatch.setattr(console, "_force_terminal", True)
        monkeypatch.setattr(console, "no_color", True)
    with Client(Config("http://master", "wr_x")) as api:
        for form in ("table", "wide", "tsv"):
            View(Table([Column("NAME", lambda row: row["name"])], "none"), form).print(api, [{"name": text}])
    output.facts([("Name", text)])
    output.say(text)
    output.print_error(WindrowClientError(text))
    output.print_json([{"name": text}])

    shown = capsys.readouterr()
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown.out + shown.err)  # rich's own bold
    assert not CONTROLS.search(plain.replace("\n", ""))
    assert "\U0001f480" not in plain
    assert output.plain(text) in re.sub(r"\s*\n", "", plain) or "markup" in text or len(text) > 60
    assert json.loads(shown.out[shown.out.index("[{") if "[{" in shown.out else shown.out.rindex("[\n") :]) == [
        {"name": text}
    ]


# --- whom the command line believes -----------------------------------------------------------------------------------


def test_a_master_named_by_somebody_elses_files_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("WINDROW_URL", raising=False)
    monkeypatch.setenv("WINDROW_TOKEN", "wt_mine")
    save(Config("https://mine", "wt_mine"))
    planted = tmp_path / "repository" / ".windrow" / "cli.json"
    planted.parent.mkdir(parents=True)
    planted.write_text(json.dumps({"url": "https://attacker.invalid", "token": "x"}))
    planted.chmod(0o644)

    with pytest.raises(WindrowClientError, match="chmod 600"):
        find(start=planted.parent.parent)

    planted.unlink()
    assert find(start=planted.parent.parent).url == "https://mine"
