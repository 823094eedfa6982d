"""Runs one test rental: rents a host through the ordinary create path, and reaches it through its Access as a renter
does.

 create ─▶ Running ─▶ log: port ─▶ tunnel: grant, Access, host, greeting ─▶ log: GPUs, figures ─▶ delete ─▶ receipt

Every wait has its deadline. A step that fails is the host's; what lies with the Master or an Access is `unfinished`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from windrow_master.acceptance import benchmark, program, words
from windrow_master.acceptance.model import ProofStep, StepName, StepState
from windrow_master.clusters.model import ClusterKind, ClusterPhase, ClusterRequest
from windrow_master.clusters.service import ClusterService
from windrow_master.clusters.states import FINAL
from windrow_master.clusters.views import ClusterView
from windrow_master.fleet.availability import part_name
from windrow_master.fleet.model import Host
from windrow_master.identity.model import Principal, Role
from windrow_master.market.model import PROOF_ACCOUNT, PROOF_NAME, RentalId, RentalState, receipt_of
from windrow_master.market.service import MarketService
from windrow_master.network.tunnels import TunnelService
from windrow_master.network.workload_io import WorkAccess
from windrow_master.placement.model import Runtime
from windrow_proto.errors import Conflict, DeadlineExceeded, NoCapacity, Unavailable, WindrowError
from windrow_proto.ids import ClusterId, TokenId
from windrow_proto.model import Benchmark, GpuFacts
from windrow_proto.ports import Clock
from windrow_proto.renter_end import RenterEnd, RenterTicket
from windrow_proto.units import SECOND, money_text

START_NS: Final = 120 * SECOND
"""For a container or a process to run; the default image may have to be fetched."""
SAID_NS: Final = 30 * SECOND
"""For the program to say where it listens."""
COUNTED_NS: Final = 60 * SECOND
"""For it to count GPUs and touch their memory: a driver may take ten seconds to start on a host with eight."""
MEASURED_NS: Final = (benchmark.WAIT_S + 10) * SECOND
"""For it to measure each card, which it gives up itself a little before."""
GREETING_NS: Final = 15 * SECOND
END_NS: Final = 60 * SECOND
RECEIPT_NS: Final = 30 * SECOND
LOOK_NS: Final = SECOND // 10
"""Between two looks at the Master's own rows; each is one read."""
LOG_LOOK_NS: Final = SECOND // 2
GREETING_BYTES_MAX: Final = 8_192
Figures = dict[str, int | str]
_STARTED: Final = FINAL | {ClusterPhase.RUNNING}
_LIFE_NS: Final = 10**18
_KINDS: Final = {
    Runtime.DOCKER: "a container of its default image",
    Runtime.PROCESS: "a plain process, as its owner's",
    Runtime.SIMULATED: "a simulated workload: nothing runs",
}


@dataclass(frozen=True, slots=True)
class Ways:
    """Into workloads, as renters have them."""

    inside: WorkAccess
    tunnels: TunnelService


def principal(now_ns: int) -> Principal:
    """Return the account that rents."""
    return Principal(PROOF_ACCOUNT, PROOF_NAME, frozenset({Role.RENTER}), TokenId(""), PROOF_NAME, now_ns + _LIFE_NS)


