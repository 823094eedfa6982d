"""Keeps the members of private networks joined: a link between each two, allowed by grants, made again when it breaks.

 members of a cluster ─▶ pairs ─▶ a channel to each end, with a grant for the Access ─▶ each one's key to the other
 channels open = the link may live: both are closed when its cluster or one of its members ends

Not one of its bytes comes here, and no private key: only counts, told by one end every ten seconds.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

import structlog

from windrow_master.clusters import lookup
from windrow_master.clusters.kinds.multi_host import members_of
from windrow_master.clusters.model import Cluster, ClusterPhase, NetworkMode, Traffic, Workload, WorkPhase
from windrow_master.clusters.service import ClusterService
from windrow_master.loops import Boundary, again, ends_alone
from windrow_master.network.channels import ChannelBroker, ChannelStream
from windrow_master.network.public_ports import Tally
from windrow_master.network.tunnels import TunnelAddresses, write_down
from windrow_master.shares import Share, ShareLimits, Shares
from windrow_master.store.store import Store
from windrow_master.store.unit import DATABASE_FAULTS, UnitOfWork
from windrow_proto.errors import Conflict, HostUnreachable, LinkClosed, TooMany, WindrowError, from_code
from windrow_proto.ids import AccountId, ClusterId, HostId, WorkloadId
from windrow_proto.keys import SigningKey
from windrow_proto.messages import ChannelClose, ChannelData, ChannelOpen
from windrow_proto.model import ChannelPurpose
from windrow_proto.overlay_packets import UP, packed
from windrow_proto.ports import Clock
from windrow_proto.together import together
from windrow_proto.tunnels import GRANT_LIFE_NS, TunnelGrant, TunnelSide
from windrow_proto.units import SECOND
from windrow_proto.wire_tunnel import sign_grant

log = structlog.get_logger(__name__)

LOOK_S: Final = 5.0
"""Between two looks at what should be joined, where nothing says that it changed."""
KEY_S: Final = 15.0
"""For both ends to show their keys."""
UP_S: Final = 60.0
"""For both to have met: what an agent gives the other end's key, its Access, and the meeting there (20, 8, 30 s)."""
AGAIN_S: Final = 1.0
AGAIN_S_MAX: Final = 15.0
"""The pause between two tries of a link: twice as long each time, up to this."""
PEM_MAX: Final = 4_096
PEER_LINKS: Final = ShareLimits(limit=2_048, per_account=512, reserve=0)
"""The most links of this Master; those beyond wait until others end. A network of 16 hosts has 120."""
TRAFFIC_S: Final = 10.0
END_S: Final = 10.0
"""The time that a host has to report the traffic, once it was told to end a link."""
_JOINED: Final = frozenset({ClusterPhase.CREATING, ClusterPhase.RUNNING, ClusterPhase.DEGRADED})
_OVER: Final = frozenset({WorkPhase.FAILED, WorkPhase.STOPPING, WorkPhase.GONE})

