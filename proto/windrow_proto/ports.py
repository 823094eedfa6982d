"""Ports to the outside world, which shells are given and pure files never see: a clock, randomness, a disk, and the
links between processes.

Each port has a real adapter and a deterministic twin, held to one contract suite (tests/contract). Messages of the
link cross these ports as they are on the wire, so that Access moves them without reading `sealed`.
"""

from dataclasses import dataclass
from typing import Protocol

from windrow_proto.ids import HostId
from windrow_proto.v1 import link_pb2, services_pb2


class Clock(Protocol):
    """Two clocks and a way to wait; virtual in simulation."""

    def monotonic_ns(self) -> int:
        """Nanoseconds that never go back and do not jump with the wall; for timers, leases and running time."""

    def wall_ns(self) -> int:
        """Nanoseconds since 1970 as the host believes; for records and display, never for decisions about money."""

    async def sleep_ns(self, duration_ns: int) -> None:
        """Wait at least this long; negative or zero yields once."""


class Rng(Protocol):
    """Randomness; seeded in simulation."""

    def random_bytes(self, count: int) -> bytes:
        """`count` random bytes, fit for keys where the adapter is the real one."""

    def uniform(self) -> float:
        """A float in [0, 1)."""


class FrameLink(Protocol):
    """One side of one open stream of frames, either way. One sender and one receiver at a time."""

    async def send(self, frame: link_pb2.Frame) -> None:
        """Hand over one frame; waits while the peer is slow. Raises LinkClosed when the stream has ended."""

    async def receive(self) -> link_pb2.Frame:
        """The next frame, in the order sent. Raises LinkClosed when the stream has ended."""

    async def close(self) -> None:
        """End the stream both ways; safe to call twice and from another task than the sender's."""


class DialledLink(FrameLink, Protocol):
    """The dialler's side of one."""

    @property
    def is_closed(self) -> bool:
        """True if it is known to have ended."""


class TrunkLink(Protocol):
    """One side of one open trunk between an Access worker and the Master; the rules of FrameLink."""

    async def send(self, batch: services_pb2.TrunkBatch) -> None:
        """Hand over one batch; waits while the peer is slow. Raises LinkClosed when the trunk has ended."""

    async def receive(self) -> services_pb2.TrunkBatch:
        """The next batch, in the order sent. Raises LinkClosed when the trunk has ended."""

    async def close(self) -> None:
        """End the trunk both ways; safe to call twice."""


class BandwidthLink(Protocol):
    """One side of one measurement stream; the rules of FrameLink."""

    async def send(self, chunk: services_pb2.BandwidthChunk) -> None:
        """Hand over one chunk; waits while the peer is slow. Raises LinkClosed when the stream has ended."""

    async def receive(self) -> services_pb2.BandwidthChunk:
        """The next chunk, in the order sent. Raises LinkClosed when the stream has ended."""

    async def close(self) -> None:
        """End the stream both ways; safe to call twice."""


class PingLink(Protocol):
    """An Access's side of the pings on a connection that is kept warm; the rules of FrameLink."""

    async def send(self, reply: services_pb2.PingReply) -> None:
        """Answer. Raises LinkClosed when the stream has ended."""

    async def receive(self) -> services_pb2.PingRequest:
        """The next ping. Raises LinkClosed when the stream has ended."""

    async def close(self) -> None:
        """End the pings, and with them the connection; safe to call twice."""


@dataclass(frozen=True, slots=True)
class PeerFacts:
    """The peer, from its certificate as the handshake verified it; never from what it says itself.

    role: host, access or master; not_after_ns: of the certificate, wall clock. Nobody else ends the stream then: the
    accepting side keeps a timer and closes the link itself.
    """

    role: str
    subject_id: str
    generation: int
    not_after_ns: int
    address: str
    certificate_sha256: bytes

    @property
    def host_id(self) -> HostId:
        """The subject, where the role is host."""
        return HostId(self.subject_id)


@dataclass(frozen=True, slots=True)
class PingFacts:
    """An Access's description of itself when it is pinged."""

    access_id: str
    region: str
    load_permille: int
    draining: bool
    seen: str = ""
    """The pinger's address as this Access sees it."""