class Rental:
    """`rent`, then `end` in any case, then `receipt`; what each step came to is in `steps`."""

    def __init__(
        self,
        clock: Clock,
        clusters: ClusterService,
        market: MarketService,
        ways: Ways,
        host: Host,
        gpus: int,
        profile: str | None,
        cards: Sequence[GpuFacts],
        runtime: Runtime,
        chance: int,
        measured: Callable[[], Awaitable[Host]],
    ) -> None:
        """gpus: to rent, 0 for its processors; profile: they are slices of this profile; cards: of them, those to be
        measured; chance: any number; measured: the host with its line as it is now."""
        self._measured = measured
        self._clock, self._clusters, self._market, self._ways = clock, clusters, market, ways
        self._host, self.gpus, self._cards, self._runtime = host, gpus, tuple(cards), runtime
        self._profile = profile
        self._port = program.port_of(chance)
        self._who = principal(clock.wall_ns())
        self.cluster_id: ClusterId | None = None
        self._rental_id: RentalId | None = None
        self.is_unwanted = False
        """True if somebody waits for its end; once `cluster_id` is known, `rent` may be cancelled, too."""
        self.steps: list[ProofStep] = []
        self.benchmarks: tuple[Benchmark, ...] = ()
        """The measurements of its cards."""
        self.unfinished = ""
        """The reason why a rental says nothing about the host; empty: it does."""

    # --- the walk --------------------------------------------------------------------------------------------------

    async def rent(self, key: str) -> None:
        """Start it and look at it from inside. key: of the request."""
        if not await self._start(key):
            return
        if self._host.simulated:
            self._draw(await self._told(lambda said: said.has_measured, MEASURED_NS))
            return
        told = await self._told(lambda said: said.server is not None, SAID_NS)
        await self._reach(told)
        told = await self._told(lambda said: said.has_counted, COUNTED_NS)
        self._count(told)
        if self.gpus and told.gpus:
            told = await self._told(lambda said: said.has_touched, COUNTED_NS)
        self._memory(told)
        if self._cards:
            told = await self._told(lambda said: said.has_measured, MEASURED_NS)
        self._benchmark(told)
        host = await self._measured()
        found = host.bandwidth
        state = StepState.ABSENT if found is None else StepState.PASSED
        fields: Figures = {}
        if found is not None:
            fields |= {"up_bps": found.up_bps, "down_bps": found.down_bps}
            fields |= {"access_id": found.access_id, "relays": found.count}
        self._add(StepName.BANDWIDTH, state, None, words.bandwidth(host), fields)

    def _draw(self, told: program.Told) -> None:
        """Note what its simulator drew, and that nothing else can be tried there."""
        for name in (StepName.REACH, StepName.COUNT, StepName.MEMORY):
            self._add(name, StepState.ABSENT, None, "Simulated: there is nothing to try.")
        self._benchmark(told)

    async def _start(self, key: str) -> bool:
        argv, environment = program.command(self._port, self._runtime, self._cards)
        request = ClusterRequest(
            kind=ClusterKind.BOX,
            name=f"Test of {self._host.name}"[:64],
            gpus=self.gpus,
            slice=self._profile,
            argv=argv,
            entrypoint="",
            env=environment,
            host_id=self._host.host_id,
            runtime=self._runtime,
        )
        began_ns = self._clock.monotonic_ns()
        if self.is_unwanted:
            return False
        try:
            _, view = await self._clusters.create(self._who, request, key, is_proof=True)
        except NoCapacity as error:
            self.unfinished = error.detail or "somebody else was there first"
            return False
        self.cluster_id, self._rental_id = view.cluster.cluster_id, view.cluster.rental_id
        if self.is_unwanted:
            return False
        try:
            view = await self._seen(lambda seen: seen.cluster.phase in _STARTED, START_NS)
        except DeadlineExceeded:
            text = f"The host did not start it within {START_NS // SECOND} s: see the agent's log on the host."
            self._add(StepName.START, StepState.FAILED, None, text)
            return False
        if view.cluster.phase is not ClusterPhase.RUNNING:
            self._add(
                StepName.START, StepState.FAILED, self._since(began_ns), view.cluster.reason or "It ended at once."
            )
            return False
        self._add(StepName.START, StepState.PASSED, self._since(began_ns), f"Started as {_KINDS[self._runtime]}.")
        return True

    async def _reach(self, told: program.Told) -> None:
        if told.server is None:
            text = f"Nothing was said in its log within {SAID_NS // SECOND} s: does its image have a shell (sh)?"
            self._add(StepName.REACH, StepState.FAILED, None, text)
            return
        if not told.server:
            self._add(StepName.REACH, StepState.ABSENT, None, f"No port to try: {told.server_why or 'it named none'}.")
            return
        began_ns = self._clock.monotonic_ns()
        try:
            greeting = await self._greeting(told.port)
        except (Conflict, DeadlineExceeded) as error:
            text = f"Port {told.port} of it never answered: {error.detail}"
            self._add(StepName.REACH, StepState.FAILED, None, text, {"port": told.port})
            return
        except Unavailable as error:
            self.unfinished = error.detail.rstrip(".")
            return
        fields: Figures = {"port": told.port, "server": told.server, "greeting": greeting}
        if not greeting.startswith("SSH-"):
            text = f"Port {told.port} did not greet as SSH does: {greeting[:60]!r}. Does something stand in the way?"
            self._add(StepName.REACH, StepState.FAILED, self._since(began_ns), text, fields)
            return
        text = f"Greeted through its relay by {greeting[:60]}."
        self._add(StepName.REACH, StepState.PASSED, self._since(began_ns), text, fields)

    def _count(self, told: program.Told) -> None:
        if not self.gpus:
            self._add(StepName.COUNT, StepState.ABSENT, None, "No GPU was rented: its processors were.")
        elif not told.has_counted or told.gpus is None:
            why = told.gpus_why or "nothing was said of them in time"
            self._add(StepName.COUNT, StepState.ABSENT, None, f"Its GPUs could not be counted: {why}.")
        else:
            fields: Figures = {"gpus": told.gpus, "rented": self.gpus}
            is_true = told.gpus == self.gpus
            text = f"{told.gpus} of the {self.gpus} that were rented are seen inside."
            out = "" if is_true else " Are they passed on to what runs there (nvidia-container-toolkit, its devices)?"
            self._add(StepName.COUNT, StepState.PASSED if is_true else StepState.FAILED, None, text + out, fields)

    def _memory(self, told: program.Told) -> None:
        if not self.gpus or not told.gpus:
            self._add(StepName.MEMORY, StepState.ABSENT, None, "No GPU whose memory could be written.")
        elif told.memory_bytes is None:
            text = f"{told.memory_why or 'Nothing was said of it in time'}. Look for XIDs in the host's kernel log."
            self._add(StepName.MEMORY, StepState.FAILED, None, text)
        else:
            text = f"{told.memory_bytes:,} bytes of {told.gpus} GPUs were written, and samples of them read back."
            self._add(StepName.MEMORY, StepState.PASSED, None, text, {"bytes": told.memory_bytes})

    def _benchmark(self, told: program.Told) -> None:
        """Note the measurements of the cards that were asked for; figures of other cards are dropped."""
        if not self._cards:
            why = "No GPU was rented: its processors were." if not self.gpus else "Only whole GPUs are measured."
            self._add(StepName.BENCHMARK, StepState.ABSENT, None, why)
            return
        found = {gpu.uuid: told.figures.get(gpu.uuid, benchmark.Figures(why=told.measured_why)) for gpu in self._cards}
        by_name = {part_name(self._host, uuid) or uuid: figures for uuid, figures in found.items()}
        state, text = words.measured(by_name, is_drawn=self._host.simulated)
        now_ns = self._clock.wall_ns()
        self.benchmarks = tuple(one for uuid, said in found.items() for one in said.benchmarks(uuid, now_ns))
        fields: Figures = {}
        for uuid, said in found.items():
            named = {f"{uuid} memory": said.memory, f"{uuid} matrix": said.matrix, f"{uuid} size": said.size}
            fields |= {name: value for name, value in named.items() if value is not None}
        self._add(StepName.BENCHMARK, state, None, text, fields)

    async def end(self, is_shown: bool) -> None:
        """Tear it down and wait until nothing of it is left. is_shown: as a step."""
        if self.cluster_id is None:
            return
        began_ns = self._clock.monotonic_ns()
        with suppress(Conflict):
            await self._clusters.delete(self._who, self.cluster_id)
        try:
            await self._seen(lambda view: all(one.is_released for one in view.workloads), END_NS)
        except DeadlineExceeded:
            text = f"The host did not end it within {END_NS // SECOND} s: see the agent's log on the host."
            self._add(StepName.END, StepState.FAILED, None, text)
            return
        if is_shown:
            self._add(StepName.END, StepState.PASSED, self._since(began_ns), "Taken down; nothing of it is left.")

    async def receipt(self) -> None:
        """Wait for the last signed receipt."""
        if self._rental_id is None or not self.steps:
            return
        began_ns = self._clock.monotonic_ns()
        rental_id, ends_ns = self._rental_id, began_ns + RECEIPT_NS
        while True:
            found = await self._market.statement(None, rental_id)
            if found.rental.state is RentalState.CLOSED:
                break
            if self._clock.monotonic_ns() >= ends_ns:
                text = f"No last receipt came within {RECEIPT_NS // SECOND} s; it is charged by the last one that did."
                self._add(StepName.RECEIPT, StepState.FAILED, None, text)
                return
            await self._clock.sleep_ns(LOOK_NS)
        signed_ns = sum(line.signed_ns for line in found.lines)
        fields: Figures = {
            "receipt_id": receipt_of(rental_id),
            "signed_ns": signed_ns,
            "receipts": sum(line.receipts for line in found.lines),
            "amount": money_text(found.rental.charged),
            "price_per_hour": money_text(found.rental.price_per_hour),
        }
        text = f"The host signed for {words.took(signed_ns)}; {fields['amount']} of test money went to its owner."
        self._add(StepName.RECEIPT, StepState.PASSED, self._since(began_ns), text, fields)

    # --- its parts -------------------------------------------------------------------------------------------------

    async def _greeting(self, port: int) -> str:
        """The first line that comes through a tunnel. Raises Conflict, DeadlineExceeded, Unavailable."""
        assert self.cluster_id is not None, "it was started"
        try:
            ticket = await self._ways.tunnels.open(self._who, self.cluster_id, port, _always)
        except WindrowError as error:
            if isinstance(error, Conflict | DeadlineExceeded):
                raise
            raise Unavailable(error.detail) from error
        side = _Greeted()
        end = RenterEnd(side)
        trusted = ticket.ca_pem.encode(), ticket.host_pem.encode()
        try:
            await end.dial(RenterTicket(ticket.address, ticket.grant, *trusted, ticket.secret))
            async with asyncio.timeout(GREETING_NS / SECOND):
                await side.done.wait()
        except TimeoutError:
            raise DeadlineExceeded(f"it said nothing for {GREETING_NS // SECOND} s.") from None
        except WindrowError as error:
            raise Unavailable(error.detail) from error
        finally:
            end.close()
        if not side.said:
            raise Conflict("it was closed without a word.")
        line = side.said.splitlines()[0].decode(errors="replace")
        return "".join(letter for letter in line if letter.isprintable())[:255]

    async def _told(self, is_enough: Callable[[program.Told], bool], within_ns: int) -> program.Told:
        """Return the content of its log once it is enough, or in the end."""
        assert self.cluster_id is not None, "it was started"
        ends_ns = self._clock.monotonic_ns() + within_ns
        told = program.Told()
        while True:
            # A log that cannot be read now may be in a moment: the deadline judges.
            with suppress(WindrowError):
                log, _ = await self._ways.inside.log(self._who, self.cluster_id, 0)
                told = program.read(log)
            if is_enough(told) or self._clock.monotonic_ns() >= ends_ns:
                return told
            await self._clock.sleep_ns(LOG_LOOK_NS)

    async def _seen(self, is_it: Callable[[ClusterView], bool], within_ns: int) -> ClusterView:
        """The cluster once this holds of it. Raises DeadlineExceeded."""
        assert self.cluster_id is not None, "it was made"
        ends_ns = self._clock.monotonic_ns() + within_ns
        while True:
            view = await self._clusters.get_own(self._who, self.cluster_id)
            if is_it(view):
                return view
            if self._clock.monotonic_ns() >= ends_ns:
                raise DeadlineExceeded(f"it is still {view.cluster.phase}.")
            await self._clock.sleep_ns(LOOK_NS)

    def _add(
        self,
        name: StepName,
        state: StepState,
        took_ns: int | None,
        text: str,
        fields: Figures | None = None,
    ) -> None:
        self.steps.append(ProofStep(name, state, took_ns, text, fields or {}))

    def _since(self, began_ns: int) -> int:
        return self._clock.monotonic_ns() - began_ns


class _Greeted:
    """Takes the first line of whoever is at the other end."""

    def __init__(self) -> None:
        self.said = b""
        self.done = asyncio.Event()

    def take(self, data: memoryview) -> None:
        self.said += bytes(data[: GREETING_BYTES_MAX - len(self.said)])
        if b"\n" in self.said or len(self.said) >= GREETING_BYTES_MAX:
            self.done.set()

    def take_end(self) -> None:
        self.done.set()

    def hold(self) -> None:
        """Nothing is sent."""

    def go_on(self) -> None:
        """Nothing is sent."""

    def cut(self, error: WindrowError) -> None:
        self.done.set()


async def _always() -> bool:
    return True  # the right of the Master itself
