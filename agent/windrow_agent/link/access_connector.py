"""Connects this host to an Access and keeps it connected: measures, dials in order, moves when another is clearly
nearer."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final, Protocol

import structlog

from windrow_agent.core import access_choice
from windrow_agent.core.access_choice import Measured
from windrow_agent.core.access_distrust import Distrust
from windrow_proto.errors import Banned, CertificateRefused, KeptBack, LinkClosed, WindrowError
from windrow_proto.ids import HostId
from windrow_proto.messages import AccessPoint, RegionMap
from windrow_proto.ports import Clock, Dialer, DialledLink, FrameLink, PingAnswer, Rng, WarmLink
from windrow_proto.units import MILLISECOND, MINUTE, SECOND

log = structlog.get_logger()

PING_NS: Final = 1500 * MILLISECOND
DIAL_NS: Final = 3 * SECOND
"""Handshake included; a loaded relay takes a second."""
DIAL_NS_MAX: Final = 12 * SECOND
"""A dial has twice as long after each round that led nowhere: a handshake over a satellite's line (0.8 s there and
back, 64 kbit/s, some loss) does not fit into the first."""
MEASURE_EVERY_NS: Final = 5 * MINUTE
AGREE_NS: Final = 30 * SECOND
"""Between the two measurements that have to agree on a move: a crowd that makes an Access slow is gone by then."""
PINGS_MAX: Final = 16
BLIND_ROUNDS: Final = 2
"""In which a host with one Access dials it again without a ping before: in a storm a ping that comes through takes as
much of an Access as the connection that it puts off."""
STABLE_NS: Final = SECOND
"""A connection that lasted this long ends the row of failures before it: whoever drops a host time and again is dialled
once a second at most, and says itself when that is too often."""
SOON_NS: Final = 10 * SECOND
"""After a connection that lasted: so long the pauses between rounds do not grow. Whoever was killed starts again within
seconds, and tells those who come all at once when to come."""
FAILOVER_JITTER_NS: Final = SECOND
"""The hosts of a dead Access come to the next one within this, not all at once."""
BANNED_WAIT_NS: Final = 5 * MINUTE
WARM_AFTER_NS: Final = 20 * SECOND
"""From a connection to its second one: a storm has passed by then, and who is sent away at once makes none."""
WARM_LOOK_NS: Final = 30 * SECOND
"""Before the others are measured again, while none of them answers: they may just be starting."""
WARM_PING_NS: Final = 12 * SECOND
"""Between two pings of the second connection, which carry canaries: four of them take less than a minute."""
WARM_PING_NS_MAX: Final = 40 * SECOND
"""An Access gives a silent connection up after two minutes, however rare canaries are."""
WARM_ANSWER_NS: Final = 10 * SECOND
"""For an answer on the second connection, to a canary over four hops. It is not in use, and its keepalive finds a dead
line; an Access that is only slow would be slower yet if all its second connections were made anew."""
WARM_DIAL_NS: Final = SECOND
"""For a stream on a connection that is there: a round trip."""
WARM_JITTER_NS: Final = SECOND // 2
"""As FAILOVER_JITTER_NS, without handshakes."""
LET_GO_NS: Final = 5 * SECOND
"""From the first moment of a second connection in its new part to the end of its pings: whoever loses its Access among
a thousand others has more urgent things to do."""
BUSY_NS_MAX: Final = MINUTE
"""However long an Access says that it is busy: it may be anybody's, and lie."""
LOOK_EVERY_NS: Final = 30 * SECOND
"""Between two lookups: what DNS said holds at least as long for whoever cannot reach any Access."""
ASK_NS_FIRST: Final = 30 * SECOND
ASK_NS_MAX: Final = 8 * MINUTE
"""Between two questions for a newer map: all hosts of a region may have the same one at once, of one Master."""

Serve = Callable[[FrameLink], Awaitable[None]]


@dataclass(slots=True)
class PreparedConnection:
    """A connection by a second Access that the Master has greeted already: serve it, or close its link."""

    link: DialledLink
    serve: Callable[[], Awaitable[None]]


@dataclass(slots=True)
class WarmConnection:
    """The connection to a second Access. ready: greeted there, so that it can serve at once; None: not (any more)."""

    address: str
    warm: WarmLink
    ready: PreparedConnection | None = None


Prepare = Callable[[DialledLink], Awaitable[PreparedConnection]]
Look = Callable[[], Awaitable[tuple[str, ...]]]
"""Finds addresses to try where no map helps; never raises, and may say anything."""
Judge = Callable[[RegionMap], Awaitable[bool]]
Ask = Callable[[Judge], Awaitable[None]]
"""Asks elsewhere for maps that are newer than the one known, until the judge takes one; never raises."""


