"""A command that its host never saw comes to an end, whoever looks at the clock first."""

from types import SimpleNamespace

import pytest

from tests.unit.fleet.world import HOST, world
from windrow_master.fleet.model import CommandState
from windrow_master.fleet.repository import CommandRepository
from windrow_proto.ids import CommandId, WorkloadId
from windrow_proto.model import Command, CommandKind, CommandPhase, CommandStatus, DeleteSpec
from windrow_proto.units import MINUTE, SECOND


@pytest.fixture
def w(tmp_path):
    with world(tmp_path) as made:
        yield made


def issued(w):
    command = Command(CommandId(""), CommandKind.DELETE, delete=DeleteSpec(WorkloadId("workload_1"), (), 0))
    not_after_ns = w.clock.wall_ns() + MINUTE
    command_id = w.write(lambda uow: w.fleet.issue(uow, HOST, command, not_after_ns))
    w.write(lambda uow: w.fleet.commands.sent(uow, (command_id,)))
    return command_id


def never_seen(w, command_id):
    status = CommandStatus(command_id, CommandPhase.NEVER_SEEN)
    w.write(lambda uow: w.fleet.commands.on_status(uow, HOST, status))


def state(w, command_id):
    return w.read(lambda uow: uow[CommandRepository].get(command_id)).state


def judge(w, command_id):
    w.write(lambda uow: w.fleet.commands.judge(uow, uow[CommandRepository].get(command_id)))


def test_a_host_that_says_it_never_saw_a_command_ends_it_once_its_time_is_over(w):
    command_id = issued(w)
    w.clock.advance(MINUTE + SECOND)

    never_seen(w, command_id)  # before the next look at the clock has made it Unknown

    assert state(w, command_id) is CommandState.TIMED_OUT


def test_within_its_time_the_same_word_changes_nothing_since_it_is_sent_again(w):
    command_id = issued(w)
    w.clock.advance(30 * SECOND)

    never_seen(w, command_id)

    assert state(w, command_id) is CommandState.SENT


def test_a_command_whose_fate_is_unknown_is_asked_for_until_it_is_known(w):
    command_id = issued(w)
    w.clock.advance(MINUTE + SECOND)
    judge(w, command_id)
    assert state(w, command_id) is CommandState.UNKNOWN
    woken: list[str] = []
    w.fleet.attach(SimpleNamespace(wake=woken.append))

    judge(w, command_id)
    judge(w, command_id)

    assert woken == [HOST, HOST]
