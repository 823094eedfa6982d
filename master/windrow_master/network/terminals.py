"""Opens shells with terminals in running workloads and watches over them, for the WebSocket of a browser.

 POST ─▶ may use it, runs, no simulated host ─▶ ticket ─▶ WebSocket ─▶ share ─▶ channel ─▶ "it runs" ─▶ audit
 over when: the shell ends, nobody types or prints for an hour, the right or the machine is gone ─▶ audit, event

Only what is typed and the size of the terminal reach the host: nothing of the request does.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from windrow_master.clusters import lookup
from windrow_master.clusters.model import Workload
from windrow_master.clusters.service import ClusterService
from windrow_master.loops import ends_alone
from windrow_master.network.channels import ChannelStream
from windrow_master.network.public_ports import LIVING, is_running, member
from windrow_master.network.terminal_tickets import TICKET_LIFE_NS, TerminalTicket, TerminalTickets
from windrow_master.network.workload_io import WorkAccess
from windrow_master.placement.model import Runtime
from windrow_master.shares import ShareLimits, Shares
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Conflict, DeadlineExceeded, LinkClosed, WindrowError, from_code
from windrow_proto.ids import ClusterId
from windrow_proto.messages import CHANNEL_CHUNK_BYTES, ChannelClose
from windrow_proto.model import ChannelPurpose
from windrow_proto.ports import Clock
from windrow_proto.terminals import SIZE_STREAM, TerminalSize, encode_size
from windrow_proto.units import HOUR, SECOND

START_S: Final = 40.0
"""For a host to start the shell: its container daemon has half a minute."""
RIGHT_LOOK_NS: Final = 2 * SECOND
"""Between two looks whether whoever asked might still ask: as for streams of events."""
IDLE_NS: Final = 1 * HOUR
"""Without a byte either way: a forgotten tab would keep its machine from being idle, and so from ending."""
IDLE_LOOK_NS: Final = 30 * SECOND
TERMINALS: Final = ShareLimits(limit=192, per_account=16, reserve=16)
"""Open terminals. Each is one of its host's channels, too."""
OLDER: Final = "This machine's host runs an older agent, which has no terminals. Ask its provider to update the agent."
GONE: Final = "Your right to this machine ended."
ENDED: Final = "The machine has ended."
IDLE: Final = "Closed after an hour without input and output."


@dataclass(frozen=True, slots=True)
class IssuedTicket:
    """The secret of a ticket, shown once, and its end in wall nanoseconds."""

    secret: str = field(repr=False)
    expires_at_ns: int


@dataclass(slots=True, eq=False)
class Terminal:
    """One open terminal."""

    ticket: TerminalTicket
    workload: Workload
    channel: ChannelStream
    since_ns: int
    moved_ns: int
    bytes_in: int = 0
    bytes_out: int = 0
    exit_code: int | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def type(self, data: bytes, now_ns: int) -> None:
        """Send keys to the shell; waits while it reads none. Raises LinkClosed."""
        self.moved_ns = now_ns
        self.bytes_in += len(data)
        for start in range(0, len(data), CHANNEL_CHUNK_BYTES):
            await self.channel.send(data[start : start + CHANNEL_CHUNK_BYTES])

    async def resize(self, size: TerminalSize) -> None:
        """Tell its programs the size. Raises LinkClosed."""
        await self.channel.send(encode_size(size), SIZE_STREAM)

    async def output(self, now_ns: int) -> bytes | None:
        """The next output; None when the shell has ended. Raises LinkClosed, and what the host says went wrong."""
        step = await self.channel.receive()
        if isinstance(step, ChannelClose):
            if step.error_code:
                raise from_code(step.error_code, step.detail, self.ticket.cluster_id)
            self.exit_code = step.exit_code
            return None
        self.moved_ns = now_ns
        self.bytes_out += len(step.data)
        return step.data