@dataclass(frozen=True, slots=True)
class PingAnswer:
    """The same with the round trip as the pinger measured it."""

    rtt_ns: int
    access_id: str
    region: str
    load_permille: int
    draining: bool
    letter: bytes = b""
    seen: str = ""
    """Our address as the Access sees it; empty from one of an older release."""


class WarmLink(Protocol):
    """A connection to an Access kept by pings, until it is needed."""

    async def ping(self, deadline_ns: int, letter: bytes = b"") -> PingAnswer:
        """One round trip; one at a time. letter: for the Master, whose answer comes with it or is empty. Raises
        LinkClosed past the deadline or when the connection has ended."""

    async def connect(self, deadline_ns: int) -> DialledLink:
        """Open a stream of frames on this connection, beside the pings. Raises LinkClosed as Dialer.connect does, and
        the pings are over then."""

    async def close(self) -> None:
        """End the pings, and the connection unless frames are on it; safe to call twice."""


class Dialer(Protocol):
    """Opens links to an Access by address."""

    async def connect(self, address: str, deadline_ns: int) -> FrameLink:
        """Open a stream to `host:port`. Raises LinkClosed if it is not open within `deadline_ns` from now."""

    async def ping(self, address: str, deadline_ns: int) -> PingAnswer:
        """One round trip on an open or new connection. Raises LinkClosed past the deadline."""

    async def warm(self, address: str, deadline_ns: int) -> WarmLink:
        """Open a connection and keep it. Raises LinkClosed as `connect` does."""

    async def bandwidth(self, address: str, deadline_ns: int) -> BandwidthLink:
        """Open a measurement stream; `deadline_ns` bounds all of it. Raises LinkClosed if it cannot be opened."""

    async def close(self) -> None:
        """Drop every connection this dialer holds; safe to call twice."""


class AgentAcceptor(Protocol):
    """The handler in an Access of the streams that agents open. A stream is open until its method returns or raises."""

    async def accepted(self, peer: PeerFacts, link: FrameLink) -> None:
        """Serve one agent's stream. Raise a WindrowError to end it with that error's status; raised before anything is
        waited for or sent, it refuses the stream: dialling fails with it."""

    async def pinged(self, peer: PeerFacts) -> PingFacts:
        """Say what this Access is."""

    async def warmed(self, peer: PeerFacts, link: PingLink) -> None:
        """Answer the pings of a connection that is kept warm; the rules of `accepted`."""

    async def measured(self, peer: PeerFacts, link: BandwidthLink) -> None:
        """Serve one bandwidth measurement."""


class TrunkAcceptor(Protocol):
    """The handler in a Master of the trunks that Access workers open."""

    async def attached(self, peer: PeerFacts, trunk: TrunkLink) -> None:
        """Serve one trunk; it is open until this returns or raises."""


class Disk(Protocol):
    """Files by path, as far as append-only logs need them. Every method may raise OSError, and none retries.

    Nothing is durable before `sync` of the file and, for its name, `sync_directory` of the folder.
    """

    def make_directory(self, path: str) -> None:
        """Make a folder and those above it; nothing if it is there."""

    def list(self, path: str) -> tuple[str, ...]:
        """Names in a folder, sorted; empty if there is none."""

    def folders(self, path: str) -> tuple[str, ...]:
        """Names of the folders in a folder, sorted; one without files may be left out."""

    def size(self, path: str) -> int:
        """Bytes in a file."""

    def read(self, path: str, offset: int, count: int) -> bytes:
        """At most `count` bytes from `offset`; fewer only at the end."""

    def append(self, path: str, data: bytes) -> None:
        """Write at the end, making the file if it is not there; all of it or OSError (then part may be there)."""

    def sync(self, path: str) -> None:
        """Make the file's bytes survive a power cut."""

    def sync_directory(self, path: str) -> None:
        """Make the folder's names survive a power cut."""

    def truncate(self, path: str, size: int) -> None:
        """Cut a file to `size` bytes."""

    def rename(self, source: str, target: str) -> None:
        """Give a file another name in place of whatever had it, atomically."""

    def delete(self, path: str) -> None:
        """Remove a file; nothing if it is not there."""

    def free_bytes(self, path: str) -> int:
        """Bytes that may still be written in this folder's file system."""

    def release(self, path: str) -> None:
        """Close whatever is held open for this file."""
