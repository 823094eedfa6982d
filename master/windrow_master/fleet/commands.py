"""Issues commands and writes down what becomes of them; the row is the outbox, the trunk performs.

issue ──▶ Queued ──▶ (trunk sends) Sent ──▶ status from the agent ──▶ ... ──▶ done
                     resent until accepted    silence ──▶ Unknown ──▶ the trunk asks, and never repeats it blindly
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from windrow_master.fleet.model import CommandRow, CommandState
from windrow_master.fleet.repository import CommandRepository
from windrow_master.fleet.states import CommandEvent, step_command
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import CommandId, HostId
from windrow_proto.model import Command, CommandKind, CommandPhase, CommandStatus
from windrow_proto.units import MINUTE
from windrow_proto.wire_command import encode_command, without_secrets

NOT_AFTER_NS: Final = 10 * MINUTE
"""A command that a host did not hear of in this time is stale; who still wants it asks again."""
DEADLINE_NS: Final = 10 * MINUTE
"""Silence about an accepted command that makes its fate Unknown; every status starts it anew."""
OPEN_PER_HOST_MAX: Final = 1_024
"""Open commands of one host; more means that somebody loops."""

_EVENTS: Final = {
    CommandPhase.ACCEPTED: CommandEvent.ACCEPT,
    CommandPhase.RUNNING: CommandEvent.RUN,
    CommandPhase.SUCCEEDED: CommandEvent.SUCCEED,
    CommandPhase.FAILED: CommandEvent.FAIL,
    CommandPhase.CANCELLED: CommandEvent.CANCEL,
    CommandPhase.REFUSED: CommandEvent.REFUSED,
    CommandPhase.NEVER_SEEN: CommandEvent.NEVER_SEEN,
}
_SENDABLE: Final = tuple(state for state in CommandState if step_command(state, CommandEvent.SEND).moved)
_ERRORS: Final = {
    CommandEvent.EXPIRE: ("deadline_exceeded", "The host did not take the command before its not-after time."),
    CommandEvent.NEVER_SEEN: ("deadline_exceeded", "The host never saw the command, and it is too late for it now."),
    CommandEvent.ABANDON: ("host_unreachable", "The host was retired before the command was done."),
}

WORDS: Final = {
    CommandKind.CREATE: "The preparation of work",
    CommandKind.START: "The start of work",
    CommandKind.DELETE: "The end of work",
    CommandKind.MEASURE_BANDWIDTH: "A measurement of bandwidth",
    CommandKind.BENCHMARK: "A benchmark",
    CommandKind.PARTITION: "The cutting of a GPU",
}
"""What a host is asked to do, for people."""
_ENDS: Final = {
    CommandState.SUCCEEDED: "is done",
    CommandState.CANCELLED: "was cancelled",
    CommandState.TIMED_OUT: "took too long",
}


def ended_words(row: CommandRow) -> str:
    """One sentence about a command that is done."""
    said = f"{WORDS.get(row.kind, 'A command')} {_ENDS.get(row.state, 'failed')}"
    return f"{said}: {row.error_detail}" if row.error_detail else said


class CommandQueue:
    """The commands. `wake` is called on the loop after a commit that has something to send; `told` in the transaction
    for every change of a command."""

    def __init__(self, wake: Callable[[HostId], None], told: Callable[[UnitOfWork, CommandRow], None]) -> None:
        self._wake = wake
        self._told = told

    def newest(self, uow: UnitOfWork, host_id: HostId | None, before: str | None, limit: int) -> Sequence[CommandRow]:
        """The newest commands, of one host or of all, from the one before this id."""
        return uow[CommandRepository].list(host_id, before, limit)

    def has_failed_for(self, uow: UnitOfWork, command_id: CommandId, span_ns: int) -> bool:
        """True if it ended so long ago, and without success."""
        row = uow[CommandRepository].get(command_id)
        if row is None or not row.is_done or row.state is CommandState.SUCCEEDED:
            return False
        return uow.now_wall_ns - (row.done_at_ns or 0) >= span_ns

    def issue(
        self,
        uow: UnitOfWork,
        host_id: HostId,
        command: Command,
        not_after_ns: int | None = None,
        *,
        subject: str = "",
        deadline_ns: int = DEADLINE_NS,
        actor: str = "master",
    ) -> CommandId:
        """Queue a command; it is sent after the commit, or when the host is back. An empty id is minted.

        not_after_ns: wall time after which the host refuses it; None: ten minutes from now.
        """
        if not command.command_id:
            command = replace(command, command_id=CommandId(uow.mint("command")))
        command_id = command.command_id
        row = CommandRow(
            command_id=command_id,
            host_id=host_id,
            kind=command.kind,
            body=encode_command(command),
            subject=subject or _subject(command),
            not_after_ns=uow.now_wall_ns + NOT_AFTER_NS if not_after_ns is None else not_after_ns,
            deadline_ns=deadline_ns,
            created_at_ns=uow.now_wall_ns,
        )
        uow[CommandRepository].add(row)
        uow.audit(actor, "command.issue", command_id, command.kind.name.lower(), {"host": host_id})
        uow.after_commit(lambda: self._wake(host_id))
        return command_id

    def sent(self, uow: UnitOfWork, command_ids: tuple[CommandId, ...]) -> None:
        """The trunk has handed these to the link."""
        uow[CommandRepository].sent(command_ids, _SENDABLE, uow.now_wall_ns)

    def on_status(self, uow: UnitOfWork, host_id: HostId, status: CommandStatus) -> CommandRow | None:
        """Take in what a host says of a command; None when it is not a command of that host."""
        row = uow[CommandRepository].get(status.command_id)
        event = _EVENTS.get(status.phase)
        if row is None or row.host_id != host_id or event is None:
            return None
        state = row.state
        if event is CommandEvent.NEVER_SEEN and uow.now_wall_ns > row.not_after_ns:
            # Its time was over before the host was asked; only our own look at the clock comes later than its answer.
            state = step_command(state, CommandEvent.EXPIRE).state
        step = step_command(state, event)
        if row.is_done:
            return row
        after = replace(row, state=step.state, heard_at_ns=uow.now_wall_ns)
        if event is not CommandEvent.NEVER_SEEN:
            after = replace(
                after,
                step=status.step,
                progress_permille=max(row.progress_permille, min(status.progress_permille, 1000)),
                error_code=status.error_code,
                error_detail=status.error_detail,
                result=dict(status.result),
            )
        return self._save(uow, after, event)

    def judge(self, uow: UnitOfWork, row: CommandRow) -> CommandRow | None:
        """Return the event that time alone makes of an open command; None when nothing changes."""
        now = uow.now_wall_ns
        heard = row.heard_at_ns or row.sent_at_ns or row.created_at_ns
        if row.state in (CommandState.QUEUED, CommandState.SENT):
            event = CommandEvent.EXPIRE if now > row.not_after_ns else None
        else:
            event = CommandEvent.SILENCE if now - heard > row.deadline_ns else None
        if row.state is CommandState.UNKNOWN:
            # Asked for again until the host has answered; how often is the trunk's to say.
            uow.after_commit(lambda: self._wake(row.host_id))
        step = step_command(row.state, event) if event is not None else None
        if event is None or step is None or not step.moved:
            return None
        after = self._save(uow, replace(row, state=step.state), event)
        uow.after_commit(lambda: self._wake(row.host_id))
        return after

    def abandon(self, uow: UnitOfWork, host_id: HostId) -> None:
        """The host is gone for good: nothing of it will ever be done."""
        for row in uow[CommandRepository].open_of_host(host_id):
            step = step_command(row.state, CommandEvent.ABANDON)
            self._save(uow, replace(row, state=step.state), CommandEvent.ABANDON)

    def _save(self, uow: UnitOfWork, row: CommandRow, event: CommandEvent) -> CommandRow:
        if row.is_done:
            code, detail = _ERRORS.get(event, ("", ""))
            row = replace(
                row,
                done_at_ns=uow.now_wall_ns,
                progress_permille=1000 if row.state is CommandState.SUCCEEDED else row.progress_permille,
                error_code=row.error_code or code,
                error_detail=row.error_detail or detail,
                body=without_secrets(row.body) if row.kind is CommandKind.CREATE else row.body,
            )
            fields = {"host": row.host_id, "state": str(row.state), "error": row.error_code}
            uow.audit(f"host/{row.host_id}", "command.done", row.command_id, row.error_detail[:200], fields)
        uow[CommandRepository].save(row)
        self._told(uow, row)
        return row


def _subject(command: Command) -> str:
    if command.create is not None:
        return command.create.workload_id
    return command.delete.workload_id if command.delete is not None else ""


def is_under_way(row: CommandRow) -> bool:
    """Return whether it may still change a workload."""
    return row.kind in (CommandKind.CREATE, CommandKind.DELETE) and not row.is_done


def to_send(row: CommandRow, now_ns: int) -> bool:
    """Return whether the trunk should put it on the wire (again)."""
    return row.state in (CommandState.QUEUED, CommandState.SENT) and now_ns <= row.not_after_ns


def to_ask(row: CommandRow, now_ns: int) -> bool:
    """Return whether the trunk should ask what became of it, at a welcome: everything open that is not sent again."""
    return not row.is_done and not to_send(row, now_ns)