Addresses = Callable[[HostId], TunnelAddresses | None]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two members to be joined; `low` has the lower address, and is the host of their tunnel."""

    cluster_id: ClusterId
    low: Workload
    high: Workload
    account_id: AccountId

    @property
    def key(self) -> tuple[WorkloadId, WorkloadId]:
        """By which it is known."""
        return self.low.workload_id, self.high.workload_id


@dataclass(frozen=True, slots=True)
class PeerLinkState:
    """The state of a link. problem: why it is not up, as was last heard."""

    cluster_id: ClusterId
    is_up: bool = False
    problem: str = ""


class PeerLinkStates(dict[tuple[WorkloadId, WorkloadId], PeerLinkState]):
    """The number of links of this Master in each state."""

    def of(self, cluster_id: ClusterId) -> tuple[PeerLinkState, ...]:
        """The links of one cluster. Safe to call from any thread."""
        return tuple(state for state in tuple(self.values()) if state.cluster_id == cluster_id)


def pairs_of(cluster: Cluster, workloads: Sequence[Workload]) -> tuple[Pair, ...]:
    """Return the members of this cluster to be joined. A member that has ended by itself still is: what it said last
    may be under way."""
    if cluster.network is not NetworkMode.TUNNELS or cluster.phase not in _JOINED:
        return ()
    ready = [one for one in members_of(workloads) if one.phase not in _OVER and one.delete_command is None]
    in_order = sorted(ready, key=lambda one: packed(one.address or ""))
    return tuple(Pair(cluster.cluster_id, low, high, cluster.account_id) for low, high in combinations(in_order, 2))


class OverlayService:
    """All links of this Master. `run` beside it."""

    def __init__(
        self,
        store: Store,
        clusters: ClusterService,
        broker: ChannelBroker,
        addresses: Addresses,
        signing: SigningKey,
        clock: Clock,
        states: PeerLinkStates,
    ) -> None:
        self._store, self._broker, self._addresses = store, broker, addresses
        self._signing, self._clock = signing, clock
        self._changed = clusters.touch
        self._states = states
        self._tasks: dict[tuple[WorkloadId, WorkloadId], asyncio.Task[None]] = {}
        self._shares: dict[tuple[WorkloadId, WorkloadId], Share] = {}
        self._peer_links = Shares("links of private networks", "They are joined when others have ended.", PEER_LINKS)
        self._wake = asyncio.Event()
        self._faults = Boundary("overlay", DATABASE_FAULTS)
        self._tally = Tally()
        clusters.on_change(lambda cluster_id: self._wake.set())

    @property
    def count(self) -> int:
        """Links that are up."""
        return sum(state.is_up for state in self._states.values())

    async def run(self) -> None:
        """Join what is to be joined, until cancelled; then their hosts are told to end them."""
        async with asyncio.TaskGroup() as group:
            keeping = again(self._keep_traffic, int(TRAFFIC_S * SECOND), self._clock, "overlay traffic")
            group.create_task(keeping, name="overlay traffic")
            while True:
                self._wake.clear()
                with ends_alone("overlay_judging"):
                    self._match(await self._store.read(self._wanted), group)
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await self._wake.wait()

    def _wanted(self, uow: UnitOfWork) -> tuple[Pair, ...]:
        private, found = lookup.joined_by_tunnels(uow), list[Pair]()
        self._faults.keep_only({one.cluster_id for one in private})
        for one in private:
            with self._faults.around(one.cluster_id):
                found += pairs_of(one, lookup.workloads_of(uow, one.cluster_id))
        return tuple(found)

    def _match(self, wanted: Sequence[Pair], group: asyncio.TaskGroup) -> None:
        """End the links that nobody wants any more, and begin those that are missing."""
        keys = {pair.key for pair in wanted}
        for key, task in tuple(self._tasks.items()):
            if key not in keys:
                task.cancel()
                del self._tasks[key]
                self._states.pop(key, None)
                self._shares.pop(key).give_back()
        for pair in wanted:
            if pair.key in self._tasks:
                continue
            with suppress(TooMany):
                self._shares[pair.key] = self._peer_links.take(pair.account_id)
                self._states[pair.key] = PeerLinkState(pair.cluster_id)
                self._tasks[pair.key] = group.create_task(self._keep(pair), name=f"peer link {pair.key[0]}")

    async def _keep(self, pair: Pair) -> None:
        """Make one link, again and again, until it is cancelled."""
        wait_s = AGAIN_S
        while True:
            try:
                await self._join(pair)
            except (WindrowError, TimeoutError) as error:
                why = error.detail if isinstance(error, WindrowError) else "it took too long"
                was_up = self._states[pair.key].is_up
                wait_s = AGAIN_S if was_up else min(AGAIN_S_MAX, wait_s * 2)
                self._set(pair, is_up=False, problem=why)
                log.info("peer_link_down", cluster=pair.cluster_id, was_up=was_up, reason=why)
            except Exception:  # the task's top level: the others go on
                wait_s = AGAIN_S_MAX
                self._set(pair, is_up=False, problem="the Master failed")
                log.exception("peer_link_crashed", cluster=pair.cluster_id)
            await self._clock.sleep_ns(int(wait_s * SECOND))

    async def _join(self, pair: Pair) -> None:
        """Carry one link from the two channels to its end; raises what ended it or was in its way."""
        places = self._addresses(pair.low.host_id), self._addresses(pair.high.host_id)
        if places[0] is None or places[1] is None:
            away = pair.low if places[0] is None else pair.high
            raise HostUnreachable(f"{away.host_name} is not connected to a relay with tunnels.", subject=away.host_id)
        # The other end comes from outside, unless it is connected to the same Access as this one.
        outside = places[0].hosts if places[0] == places[1] else places[0].renters
        tunnel_id = await self._store.read(lambda uow: uow.mint("cord"))
        not_after_ns = self._clock.wall_ns() + GRANT_LIFE_NS

        def opening(own: Workload, peer: Workload, side: TunnelSide, where: str) -> ChannelOpen:
            named = pair.low.host_id, pair.low.workload_id, pair.cluster_id
            return ChannelOpen(
                own.workload_id,
                ChannelPurpose.CORD,
                tunnel_id=tunnel_id,
                tunnel_address=where,
                tunnel_grant=sign_grant(TunnelGrant(tunnel_id, side, *named, 1, not_after_ns), self._signing),
                cord_own=own.address or "",
                cord_peer=peer.address or "",
            )

        low = opening(pair.low, pair.high, TunnelSide.HOST, places[0].hosts)
        high = opening(pair.high, pair.low, TunnelSide.RENTER, outside)
        channels: list[ChannelStream] = []
        count = _Count(lambda traffic: self._tally.add(pair.cluster_id, traffic))
        try:
            for host_id, step in ((pair.low.host_id, low), (pair.high.host_id, high)):
                channels.append(await self._broker.open(host_id, step))
            await self._introduced(pair, channels[0], channels[1])
            await _until_over(pair, channels[0], channels[1], count)
        finally:
            await asyncio.shield(_ended(channels, count))

    async def _introduced(self, pair: Pair, low: ChannelStream, high: ChannelStream) -> None:
        """Show each end the other's key, and wait until both have met."""
        async with asyncio.timeout(KEY_S):
            keys = await _told(low, pair.low), await _told(high, pair.high)
            if not all(0 < len(key) <= PEM_MAX for key in keys):
                raise Conflict(
                    "A host cannot encrypt the private network: its agent is of another release. Update the agent."
                )
            await low.send(keys[1])
            await high.send(keys[0])
        async with asyncio.timeout(UP_S):
            for channel, member in ((low, pair.low), (high, pair.high)):
                if await _told(channel, member) != UP:
                    raise Conflict(f"{member.host_name} did not confirm its link of the private network.")
        log.info("peer_link_up", cluster=pair.cluster_id, hosts=[pair.low.host_id, pair.high.host_id])
        self._set(pair, is_up=True, problem="")
        self._tally.add(pair.cluster_id, Traffic(connections=1))

    def _set(self, pair: Pair, is_up: bool, problem: str) -> None:
        state = self._states.get(pair.key)
        if state is not None:
            self._states[pair.key] = replace(state, is_up=is_up, problem=problem)
            self._changed(pair.cluster_id)

    async def _keep_traffic(self) -> None:
        await write_down(self._tally, self._store, "overlay.traffic")


