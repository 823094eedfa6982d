"""Bugs that ended only what met them: what the log of each daemon counts, and for how long it is stated."""

import json
import subprocess
import sys

from windrow_access import bugs_met
from windrow_agent.app.main import faults
from windrow_proto.crashes import STATED_NS, Crashes
from windrow_proto.units import SECOND

BEGAN_NS = 1_000 * STATED_NS
PROGRAM = """
import json, structlog
from windrow_proto.logs import configure_log
crashes = configure_log()
log = structlog.get_logger()
before = crashes.is_stated
log.warning("tunnel_refused")
try:
    raise ZeroDivisionError("what nobody has thought of")
except ZeroDivisionError:
    log.exception("tunnel_crashed")
print(json.dumps([before, crashes.is_stated, crashes.counts, crashes.last]))
"""


class Time:
    """A clock at a moment that the test chooses."""

    def __init__(self) -> None:
        self.now_ns = BEGAN_NS
        self.crashes = Crashes(lambda: self.now_ns)

    def log(self, event: str) -> None:
        assert self.crashes.count(None, "error", {"event": event}) == {"event": event}


def test_the_log_of_a_daemon_counts_the_bugs_that_pass_through_it() -> None:
    # In a process of its own: a log is set up for the whole of one.
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [False, True, {"tunnel_crashed": 1}, "tunnel_crashed"]
    assert "ZeroDivisionError" in done.stderr


def test_an_agent_and_an_access_state_a_bug_for_a_day_after_the_last_and_count_it_for_ever() -> None:
    time = Time()
    assert faults(time.crashes) == () and bugs_met.stated(time.crashes) is None
    time.log("tunnel_crashed")
    time.now_ns += SECOND
    time.log("turn_crashed")
    time.now_ns += STATED_NS - 1
    met = bugs_met.stated(time.crashes)
    assert met is not None and (met.count, met.last, met.last_ns) == (2, "turn_crashed", BEGAN_NS + SECOND)
    assert faults(time.crashes) == ("agent.bug_met",)
    time.now_ns += 1
    assert faults(time.crashes) == () and bugs_met.stated(time.crashes) is None
    assert [one.value for one in bugs_met.figures(time.crashes, {"worker": "0"})] == [2]


def test_what_is_no_bug_is_not_counted() -> None:
    time = Time()
    for event in ("turn_failed", "crashed", "tunnel_crashed_before"):
        time.log(event)
    assert (time.crashes.is_stated, time.crashes.counts) == (False, {})
