"""Counts of the Master's log: bugs that ended only what met them are stated for a day, and counted for ever."""

import json
import subprocess
import sys

from windrow_master.app import logs
from windrow_proto.crashes import STATED_NS, Crashes
from windrow_proto.units import SECOND

PROGRAM = """
import json, structlog
from windrow_master.app import logs
crashes = logs.set_up("info")
log = structlog.get_logger("windrow_master.tests")
log.warning("tunnel_refused")
found = [list(logs.figures(crashes)), list(logs.conditions(crashes))]
for event in ("tunnel_crashed", "tunnel_crashed", "turn_crashed"):
    try:
        raise ZeroDivisionError("what nobody has thought of")
    except ZeroDivisionError:
        log.exception(event)
print(json.dumps([*found, list(logs.figures(crashes)), list(logs.conditions(crashes))]))
"""


def test_a_bug_that_is_logged_is_counted_and_stated() -> None:
    # In a process of its own: a log is set up for the whole of one.
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    before, stated_before, after, stated = json.loads(done.stdout)
    assert [(count, labels) for _, _, count, labels in before] == [(0, {"event": ""})]
    assert stated_before == []
    assert {labels["event"]: count for _, _, count, labels in after} == {"tunnel_crashed": 2, "turn_crashed": 1}
    ((code, detail, since_ns),) = stated
    assert (code, since_ns > 0) == ("master.bug_met", True)
    assert "3 times" in detail and "`turn_crashed`" in detail
    said = [json.loads(line) for line in done.stderr.splitlines()]
    assert "ZeroDivisionError: what nobody" in next(s for s in said if s["event"] == "tunnel_crashed")["exception"]


def test_a_bug_of_long_ago_is_not_stated_any_more() -> None:
    now_ns = 1_000 * STATED_NS
    crashes = Crashes(lambda: now_ns)
    crashes.count(None, "error", {"event": "turn_crashed"})
    now_ns += STATED_NS - SECOND
    assert len(list(logs.conditions(crashes))) == 1
    now_ns += SECOND
    assert list(logs.conditions(crashes)) == []