class Canaries(Protocol):
    """Canaries of the connection to the first Access, answered by the Master over a second one."""

    def canary(self) -> bytes:
        """A letter to send; empty when there is nothing to ask."""

    def on_letter(self, letter: bytes) -> bool:
        """Its answer; returns whether the first Access keeps messages back."""

    def pause_ns(self) -> int:
        """At least so long between two: the Master's wish, who answers those of the whole fleet."""


async def look_nowhere() -> tuple[str, ...]:
    """There is no other place to look."""
    return ()


async def ask_nobody(judge: Judge) -> None:
    """There is nobody to ask."""


def named(error: WindrowError) -> WindrowError:
    """The error that the other side named, or else this one."""
    return error.__cause__ if isinstance(error.__cause__, WindrowError) else error


def shorter(answer: PingAnswer, before: PingAnswer | None) -> PingAnswer:
    """With the shorter of two round trips: a busy machine at either end adds to one, and nothing makes one shorter."""
    return answer if before is None else replace(answer, rtt_ns=min(answer.rtt_ns, before.rtt_ns))


def told_s(error: WindrowError) -> float:
    """When the other side said to come back, in seconds from now; 0 if it did not."""
    return round(named(error).retry_after_ns / SECOND, 2)


class AccessConnector:
    """Keeps this host connected to an Access. serve runs one connection to its end and raises the error that ended it;
    prepare greets by one that serves when this one has died.

    ask, look: only while no Access of the map answers a ping, first for a newer map, then for addresses beyond it. Of
    these only those are dialled that answered a ping, whose handshake shows that our authority made them an Access.
    """

    def __init__(
        self,
        host_id: HostId,
        dialer: Dialer,
        clock: Clock,
        rng: Rng,
        regions: RegionMap,
        serve: Serve,
        look: Look = look_nowhere,
        ask: Ask = ask_nobody,
        canaries: Canaries | None = None,
        prepare: Prepare | None = None,
    ) -> None:
        self.regions = regions
        self.address: str | None = None
        self.answers: dict[str, PingAnswer] = {}
        self.refused: WindrowError | None = None
        self._host_id, self._dialer, self._clock, self._rng, self._serve = host_id, dialer, clock, rng, serve
        self._move = asyncio.Event()
        self._lost: str | None = None
        self._attempt = 0
        self._left_ns = clock.monotonic_ns() - SOON_NS
        self._look, self._ask, self._canaries, self._prepare = look, ask, canaries, prepare
        self._found: tuple[str, ...] = ()
        self._looked_ns: int | None = None
        self._ask_due_ns = self._ask_pause_ns = 0
        self._busy_until_ns: dict[str, int] = {}
        self._distrust = Distrust()
        self._told: set[str] = set()
        """Accesses whose last word was when to come back: they are there, and a ping counts there as a call."""
        self._warm: WarmConnection | None = None
        self._let_go: WarmLink | None = None

    @property
    def answer(self) -> PingAnswer | None:
        """The last answer of the Access in use to a ping."""
        return self.answers.get(self.address) if self.address is not None else None

    def move(self) -> None:
        """End the present connection and dial again: the certificate or the map changed."""
        self._move.set()

    async def run(self) -> None:
        """Stay connected until cancelled."""
        if len(self.regions.points) != 1:  # there is a choice; a ping costs an Access as much as a connection
            await self.measure()
        while True:
            best = access_choice.order(self._host_id, self.regions, self._measured(), self.address)
            addresses = tuple(sorted(best, key=lambda address: (self._distrust_ns(address), address == self._lost)))
            if await self._try(addresses):
                continue
            is_soon = self._clock.monotonic_ns() - self._left_ns < SOON_NS
            self._attempt = 1 if is_soon else self._attempt + 1
            # Who has said when to come back is believed, also where that is now: he knows how many we are.
            waits_ns = [self._busy_ns(address) for address in addresses if address in self._busy_until_ns]
            if len(waits_ns) < len(addresses) or not addresses:
                waits_ns.append(access_choice.backoff_ns(self._attempt, self._rng.uniform()))
            wait_ns = max(min(waits_ns), 50 * MILLISECOND)
            log.warning("no_access_reached", tried=len(addresses), wait_s=round(wait_ns / SECOND, 2))
            await self._clock.sleep_ns(wait_ns)
            if len(self.regions.points) == 1 and self._attempt <= BLIND_ROUNDS:
                continue
            await self.measure(self._told)
            if not self._is_any_there() and not await self._asked():
                await self._try(await self._looked_up())

    async def _try(self, addresses: tuple[str, ...]) -> bool:
        """Visit one after the other, and always next the one that is warm; returns whether the choice should be made
        anew."""
        left = list(addresses)
        while left or self._warm is not None:
            address = self._warm.address if self._warm is not None else left[0]
            if address in left:
                left.remove(address)
            if self._busy_ns(address):
                await self._cool()
            elif await self._visit(address):
                return True
        return False

    def _busy_ns(self, address: str) -> int:
        """The time that this Access still wants to be left alone."""
        return max(0, self._busy_until_ns.get(address, 0) - self._clock.monotonic_ns())

    def _distrust_ns(self, address: str) -> int:
        return self._distrust.left_ns(address, self._clock.monotonic_ns())

    def _is_any_there(self) -> bool:
        """True if any Access of the map answered the last ping, or said when to come back."""
        return any(point.address in self.answers or point.address in self._told for point in self.regions.points)

    async def _asked(self) -> bool:
        """Look for a newer map; returns whether there is one, and an Access of it answers."""
        now_ns = self._clock.monotonic_ns()
        if now_ns < self._ask_due_ns:
            return False
        self._ask_pause_ns = min(ASK_NS_MAX, max(ASK_NS_FIRST, 2 * self._ask_pause_ns))
        self._ask_due_ns = now_ns + int(self._ask_pause_ns * (0.5 + self._rng.uniform()))
        await self._ask(self._take)
        return self._is_any_there()

    async def _take(self, newer: RegionMap) -> bool:
        """Use this map if an Access of it answers: a Master whose Accesses are away, too, has an empty one."""
        answers = await self._pinged(point.address for point in newer.points)
        if answers:
            self.regions, self.answers = newer, answers
        return bool(answers)

    async def _looked_up(self) -> tuple[str, ...]:
        """Addresses beyond the map that answer pings, the nearest first. What was found once is kept if DNS fails."""
        now_ns = self._clock.monotonic_ns()
        if self._looked_ns is None or now_ns - self._looked_ns >= LOOK_EVERY_NS:
            self._looked_ns = now_ns
            self._found = await self._look() or self._found
        known = {point.address for point in self.regions.points}
        last = () if self.address is None else (self.address,)
        found = dict.fromkeys((*last, *self._found))
        points = tuple(AccessPoint(address, "", address) for address in found if address not in known)
        answers = await self._pinged(point.address for point in points)
        if points:
            log.info("looked_for_access", found=len(points), answered=len(answers))
        self.answers |= answers
        able = tuple(point for point in points if point.address in answers)
        return access_choice.order(self._host_id, RegionMap(0, able), self._measured(), None)

    async def measure(self, but: Collection[str] = ()) -> None:
        """Ping every Access of the map, and the one in use if it is not there; who does not answer has no figure. but:
        those whose figures stay as they are."""
        in_use = () if self.address is None else (self.address,)
        addresses = dict.fromkeys((*(point.address for point in self.regions.points), *in_use))
        kept = {address: answer for address, answer in self.answers.items() if address in but}
        self.answers = kept | await self._pinged(address for address in addresses if address not in but)

    async def _pinged(self, addresses: Iterable[str]) -> dict[str, PingAnswer]:
        gate = asyncio.Semaphore(PINGS_MAX)

        async def ping(address: str) -> tuple[str, PingAnswer | None]:
            async with gate:
                try:
                    return address, await self._dialer.ping(address, PING_NS)
                except WindrowError:
                    return address, None

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(ping(address)) for address in access_choice.mixed(self._host_id, addresses)]
        return {address: answer for address, answer in (task.result() for task in tasks) if answer is not None}

    def _measured(self) -> dict[str, Measured]:
        return {
            address: Measured(answer.rtt_ns, answer.load_permille, answer.draining)
            for address, answer in self.answers.items()
        }

    def _able(self) -> dict[str, Measured]:
        """Of the measured those that are neither busy nor distrusted."""
        measured = self._measured().items()
        return {at: one for at, one in measured if not self._busy_ns(at) and not self._distrust_ns(at)}

    async def _visit(self, address: str) -> bool:
        """Dial and be served; returns whether the next choice should be made anew (it was a real connection).

        It is after one that lasted, too: the map of its beginning is old, and Accesses may have come since.
        """
        self._move.clear()  # before the dial: what changes while it dials, this connection does not have
        try:
            serve = await self._dialled(address)
        except WindrowError as error:
            log.info("dial_failed", address=address, detail=error.detail, told_s=told_s(error))
            self._note(address, error)
            if address not in self._told:
                self.answers.pop(address, None)
            return False
        self._told.discard(address)
        self.address, self._lost, is_anew = address, None, False
        began_ns = self._clock.monotonic_ns()
        is_moving = await self._served(serve)
        if is_moving:
            await self._cool()  # its certificate may be the old one
            return True
        now_ns = self._clock.monotonic_ns()
        if now_ns - began_ns >= STABLE_NS:
            self._left_ns = now_ns
            self._attempt = self._ask_due_ns = self._ask_pause_ns = 0
            self._lost, is_anew = address, True
        self.answers.pop(address, None)  # the next one first, this one last; the next measurement finds it again
        jitter_ns = FAILOVER_JITTER_NS if self._warm is None else WARM_JITTER_NS
        await self._clock.sleep_ns(int(self._rng.uniform() * jitter_ns))
        if isinstance(self.refused, Banned):
            await self._clock.sleep_ns(BANNED_WAIT_NS)
        return is_anew

    async def _dialled(self, address: str) -> Callable[[], Awaitable[None]]:
        """Returns the function that serves a stream to this Access: the one that is ready there, or a new one, on the
        warm connection if that still lives."""
        if self._warm is not None and self._warm.address != address:
            await self._cool()
        second, self._warm = self._warm, None
        if second is not None:
            if second.ready is not None and not second.ready.link.is_closed:
                self._let_go = second.warm
                return second.ready.serve
            try:
                link = await second.warm.connect(WARM_DIAL_NS)
                return lambda: self._serve(link)
            except LinkClosed as error:
                if error.__cause__ is not None:
                    raise
            finally:
                await second.warm.close()
        dialled = await self._dialer.connect(address, self._dial_ns())
        return lambda: self._serve(dialled)

    def _dial_ns(self) -> int:
        return min(DIAL_NS_MAX, DIAL_NS << min(self._attempt, 2))

    async def _served(self, serve_link: Callable[[], Awaitable[None]]) -> bool:
        """Serve a connection beside watching for a better place; returns whether it was ended to move."""
        ended: list[WindrowError] = []

        async def serve() -> None:
            try:
                await serve_link()
            except WindrowError as error:
                ended.append(error)

        async with asyncio.TaskGroup() as group:
            serving = group.create_task(serve(), name="serve")
            watching = group.create_task(self._watch_regions(), name="regions")
            warming = group.create_task(self._keep_warm(), name="warm")
            moving = group.create_task(self._move.wait(), name="move")
            letting_go = group.create_task(self._end_pings(), name="pings")
            await asyncio.wait({serving, moving}, return_when=asyncio.FIRST_COMPLETED)
            is_moving = moving.done()
            for task in (serving, watching, warming, moving, letting_go):
                task.cancel()
        for error in ended:
            said = {"code": error.code, "detail": error.detail, "told_s": told_s(error)}
            log.warning("connection_ended", address=self.address, **said)
            self._note(self.address or "", error)
        return is_moving

    async def _end_pings(self) -> None:
        """Of the connection that was the second one."""
        warm, self._let_go = self._let_go, None
        if warm is not None:
            try:
                await self._clock.sleep_ns(LET_GO_NS)
            finally:
                await warm.close()

    def _note(self, address: str, error: WindrowError) -> None:
        cause = named(error)
        self.refused = cause if isinstance(cause, Banned | CertificateRefused) else None
        self._note_busy(address, cause)
        if isinstance(cause, KeptBack):
            self._note_kept_back(address)

    def _note_busy(self, address: str, cause: WindrowError) -> None:
        now_ns = self._clock.monotonic_ns()
        if not self._busy_ns(address):
            self._busy_until_ns.pop(address, None)
        for one in [one for one, until_ns in self._busy_until_ns.items() if until_ns + BUSY_NS_MAX < now_ns]:
            del self._busy_until_ns[one]  # it may be none of our map any more
            self._told.discard(one)
        self._told.discard(address)
        if cause.retry_after_ns > 0:
            self._told.add(address)
            # With a jitter of ours: all whom it sends away at once are told the same.
            wait_ns = min(cause.retry_after_ns, BUSY_NS_MAX) * (1 + 0.5 * self._rng.uniform())
            self._busy_until_ns[address] = max(self._busy_until_ns.get(address, 0), now_ns + int(wait_ns))

    async def _watch_regions(self) -> None:
        """Measure now and then, and move when it is worth it, or this Access drains, twice in a row."""
        while True:
            await self._clock.sleep_ns(self._measure_pause_ns())
            before = self.answers
            await self.measure()
            if self.address in before:  # that it serves us says more than a ping that was lost
                self.answers.setdefault(self.address, before[self.address])
            if self._better() is not None:
                first = self.answers
                await self._clock.sleep_ns(int(AGREE_NS * (0.5 + self._rng.uniform())))
                await self.measure()
                self.answers = first | {
                    address: shorter(answer, first.get(address)) for address, answer in self.answers.items()
                }
            better = self._better()
            if better is not None:
                log.info("moving", to=better, away_from=self.address)
                self.address = better
                self._move.set()

    def _measure_pause_ns(self) -> int:
        """Soon after a connection whose round trip nobody knows; a crowd at once would measure itself. With one
        Access, which its whole region has, any time until the second measurement: a connection each, and it has just
        had one of each."""
        if self.address in self.answers:
            return int(MEASURE_EVERY_NS * (0.8 + 0.4 * self._rng.uniform()))
        if len(self.regions.points) == 1:
            return WARM_AFTER_NS + int(MEASURE_EVERY_NS * self._rng.uniform())
        return int(WARM_AFTER_NS * (0.8 + 2.4 * self._rng.uniform()))

    def _better(self) -> str | None:
        """Another Access that answered and is worth the move."""
        able = self._able()
        best = access_choice.order(self._host_id, self.regions, able, self.address)
        return best[0] if best and best[0] != self.address and best[0] in able else None

    # --- the second connection -------------------------------------------------------------------------------------

    async def _keep_warm(self) -> None:
        """Keep a connection to a second Access, and another when that one goes; what is there when this is cancelled
        stays, for the next dial."""
        while True:
            await self._clock.sleep_ns(int(WARM_AFTER_NS * (0.5 + self._rng.uniform())))
            address = self._second()
            if address is None:
                if any(point.address != self.address for point in self.regions.points):
                    await self._clock.sleep_ns(int(WARM_LOOK_NS * (0.5 + self._rng.uniform())))
                    await self.measure()
                continue
            try:
                self._warm = second = WarmConnection(address, await self._dialer.warm(address, DIAL_NS))
                if self._prepare is not None:
                    second.ready = await self._prepare(await second.warm.connect(DIAL_NS))
                log.info("second_connection", address=address)
                await self._ping_warm(second)
            except WindrowError as error:
                log.info("second_connection_ended", address=address, detail=error.detail)
                self._note_busy(address, named(error))
                if not self._busy_ns(address):
                    self.answers.pop(address, None)  # the next measurement finds it again
            await self._cool()

    def _second(self, held: str | None = None) -> str | None:
        """Chooses the Access of the second connection, which is at `held` now."""
        return access_choice.second(self._host_id, self.regions, self._able(), self.address, held)

    async def _ping_warm(self, second: WarmConnection) -> None:
        """Until it ends or drains, or another is the better second one."""
        address, warm, ready = second.address, second.warm, second.ready
        due_ns, before = 0, None
        while self._second(address) == address and not (ready is not None and ready.link.is_closed):
            pause_ns = WARM_PING_NS if self._canaries is None else max(WARM_PING_NS, self._canaries.pause_ns())
            letter = b""  # the first one measures; with a letter the way to the Master counts as well
            if self._canaries is not None and before is not None and self._clock.monotonic_ns() >= due_ns:
                letter = self._canaries.canary()
                due_ns = self._clock.monotonic_ns() + int(0.8 * pause_ns)
            answer = await warm.ping(WARM_ANSWER_NS, letter)
            self.answers[address] = shorter(answer, self.answers.get(address) if letter else before)
            if letter:
                self._judge(answer.letter)
            else:
                before = answer
            await self._clock.sleep_ns(int(min(pause_ns, WARM_PING_NS_MAX) * (0.8 + 0.4 * self._rng.uniform())))

    def _judge(self, letter: bytes) -> None:
        """Leave the Access in use if it keeps messages back, as the Master says by the other one."""
        if self._canaries is not None and self._canaries.on_letter(letter) and self.address is not None:
            self._note_kept_back(self.address)
            self.move()

    def _note_kept_back(self, address: str) -> None:
        log.error("messages_kept_back", address=address)
        self._distrust.note(address, self._clock.monotonic_ns())

    async def _cool(self) -> None:
        """Let go of the second connection."""
        second, self._warm = self._warm, None
        if second is not None:
            if second.ready is not None:
                await second.ready.link.close()
            await second.warm.close()
