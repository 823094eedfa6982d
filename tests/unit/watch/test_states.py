"""The table of alerts, pair by pair, and what time brings."""

from dataclasses import replace
from pathlib import Path

from windrow_master.watch import drawings
from windrow_master.watch.model import Alert, AlertState
from windrow_master.watch.states import DOUBLINGS_MAX, AlertEffect, AlertEvent, due, step
from windrow_proto.conditions import Severity

PAGE = Path(__file__).parents[3] / "docs" / "diagrams" / "alerts.md"
OVER = "settle resolved ! tell_resolved, release; end resolved ! tell_resolved, release"
TABLE = f"""
pending: clear resolved ! release, forget; fire firing ! tell_firing; silence silenced; end resolved ! release, forget
firing: escalate = ! tell_escalated; acknowledge acknowledged; accept acknowledged; silence silenced; {OVER}
acknowledged: escalate = ! tell_escalated; silence silenced; {OVER}
silenced: unsilence firing; {OVER}
resolved:
"""
"""Each state with the events that change something; every other pair stays."""
ALERT = Alert(
    alert_id="alert_1",
    rule="host.lost",
    cause="host_1",
    state=AlertState.PENDING,
    severity=Severity.PAGE,
    title="Host lost: a",
    text="",
    remedy="",
    opened_at_ns=10,
    settle_ns=30,
    escalate_ns=100,
    fires_at_ns=10,
    subject_count=1,
)


def test_every_pair_of_state_and_event_has_the_answer_of_the_table() -> None:
    wanted = {state.value: {event.value: "=" for event in AlertEvent} for state in AlertState}
    for line in TABLE.strip().splitlines():
        state, _, pairs = line.partition(":")
        for pair in filter(None, map(str.strip, pairs.split(";"))):
            event, _, answer = pair.partition(" ")
            wanted[state][event] = answer
    found = {state: dict[str, str]() for state in wanted}
    for line in drawings.table_text().splitlines():
        state, event, answer = line.split(maxsplit=2)
        found[state][event] = answer
    assert found == wanted


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text() == drawings.page(), "run: python -m windrow_master.watch.drawings > docs/diagrams/alerts.md"


def test_ten_flaps_within_the_settle_time_are_two_messages() -> None:
    alert, told = step(ALERT, AlertEvent.FIRE, 10)
    told_in_all, now_ns = list(told), 10
    for _ in range(10):
        for event in (AlertEvent.CLEAR, AlertEvent.RAISE):
            now_ns += 20
            found = due(alert)
            assert found is None or found[0] > now_ns or found[1] is AlertEvent.ESCALATE
            alert, told = step(alert, event, now_ns)
            told_in_all += told
    alert, _ = step(alert, AlertEvent.CLEAR, now_ns)
    assert alert.flaps == 10
    assert due(replace(alert, subject_count=0)) == (now_ns + (30 << DOUBLINGS_MAX), AlertEvent.SETTLE)
    alert, told = step(alert, AlertEvent.SETTLE, now_ns + 10_000)
    assert [*told_in_all, *told] == [AlertEffect.TELL_FIRING, AlertEffect.TELL_RESOLVED, AlertEffect.RELEASE]


def test_a_silence_tells_nothing_and_what_still_holds_is_told_at_its_end() -> None:
    silenced, effects = step(ALERT, AlertEvent.SILENCE, 10, until_ns=500)
    assert (silenced.state, effects, due(silenced)) == (AlertState.SILENCED, (), (500, AlertEvent.UNSILENCE))
    assert step(silenced, AlertEvent.UNSILENCE, 500)[1] == (AlertEffect.TELL_FIRING,)
    over, _ = step(replace(silenced, subject_count=0), AlertEvent.CLEAR, 20)
    assert due(over) == (50, AlertEvent.SETTLE)
    assert step(over, AlertEvent.SETTLE, 50)[1] == (AlertEffect.RELEASE,), "nobody was told of it"


def test_an_acknowledged_alert_stays_so_through_a_silence_and_is_not_told_again() -> None:
    firing, _ = step(ALERT, AlertEvent.FIRE, 10)
    assert due(firing) == (110, AlertEvent.ESCALATE)
    acked, _ = step(firing, AlertEvent.ACKNOWLEDGE, 20, actor="user/ana")
    assert (acked.acked_by, due(acked)) == ("user/ana", None)
    silenced, _ = step(acked, AlertEvent.SILENCE, 30, until_ns=40)
    back, effects = step(silenced, AlertEvent.UNSILENCE, 40)
    assert (back.state, effects) == (AlertState.ACKNOWLEDGED, ())


def test_a_page_that_nobody_acknowledges_is_told_three_times_more_ever_later() -> None:
    alert, _ = step(ALERT, AlertEvent.FIRE, 0)
    times = []
    while (found := due(alert)) is not None:
        times.append(found[0])
        alert, _ = step(alert, found[1], found[0])
    assert times == [100, 300, 700]
