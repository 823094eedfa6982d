"""A workload on its host: every pair of phase and event, and what its receipts promise."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from windrow_agent.core import workload as w
from windrow_proto.ids import ClusterId, SlotId, WorkloadId
from windrow_proto.model import SlotGrant, WorkloadPhase, WorkloadSpec
from windrow_proto.volumes import Mount

SPEC = WorkloadSpec(WorkloadId("work_a"), ClusterId("cl"), (SlotGrant(SlotId("s"), 3),), "process")
EVENTS: tuple[tuple[str, w.Event], ...] = (
    ("prepared", w.Prepared()),
    ("volumes", w.VolumesCame()),
    ("files", w.FilesCame()),
    ("members", w.MembersCame()),
    ("started", w.Started(100, 1, {"80": 8080})),
    ("ran", w.Ran(50)),
    ("ended", w.Ended(0, 60, "exited")),
    ("broke", w.Broke("no image")),
    ("end_asked", w.EndAsked("deleted")),
    ("removed", w.Removed()),
)

TABLE = """
PREPARING       prepared  PREPARING       Start
PREPARING       volumes   PREPARING       -
PREPARING       files     PREPARING       -
PREPARING       members   PREPARING       -
PREPARING       started   RUNNING         SendReceipt SendObserved
PREPARING       ran       PREPARING       -
PREPARING       ended     EXITED          FINAL SendObserved
PREPARING       broke     FAILED          SendObserved
PREPARING       end_asked STOPPING        SendObserved StopAndRemove
PREPARING       removed   GONE            FINAL SendObserved
WAITING_FILES   prepared  WAITING_FILES   -
WAITING_FILES   volumes   WAITING_FILES   -
WAITING_FILES   files     PREPARING       Start SendObserved
WAITING_FILES   members   WAITING_FILES   -
WAITING_FILES   started   RUNNING         SendReceipt SendObserved
WAITING_FILES   ran       WAITING_FILES   -
WAITING_FILES   ended     EXITED          FINAL SendObserved
WAITING_FILES   broke     FAILED          SendObserved
WAITING_FILES   end_asked STOPPING        SendObserved StopAndRemove
WAITING_FILES   removed   GONE            FINAL SendObserved
RUNNING         prepared  RUNNING         -
RUNNING         volumes   RUNNING         -
RUNNING         files     RUNNING         -
RUNNING         members   RUNNING         -
RUNNING         started   RUNNING         -
RUNNING         ran       RUNNING         SendReceipt
RUNNING         ended     EXITED          FINAL SendObserved
RUNNING         broke     RUNNING         -
RUNNING         end_asked STOPPING        SendObserved StopAndRemove
RUNNING         removed   GONE            FINAL SendObserved
EXITED          prepared  EXITED          -
EXITED          volumes   EXITED          -
EXITED          files     EXITED          -
EXITED          members   EXITED          -
EXITED          started   EXITED          -
EXITED          ran       EXITED          -
EXITED          ended     EXITED          -
EXITED          broke     EXITED          -
EXITED          end_asked STOPPING        SendObserved StopAndRemove
EXITED          removed   GONE            FINAL SendObserved
STOPPING        prepared  STOPPING        -
STOPPING        volumes   STOPPING        -
STOPPING        files     STOPPING        -
STOPPING        members   STOPPING        -
STOPPING        started   STOPPING        SendReceipt SendObserved
STOPPING        ran       STOPPING        SendReceipt
STOPPING        ended     STOPPING        FINAL SendObserved
STOPPING        broke     STOPPING        -
STOPPING        end_asked STOPPING        -
STOPPING        removed   GONE            FINAL SendObserved
GONE            prepared  GONE            -
GONE            volumes   GONE            -
GONE            files     GONE            -
GONE            members   GONE            -
GONE            started   GONE            -
GONE            ran       GONE            -
GONE            ended     GONE            -
GONE            broke     GONE            -
GONE            end_asked GONE            -
GONE            removed   GONE            -
FAILED          prepared  FAILED          -
FAILED          volumes   FAILED          -
FAILED          files     FAILED          -
FAILED          members   FAILED          -
FAILED          started   RUNNING         SendReceipt SendObserved
FAILED          ran       FAILED          -
FAILED          ended     EXITED          FINAL SendObserved
FAILED          broke     FAILED          -
FAILED          end_asked STOPPING        SendObserved StopAndRemove
FAILED          removed   GONE            FINAL SendObserved
WAITING_MEMBERS prepared  WAITING_MEMBERS -
WAITING_MEMBERS volumes   WAITING_MEMBERS -
WAITING_MEMBERS files     WAITING_MEMBERS -
WAITING_MEMBERS members   PREPARING       Start SendObserved
WAITING_MEMBERS started   RUNNING         SendReceipt SendObserved
WAITING_MEMBERS ran       WAITING_MEMBERS -
WAITING_MEMBERS ended     EXITED          FINAL SendObserved
WAITING_MEMBERS broke     FAILED          SendObserved
WAITING_MEMBERS end_asked STOPPING        SendObserved StopAndRemove
WAITING_MEMBERS removed   GONE            FINAL SendObserved
WAITING_VOLUMES prepared  WAITING_VOLUMES -
WAITING_VOLUMES volumes   PREPARING       Start SendObserved
WAITING_VOLUMES files     WAITING_VOLUMES -
WAITING_VOLUMES members   WAITING_VOLUMES -
WAITING_VOLUMES started   RUNNING         SendReceipt SendObserved
WAITING_VOLUMES ran       WAITING_VOLUMES -
WAITING_VOLUMES ended     EXITED          FINAL SendObserved
WAITING_VOLUMES broke     FAILED          SendObserved
WAITING_VOLUMES end_asked STOPPING        SendObserved StopAndRemove
WAITING_VOLUMES removed   GONE            FINAL SendObserved
""".strip()


def _name(effect: w.Effect) -> str:
    return "FINAL" if isinstance(effect, w.SendReceipt) and effect.final else type(effect).__name__


def test_every_phase_answers_every_event_as_the_table_says():
    lines = []
    for phase in list(WorkloadPhase)[1:]:
        for name, event in EVENTS:
            state = replace(w.begin(SPEC), phase=phase, started_wall_ns=90)
            after, effects = w.step(state, event)
            names = " ".join(map(_name, effects)) or "-"
            lines.append(f"{phase.name:<15} {name:<9} {after.phase.name:<15} {names}")
    assert "\n".join(lines) == TABLE


def test_a_workload_that_never_started_gets_no_receipt():
    state, effects = w.step(w.begin(SPEC), w.EndAsked("deleted"))
    state, more = w.step(state, w.Removed())
    assert state.phase is WorkloadPhase.GONE
    assert not any(isinstance(effect, w.SendReceipt) for effect in (*effects, *more))


def test_files_are_waited_for_before_the_start():
    state, effects = w.step(w.begin(replace(SPEC, await_files=True)), w.Prepared())
    assert (state.phase, effects) == (WorkloadPhase.WAITING_FILES, (w.SendObserved(),))
    state, effects = w.step(state, w.FilesCame())
    assert effects == (w.Start(), w.SendObserved())


def test_a_member_waits_for_its_files_and_then_for_the_other_members():
    state, _ = w.step(w.begin(replace(SPEC, await_files=True, await_members=True)), w.Prepared())
    state, effects = w.step(state, w.FilesCame())
    assert (state.phase, effects) == (WorkloadPhase.WAITING_MEMBERS, (w.SendObserved(),))
    state, effects = w.step(state, w.MembersCame())
    assert effects == (w.Start(), w.SendObserved())


def test_the_first_reason_of_an_end_stands():
    state, _ = w.step(w.begin(SPEC), w.Started(100, 0))
    state, _ = w.step(state, w.EndAsked("unpaid"))
    state, _ = w.step(state, w.Ended(-9, 70, "exited"))
    assert w.receipt(state, 200).end_reason == "unpaid"


@given(st.lists(st.sampled_from([event for _, event in EVENTS]), max_size=40))
def test_receipts_are_numbered_without_holes_never_fall_and_end_once(events: list[w.Event]):
    state, numbers, longest, finals = w.begin(SPEC), 0, 0, 0
    for event in events:
        state, effects = w.step(state, event)
        for effect in effects:
            if isinstance(effect, w.SendReceipt):
                made = w.receipt(state, 0)
                numbers += 1
                finals += made.final
                assert made.number == numbers
                assert made.running_ns >= longest
                assert made.final == effect.final
                longest = made.running_ns
    assert finals <= 1


@given(st.lists(st.sampled_from([event for _, event in EVENTS]), max_size=40))
def test_what_is_gone_stays_gone(events: list[w.Event]):
    state = replace(w.begin(SPEC), phase=WorkloadPhase.GONE)
    for event in events:
        state, effects = w.step(state, event)
        assert (state.phase, effects) == (WorkloadPhase.GONE, ())


def test_volumes_come_before_files_and_members():
    spec = replace(SPEC, await_files=True, await_members=True, volumes=(Mount("data", "/data"),))
    state, phases = w.begin(spec), []
    for event in (w.Prepared(), w.FilesCame(), w.VolumesCame(), w.FilesCame(), w.MembersCame()):
        state, _ = w.step(state, event)
        phases.append(state.phase.name)
    assert phases == ["WAITING_VOLUMES", "WAITING_VOLUMES", "WAITING_FILES", "WAITING_MEMBERS", "PREPARING"]
    assert state.keeps_volumes
    assert not w.begin(replace(spec, volumes=(Mount("data", "/data", read_only=True),))).keeps_volumes
