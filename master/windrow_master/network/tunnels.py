"""Allows tunnels to ports of workloads and watches over them; not one of their bytes comes here.

 POST ─▶ owner, Running, host here ─▶ channel to the agent: port, grant ─▶ its key ─▶ audit ─▶ grant for the renter
 channel open = tunnel may live: closed when the cluster ends; the host's close says how many bytes there were ─▶ audit

nearest_access.py chooses the Access that it goes by. What a Master that dies had open ends with its hosts' connections,
and of those no end is written. Tunnels of the public path (public_ports.py), which an Access asks for in the name of
whoever opens a service's address, are counted by cluster.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import structlog

from windrow_master.clusters import lookup
from windrow_master.clusters.model import Cluster, Traffic, Workload
from windrow_master.clusters.service import ClusterService
from windrow_master.identity.model import Principal
from windrow_master.loops import again, ends_alone
from windrow_master.network.channels import ChannelBroker, ChannelStream
from windrow_master.network.nearest_access import NO_WISH, Nearby, TunnelPlace, Unreached, Wish, choose, listed
from windrow_master.network.public_ports import LIVING, Tally, Unknown, is_running, judge, member
from windrow_master.shares import ShareLimits, Shares
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import (
    Conflict,
    DeadlineExceeded,
    HostUnreachable,
    LinkClosed,
    NotFound,
    TooMany,
    Unavailable,
    WindrowError,
    from_code,
)
from windrow_proto.ids import AccountId, ClusterId, HostId, WorkloadId
from windrow_proto.keys import SigningKey
from windrow_proto.messages import ChannelClose, ChannelData, ChannelOpen
from windrow_proto.model import ChannelPurpose
from windrow_proto.ports import Clock
from windrow_proto.tunnels import GRANT_LIFE_NS, SECRET_BYTES, TunnelGrant, TunnelSide, secret_digest
from windrow_proto.units import HOUR, SECOND
from windrow_proto.wire_tunnel import sign_grant

log = structlog.get_logger(__name__)

OPEN_S: Final = 15.0
"""For a host to reach both the workload (5 s) and its Access (8 s), or to say what is in the way."""
END_S: Final = 15.0
"""For a host to say how much there was, once it was told to end a tunnel."""
HOST_PEM_MAX: Final = 4_096
"""Bytes of a host's certificate for one tunnel; it has some 600."""
AGAIN_NS: Final = SECOND
"""Before the store is asked again that did not answer."""
TUNNELS: Final = ShareLimits(limit=2_048, per_account=256, reserve=256)
"""Open tunnels of renters."""
HOST_TUNNELS: Final = ShareLimits(limit=128, per_account=48, reserve=8)
"""Of them to one host."""
PUBLIC: Final = ShareLimits(limit=1_024, per_account=256, reserve=0)
"""Open tunnels of the public path, beside those; an account's are those to its services."""
HOST_PUBLIC: Final = ShareLimits(limit=96, per_account=64, reserve=0)
"""Of them to one host, of its 128: the rest is for renters' own tunnels, whatever the public does."""
TRAFFIC_NS: Final = 10 * SECOND
"""Between two writings of what the public path has carried."""
PAGE_NS: Final = 12 * HOUR
"""For which browsers reach a notebook that was opened: a working day. It is opened again by one click."""
PAGES_MAX: Final = 4_096
RIGHT_LOOK_NS: Final = 2 * SECOND
"""Between two looks whether whoever asked might still ask: as for streams of events."""


@dataclass(frozen=True, slots=True)
class TunnelAddresses:
    """The addresses of an Access for tunnels to one host: for renters, and for the host."""

    renters: str
    hosts: str