class _Count:
    """The traffic of a link as one end counts it, in all; each time the increase is passed on."""

    def __init__(self, tell: Callable[[Traffic], None]) -> None:
        self._tell, self._before = tell, (0, 0)

    def take(self, bytes_in: int, bytes_out: int) -> None:
        """So much until now; less than before is not believed."""
        if bytes_in >= self._before[0] and bytes_out >= self._before[1]:
            self._tell(Traffic(0, bytes_in - self._before[0], bytes_out - self._before[1]))
            self._before = bytes_in, bytes_out


async def _until_over(pair: Pair, low: ChannelStream, high: ChannelStream, count: _Count) -> None:
    """Hear both ends until one says that it is over; raises LinkClosed. The lower end's counts are taken."""

    async def hear(channel: ChannelStream, member: Workload) -> None:
        while True:
            step = await channel.receive()
            if isinstance(step, ChannelClose):
                if channel is low:
                    count.take(step.bytes_in, step.bytes_out)
                raise LinkClosed(f"{member.host_name}: {step.detail or 'it closed its link of the private network'}")
            if channel is low:
                count.take(*_counts(step.data))

    await together(hear(low, pair.low), hear(high, pair.high))


async def _ended(channels: Sequence[ChannelStream], count: _Count) -> None:
    """Have both ends end it, and hear from the lower one how much there was in all."""
    for channel in channels:
        with suppress(WindrowError):
            await channel.close(ChannelClose())
    with suppress(WindrowError, TimeoutError):
        async with asyncio.timeout(END_S):
            while channels:
                step = await channels[0].receive()
                if isinstance(step, ChannelClose):
                    count.take(step.bytes_in, step.bytes_out)
                    return


async def _told(channel: ChannelStream, member: Workload) -> bytes:
    step = await channel.receive()
    if isinstance(step, ChannelData):
        return step.data
    said = f"{member.host_name}: {step.detail or 'it closed its link of the private network at once'}"
    raise from_code(step.error_code or "unavailable", said, member.host_id)


def _counts(data: bytes) -> tuple[int, int]:
    """Bytes in and out, as a host tells them; nothing of what is no count."""
    words = data[:64].split()
    if len(words) != 2 or not all(word.isdigit() for word in words):
        return 0, 0
    return int(words[0]), int(words[1])