class TerminalService:
    """Every open terminal of this Master."""

    def __init__(self, store: Store, clusters: ClusterService, inside: WorkAccess, clock: Clock) -> None:
        self._store, self._clusters, self._inside, self._clock = store, clusters, inside, clock
        self._tickets = TerminalTickets()
        self._live: set[Terminal] = set()
        self.terminals = Shares("terminals", "Close one.", TERMINALS)
        clusters.on_change(self._on_change)

    async def issue(self, ticket: TerminalTicket) -> IssuedTicket:
        """A secret that opens this terminal once. Only the account that rents a cluster goes inside it. Raises
        NotFound, Conflict (it does not run, or has no shell), TooMany."""
        await self._running(ticket)
        secret = secrets.token_urlsafe(32)
        self._tickets.keep(secret, ticket, self._clock.monotonic_ns())
        return IssuedTicket(secret, self._clock.wall_ns() + TICKET_LIFE_NS)

    def redeem(self, secret: str, cluster_id: ClusterId) -> TerminalTicket:
        """The ticket of this secret, which is used by that. Raises Unauthenticated."""
        return self._tickets.take(secret, cluster_id, self._clock.monotonic_ns())

    @asynccontextmanager
    async def open(self, ticket: TerminalTicket, size: TerminalSize) -> AsyncIterator[Terminal]:
        """A shell of this size, which ends with the context. Raises what `issue` does, HostUnreachable,
        DeadlineExceeded."""
        principal = ticket.principal
        with self.terminals.take(principal.holder, is_trusted=principal.is_trusted):
            workload = await self._running(ticket)
            async with self._inside.channel(principal, workload, ChannelPurpose.TERMINAL) as channel:
                await _until_started(channel, ticket.cluster_id)
                now_ns = self._clock.monotonic_ns()
                terminal = Terminal(ticket, workload, channel, now_ns, now_ns)
                await terminal.resize(size)
                await self._store.write(lambda uow: _note_open(uow, terminal), name="terminal.open")
                self._live.add(terminal)
                try:
                    yield terminal
                finally:
                    self._live.discard(terminal)
                    with ends_alone("terminal_end", cluster=ticket.cluster_id):
                        await asyncio.shield(self._note_end(terminal))

    async def until_over(self, terminal: Terminal) -> str:
        """Wait until the right to it or its machine is gone, or nobody uses it; returns which, in words."""
        loop = asyncio.get_running_loop()
        looks = [loop.create_task(look(terminal)) for look in (self._until_idle, self._until_ended, self._until_gone)]
        try:
            done, _ = await asyncio.wait(looks, return_when=asyncio.FIRST_COMPLETED)
            return done.pop().result()
        finally:
            for look in looks:
                look.cancel()

    async def runs(self, terminal: Terminal) -> bool:
        """Return whether its workload runs."""
        return await self._store.read(lambda uow: _runs(uow, terminal))

    async def _until_gone(self, terminal: Terminal) -> str:
        while await terminal.ticket.is_allowed():
            await self._clock.sleep_ns(RIGHT_LOOK_NS)
        return GONE

    async def _until_ended(self, terminal: Terminal) -> str:
        while True:
            terminal.changed.clear()
            with suppress(WindrowError):  # the store does not answer: its host knows of an end, too
                if not await self.runs(terminal):
                    return ENDED
            await terminal.changed.wait()

    async def _until_idle(self, terminal: Terminal) -> str:
        while self._clock.monotonic_ns() - terminal.moved_ns < IDLE_NS:
            await self._clock.sleep_ns(IDLE_LOOK_NS)
        return IDLE

    async def _running(self, ticket: TerminalTicket) -> Workload:
        found = member(await self._clusters.get_own(ticket.principal, ticket.cluster_id), ticket.rank)
        if found.runtime == Runtime.SIMULATED:
            raise Conflict("A simulated host runs nothing, so it has no terminal.", subject=ticket.cluster_id)
        return found

    def _on_change(self, cluster_id: ClusterId) -> None:
        for terminal in self._live:
            if terminal.ticket.cluster_id == cluster_id:
                terminal.changed.set()

    async def _note_end(self, terminal: Terminal) -> None:
        seconds = (self._clock.monotonic_ns() - terminal.since_ns) // SECOND
        await self._store.write(lambda uow: _note_end(uow, terminal, seconds), name="terminal.end")


async def _until_started(channel: ChannelStream, cluster_id: ClusterId) -> None:
    """Wait for the host's word that the shell runs. Raises what it says instead."""
    try:
        async with asyncio.timeout(START_S):
            step = await channel.receive()
    except TimeoutError:
        raise DeadlineExceeded(f"The host started no shell within {START_S:.0f} s.") from None
    if not isinstance(step, ChannelClose):
        return
    if step.error_code == "invalid_input" and step.detail.startswith("This agent serves no channel"):
        raise Conflict(OLDER, subject=cluster_id)
    if step.error_code:
        raise from_code(step.error_code, step.detail, cluster_id)
    raise LinkClosed(subject=cluster_id)


def _runs(uow: UnitOfWork, terminal: Terminal) -> bool:
    cluster = lookup.find(uow, terminal.ticket.cluster_id)
    held = () if cluster is None or cluster.phase not in LIVING else lookup.workloads_of(uow, cluster.cluster_id)
    return any(one.workload_id == terminal.workload.workload_id and is_running(one) for one in held)


def _note_open(uow: UnitOfWork, terminal: Terminal) -> None:
    fields = {"host": terminal.workload.host_id, "rank": str(terminal.workload.rank)}
    uow.audit(terminal.ticket.principal.actor, "terminal.open", terminal.ticket.cluster_id, "asked for", fields)


def _note_end(uow: UnitOfWork, terminal: Terminal, seconds: int) -> None:
    principal, cluster_id = terminal.ticket.principal, terminal.ticket.cluster_id
    fields = {"bytes_in": str(terminal.bytes_in), "bytes_out": str(terminal.bytes_out), "seconds": str(seconds)}
    uow.audit(principal.actor, "terminal.end", cluster_id, "ended", fields)
    said = f"A terminal of {principal.user_name or principal.account_name} was open for {seconds:,} s"
    uow.event("terminal.ended", (cluster_id, principal.account_id), said, fields, principal.actor)