@dataclass(frozen=True, slots=True)
class Ticket:
    """The ticket that a renter needs to come. ca_pem: the authority of the certificate that the Access shows;
    host_pem: what the host shows then; secret: what it is told first; access_id, accesses: whose address it is, and
    those that the renter may measure, where there is a choice."""

    tunnel_id: str
    grant: str = field(repr=False)
    address: str
    ca_pem: str
    not_after_ns: int
    host_pem: str = field(repr=False)
    secret: bytes = field(repr=False)
    access_id: str = ""
    accesses: tuple[TunnelPlace, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenedPage:
    """The address of a notebook, with its token, and until when it leads there, in wall nanoseconds."""

    url: str = field(repr=False)
    expires_at_ns: int


async def _always() -> bool:
    return True  # the public has no right that could be taken away: its tunnels end with the cluster


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """A request for a tunnel: its owner and its target. actor: who asked for it; empty: anybody may, it is public.
    account_id: the renter's."""

    account_id: AccountId
    cluster_id: ClusterId
    workload: Workload
    port: int
    actor: str = ""
    is_allowed: Callable[[], Awaitable[bool]] = _always


@dataclass(frozen=True, slots=True)
class _Live:
    """One open tunnel. access_id: empty: of the Access that the host is connected to."""

    tunnel_id: str
    asked: _Asked
    channel: ChannelStream
    since_ns: int
    access_id: str = ""


class TunnelService:
    """Every open tunnel of this Master. `run` beside it, or nothing is watched."""

    def __init__(
        self,
        store: Store,
        clusters: ClusterService,
        broker: ChannelBroker,
        addresses: Callable[[HostId], TunnelAddresses | None],
        signing: SigningKey,
        ca_pem: bytes,
        clock: Clock,
        nearby: Callable[[HostId], Nearby] = lambda host_id: Nearby(),
    ) -> None:
        """addresses: of the Access that a host is connected to now; None: it has none, or is not connected. nearby:
        what is known for the choice of another one."""
        self._store, self._clusters, self._broker, self._addresses = store, clusters, broker, addresses
        self._signing, self._ca_pem, self._clock = signing, ca_pem.decode(), clock
        self._live: dict[str, _Live] = {}
        self._patience: dict[str, asyncio.Timeout] = {}
        self._opening: dict[_Asked, None] = {}
        ways = "Close some first."
        self.tunnels = Shares("tunnels", ways, TUNNELS)
        self.host_tunnels = Shares("tunnels to this host", ways, HOST_TUNNELS)
        self.public = Shares("visitors", ways, PUBLIC)
        self.host_public = Shares("visitors of this host", ways, HOST_PUBLIC)
        self._unknown, self._tally = Unknown(), Tally()
        self._nearby, self._unreached = nearby, Unreached()
        self._pages: dict[tuple[ClusterId, int], tuple[int, Callable[[], Awaitable[bool]]]] = {}
        self._group: asyncio.TaskGroup | None = None
        self._changed: set[ClusterId] = set()
        self._wake = asyncio.Event()
        clusters.on_change(self._on_change)

    @property
    def count(self) -> int:
        """Open tunnels."""
        return len(self._live)

    async def run(self) -> None:
        """Watch over tunnels until cancelled; then their hosts are told to end them."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                group.create_task(again(self._keep_traffic, TRAFFIC_NS, self._clock, "tunnel traffic"), name="traffic")
                while True:
                    await self._wake.wait()
                    self._wake.clear()
                    changed, self._changed = self._changed, set()
                    with ends_alone("tunnels_judging"):
                        await self._end_those_of(changed)
                        continue
                    await self._clock.sleep_ns(AGAIN_NS)
                    self._changed |= changed
                    self._wake.set()
        finally:
            self._group = None
            for live in self._live.values():
                with suppress(WindrowError):
                    await live.channel.close(ChannelClose())
            self._live.clear()
            with ends_alone("tunnel_traffic"):
                await self._keep_traffic()

    async def open(
        self,
        principal: Principal,
        cluster_id: ClusterId,
        port: int,
        is_allowed: Callable[[], Awaitable[bool]],
        wish: Wish = NO_WISH,
        rank: int = 0,
    ) -> Ticket:
        """Have the host dial the workload's port and its Access; what is returned lets the renter meet it there.

        wish: what the renter measured; without it the host's own Access is taken. rank: of the member.
        is_allowed: asked now and then as long as the tunnel is open; it ends when the right to it is gone. Only the
        account that rents a cluster goes inside it. Raises NotFound, Conflict (nothing runs, nothing of the
        workload's listens there), HostUnreachable, Unavailable, TooMany, DeadlineExceeded.
        """
        workload = member(await self._clusters.get_own(principal, cluster_id), rank)
        asked = _Asked(principal.account_id, cluster_id, workload, port, principal.actor, is_allowed)
        self._check(asked, self.tunnels, self.host_tunnels, is_trusted=principal.is_trusted)
        return await self._admit(asked, wish)

    async def open_notebook(
        self, principal: Principal, cluster_id: ClusterId, is_allowed: Callable[[], Awaitable[bool]]
    ) -> OpenedPage:
        """Let browsers reach a box's notebook by an address of its own, for as long as whoever asks may, at most
        PAGE_NS; what opens the notebook itself is its token. Raises NotFound, Conflict."""
        view = await self._clusters.get_own(principal, cluster_id)
        workload = member(view, 0)
        port, url = self._clusters.notebook(view)
        fields = {"host": workload.host_id, "port": str(port)}
        await self._store.write(
            lambda uow: uow.audit(principal.actor, "notebook.open", cluster_id, "asked for", fields), name="notebook"
        )
        self._pages.pop((cluster_id, port), None)
        self._pages[cluster_id, port] = self._clock.monotonic_ns() + PAGE_NS, is_allowed
        if len(self._pages) > PAGES_MAX:
            del self._pages[next(iter(self._pages))]
        return OpenedPage(url, self._clock.wall_ns() + PAGE_NS)

    async def _page(self, cluster_id: ClusterId, port: int) -> Callable[[], Awaitable[bool]] | None:
        """The right of whoever opened this port, if that still stands."""
        ends_ns, is_allowed = self._pages.get((cluster_id, port), (0, _always))
        if ends_ns > self._clock.monotonic_ns() and await is_allowed():
            return is_allowed
        self._pages.pop((cluster_id, port), None)
        return None

    async def open_public(self, cluster_id: ClusterId, port: int) -> Ticket:
        """The same for whoever came to an Access with the address of a service. Raises NotFound for everything that is
        not a published port of a service, Conflict while it does not run, and what `open` does."""
        page = await self._page(cluster_id, port)
        if page is None and self._unknown.holds(cluster_id, port, self._clock.monotonic_ns()):
            raise NotFound("There is no such service.")

        def read(uow: UnitOfWork) -> tuple[Cluster, Workload]:
            held = lookup.workloads_of(uow, cluster_id)
            return judge(lookup.find(uow, cluster_id), held, port, is_opened=page is not None)

        try:
            cluster, workload = await self._store.read(read)
        except NotFound:
            self._unknown.note(cluster_id, port, self._clock.monotonic_ns())
            raise
        asked = _Asked(cluster.account_id, cluster_id, workload, port, is_allowed=page or _always)
        try:
            self._check(asked, self.public, self.host_public, is_trusted=False)
        except TooMany:
            raise TooMany(
                "This service has reached its limit of visitors. Try again later.", retry_after_ns=5 * SECOND
            ) from None
        ticket = await self._admit(asked, NO_WISH)
        self._tally.add(cluster_id, Traffic(connections=1))
        return ticket

    def _check(self, asked: _Asked, shares: Shares, host_shares: Shares, *, is_trusted: bool) -> None:
        """Raises TooMany where there are too many of the same kind, of the account or in all, here or to its host."""
        alike = [one.asked for one in self._live.values()] + list(self._opening)
        alike = [one for one in alike if bool(one.actor) == bool(asked.actor)]
        beside = [one for one in alike if one.workload.host_id == asked.workload.host_id]
        for kind, open_ones in ((shares, alike), (host_shares, beside)):
            own = sum(one.account_id == asked.account_id for one in open_ones)
            kind.check(own, len(open_ones), is_trusted=is_trusted)

    async def _admit(self, asked: _Asked, wish: Wish) -> Ticket:
        if self._group is None:
            raise Unavailable("This Master is starting or stopping.")
        self._opening[asked] = None
        try:
            return await self._open(asked, wish)
        finally:
            del self._opening[asked]

    async def _open(self, asked: _Asked, wish: Wish) -> Ticket:
        host_id = asked.workload.host_id
        addresses = self._addresses(host_id)
        if addresses is None:
            words = f"{asked.workload.host_name} is not connected to a relay with tunnels."
            raise HostUnreachable(words, subject=host_id)
        nearby = self._unreached.but(host_id, self._nearby(host_id), self._clock.monotonic_ns())
        found, ticket = choose(nearby, wish), None
        if found is not None:
            # A host finds an Access that it has measured as its own hosts do, and any other as renters do.
            hosts = found.hosts if found.access_id in nearby.rtts_ns else found.renters
            try:
                ticket = await self._open_at(asked, TunnelAddresses(found.renters, hosts), found)
            except HostUnreachable:
                raise
            except (Unavailable, DeadlineExceeded) as error:
                log.info("access_not_reached", host_id=host_id, access_id=found.access_id, reason=error.detail[:200])
                self._unreached.note(host_id, found.access_id, self._clock.monotonic_ns())
        if ticket is None:
            ticket = await self._open_at(asked, addresses, None)
        return replace(ticket, access_id=ticket.access_id or nearby.own, accesses=listed(nearby))

    async def _open_at(self, asked: _Asked, places: TunnelAddresses, other: TunnelPlace | None) -> Ticket:
        """other: the worker that the grants name; None: the one that the host is connected to."""
        workload, host_id = asked.workload, asked.workload.host_id
        access_id, worker = ("", "") if other is None else (other.access_id, other.worker)
        tunnel_id = await self._store.read(lambda uow: uow.mint("tunnel"))

        def granted(side: TunnelSide, not_after_ns: int) -> str:
            named = tunnel_id, side, host_id, workload.workload_id, asked.cluster_id, asked.port
            return sign_grant(TunnelGrant(*named, not_after_ns, worker), self._signing)

        not_after_ns = self._clock.wall_ns() + GRANT_LIFE_NS
        secret = secrets.token_bytes(SECRET_BYTES)
        opening = ChannelOpen(
            workload.workload_id,
            ChannelPurpose.TUNNEL,
            port=asked.port,
            tunnel_id=tunnel_id,
            tunnel_address=places.hosts,
            tunnel_grant=granted(TunnelSide.HOST, not_after_ns),
            tunnel_digest=secret_digest(secret),
        )
        channel = await self._broker.open(host_id, opening)
        live = _Live(tunnel_id, asked, channel, self._clock.wall_ns(), access_id)
        try:
            host_pem = await _until_ready(channel, workload)
            if asked.actor:
                await self._store.write(lambda uow: _note_open(uow, live), name="tunnel.open")
            if self._group is None:
                raise Unavailable("This Master is stopping.")
            self._live[tunnel_id] = live
            self._group.create_task(self._watch(live), name=tunnel_id)
        except BaseException:
            with suppress(WindrowError):
                await asyncio.shield(channel.close(ChannelClose()))
            raise
        # What changed meanwhile came before this tunnel was one to end.
        self._on_change(asked.cluster_id)
        shown = granted(TunnelSide.RENTER, not_after_ns), places.renters, self._ca_pem, not_after_ns
        return Ticket(tunnel_id, *shown, host_pem, secret, access_id)

    async def _keep_traffic(self) -> None:
        await write_down(self._tally, self._store, "tunnel.traffic")

    # --- watching --------------------------------------------------------------------------------------------------

    def _on_change(self, cluster_id: ClusterId) -> None:
        self._changed.add(cluster_id)
        self._wake.set()

    async def _end_those_of(self, changed: set[ClusterId]) -> None:
        touched = {live.asked.cluster_id for live in self._live.values()} & changed
        if not touched:
            return

        def read(uow: UnitOfWork) -> dict[ClusterId, set[WorkloadId]]:
            found: dict[ClusterId, set[WorkloadId]] = {}
            for cluster_id in touched:
                with ends_alone("tunnels_judging", cluster=cluster_id):  # one that crashes keeps its tunnels
                    cluster = lookup.find(uow, cluster_id)
                    lives = cluster is not None and cluster.phase in LIVING
                    held = lookup.workloads_of(uow, cluster_id) if lives else ()
                    found[cluster_id] = {one.workload_id for one in held if is_running(one)}
            return found

        running = await self._store.read(read)
        for live in tuple(self._live.values()):
            asked = live.asked
            if asked.cluster_id in running and asked.workload.workload_id not in running[asked.cluster_id]:
                await self._close(live)

    async def _close(self, live: _Live) -> None:
        """Tell the host to end it; what it still says is waited for, for a while."""
        patience = self._patience.get(live.tunnel_id)
        if patience is not None and patience.when() is None:
            patience.reschedule(asyncio.get_running_loop().time() + END_S)
        with suppress(WindrowError):  # then there is nobody to be told, and who hears that link knows by now
            await live.channel.close(ChannelClose())

    async def _watch(self, live: _Live) -> None:
        """Until the host has said that it is over, or is gone."""
        try:
            with self._clusters.lifecycle.uses.inside(live.asked.cluster_id):
                end = await self._over(live)
        except Exception:  # the task's top level: the others go on
            log.exception("tunnel_crashed", tunnel=live.tunnel_id)
            end = ChannelClose("internal", "The Master failed.")
            await self._close(live)  # nobody watches it any more
        self._live.pop(live.tunnel_id, None)
        log.info("tunnel_over", tunnel=live.tunnel_id, cluster=live.asked.cluster_id, code=end.error_code)
        if not live.asked.actor:
            self._tally.add(live.asked.cluster_id, Traffic(0, end.bytes_in, end.bytes_out))
            return
        with ends_alone("tunnel_end", tunnel=live.tunnel_id):
            await self._store.write(lambda uow: _note_end(uow, live, end), name="tunnel.end")

    async def _over(self, live: _Live) -> ChannelClose:
        """Return the host's last words on a tunnel; while it may be told to end it, its patience stands in
        `_patience`."""
        end = ChannelClose("link_closed", "The host went before it could say how much there was.")
        async with asyncio.TaskGroup() as tasks:
            looking = tasks.create_task(self._end_without_right(live))
            with suppress(LinkClosed, TimeoutError):
                async with asyncio.timeout(None) as self._patience[live.tunnel_id]:
                    try:
                        while not isinstance(step := await live.channel.receive(), ChannelClose):
                            pass
                        end = step
                    finally:
                        del self._patience[live.tunnel_id]
            looking.cancel()
        return end

    async def _end_without_right(self, live: _Live) -> None:
        if live.asked.is_allowed is _always:
            return
        while await live.asked.is_allowed():
            await self._clock.sleep_ns(RIGHT_LOOK_NS)
        log.info("tunnel_ended", tunnel=live.tunnel_id, reason="the right to it is gone")
        await self._close(live)


async def _until_ready(channel: ChannelStream, workload: Workload) -> str:
    """Wait for the host to be there: its certificate for this tunnel. Raises what it says is in the way."""
    try:
        async with asyncio.timeout(OPEN_S):
            step = await channel.receive()
    except TimeoutError:
        raise DeadlineExceeded(f"{workload.host_name} did not open the tunnel within {OPEN_S:.0f} s.") from None
    if isinstance(step, ChannelData):
        if not 0 < len(step.data) <= HOST_PEM_MAX or not step.data.isascii():
            raise Conflict(
                f"{workload.host_name} cannot encrypt the tunnel: its agent is of another release. Update the agent."
            )
        return step.data.decode()
    if step.error_code:
        raise from_code(step.error_code, step.detail, workload.cluster_id)
    raise Conflict("The host closed the tunnel at once. Try again.", subject=workload.cluster_id)


def _note_open(uow: UnitOfWork, live: _Live) -> None:
    asked = live.asked
    fields = {"cluster": asked.cluster_id, "host": asked.workload.host_id, "port": str(asked.port)}
    fields |= {"access": live.access_id} if live.access_id else {}
    uow.audit(asked.actor, "tunnel.open", live.tunnel_id, "asked for", fields)


def _note_end(uow: UnitOfWork, live: _Live, end: ChannelClose) -> None:
    asked = live.asked
    lasted_s = max(0, uow.now_wall_ns - live.since_ns) // SECOND
    fields = {
        "cluster": asked.cluster_id,
        "port": str(asked.port),
        "bytes_in": str(end.bytes_in),
        "bytes_out": str(end.bytes_out),
        "seconds": str(lasted_s),
    }
    actor, why = f"host/{asked.workload.host_id}", end.error_code or "ended"
    uow.audit(actor, "tunnel.end", live.tunnel_id, why, fields)
    said = f"A tunnel to port {asked.port} has ended: {_size(end.bytes_in)} in, {_size(end.bytes_out)} out"
    uow.event("tunnel.ended", (asked.cluster_id, asked.account_id), said, fields | {"tunnel": live.tunnel_id}, actor)


def _size(count: int) -> str:
    return f"{count:,} bytes"


async def write_down(tally: Tally, store: Store, name: str) -> None:
    """All that was counted, in one write of this name; what cannot be written is counted on."""
    taken = tally.take()
    if not taken:
        return

    try:
        await store.write(partial(lookup.count_traffic, counts=taken), name=name)
    except WindrowError as error:
        log.error("traffic_not_written", clusters=len(taken), code=error.code, detail=error.detail)
        for cluster_id, traffic in taken.items():
            tally.add(cluster_id, traffic)
