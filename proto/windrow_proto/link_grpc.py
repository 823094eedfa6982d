"""The links over gRPC with mutual TLS: agents dial an Access, Access workers dial the Master; frames stay unopened.

Who a peer is comes from its certificate alone. Certificates are checked when a connection opens and never again, so
whoever accepts a stream ends it at the certificate's end or at a ban (`close`).
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final, TypeVar

import grpc
import grpc.aio

from windrow_proto import link_streams as streams
from windrow_proto.errors import CertificateRefused, Forbidden, LinkClosed, Unavailable, WindrowError
from windrow_proto.keys import SERVER_NAMES, TlsIdentity, certificate_facts
from windrow_proto.link_streams import GrpcLink
from windrow_proto.link_warm import GrpcWarmLink, pinged, reply_to
from windrow_proto.ports import (
    AgentAcceptor,
    BandwidthLink,
    DialledLink,
    FrameLink,
    PeerFacts,
    PingAnswer,
    PingFacts,
    TrunkAcceptor,
    TrunkLink,
    WarmLink,
)
from windrow_proto.units import SECOND
from windrow_proto.v1 import link_pb2, services_pb2
from windrow_proto.wire import frame_from

L = TypeVar("L", bound=GrpcLink[Any] | GrpcWarmLink)
if TYPE_CHECKING:
    Handler = grpc.RpcMethodHandler[Any, Any]  # generic in its types only
IdentitySource = TlsIdentity | Callable[[], TlsIdentity]
"""An identity, or what gives the present one: certificates are renewed while a process runs. A server calls it from
a thread of gRPC's at each handshake: let it return a value that is there, and do nothing else."""

CONNECT: Final = "/windrow.v1.AgentLink/Connect"
PING: Final = "/windrow.v1.Probe/Ping"
WARM: Final = "/windrow.v1.Probe/Warm"
BANDWIDTH: Final = "/windrow.v1.Probe/Bandwidth"
ATTACH: Final = "/windrow.v1.Trunk/Attach"
DIAL_DEADLINE_NS: Final = 5 * SECOND
STATUS_DEADLINE_S: Final = 1.0
"""A call whose write failed has ended, so its status is here or never comes."""
CLOSE_GRACE_S: Final = 2.0
"""How long an acceptor may tidy up after its stream was closed, before it is cancelled."""


def _now(identity: IdentitySource) -> TlsIdentity:
    return identity if isinstance(identity, TlsIdentity) else identity()


# --- dialling -----------------------------------------------------------------------------------------------------


def _channel(
    address: str, identity: IdentitySource, role: str, options: tuple[tuple[str, int], ...]
) -> grpc.aio.Channel:
    own = _now(identity)
    credentials = grpc.ssl_channel_credentials(own.ca_pem, own.key_pem, own.certificate_pem)
    # Every server of a role carries this name beside its addresses, so that a region map may name it any way.
    name = ("grpc.ssl_target_name_override", SERVER_NAMES[role])
    return grpc.aio.secure_channel(address, credentials, options=[*options, *streams.CLIENT_OPTIONS, name])


async def _open(
    channel: grpc.aio.Channel,
    method: str,
    kind: type[Any],
    deadline_ns: int,
    timeout_s: float | None = None,
    *,
    said: type[Any] | None = None,
    release: Callable[[], Awaitable[None]] | None = None,
) -> GrpcLink[Any]:
    """Open a stream of messages of `kind`, `said` being what we send if it is another. release: called when it has
    ended; without it the channel is closed."""
    call = channel.stream_stream(
        method, request_serializer=(said or kind).SerializeToString, response_deserializer=kind.FromString
    )(timeout=timeout_s)

    async def drop() -> None:
        call.cancel()
        await (channel.close() if release is None else release())

    try:
        async with asyncio.timeout(max(0, deadline_ns) / SECOND):
            await call.wait_for_connection()
            if streams.OPEN_KEY not in dict(await call.initial_metadata()):
                details = await call.details() or ""
                named = streams.named_in(await call.trailing_metadata() or (), details)
                raise LinkClosed(f"Could not connect: {(await call.code()).name}: {details[:300]}") from named
    except LinkClosed:
        await drop()
        raise
    except TimeoutError:
        await drop()
        raise LinkClosed(f"No answer within {deadline_ns / SECOND:.1f} s.") from None
    except streams.STREAM_ERRORS as error:
        await drop()
        raise LinkClosed(f"Could not connect: {streams.words(error)}") from streams.named_error(error)
    except asyncio.CancelledError:
        await drop()
        raise

    async def write(message: Any) -> None:
        """A write into a call that the server has ended fails with words of its own; who waits wants the server's."""
        try:
            await call.write(message)
        except streams.STREAM_ERRORS as error:
            raise await _status(call) or error from error

    return GrpcLink(call.read, write, drop)


async def _status(call: Any) -> grpc.aio.AioRpcError | None:
    """Returns the status that the server ended a call with; None when it said nothing of the kind."""
    try:
        async with asyncio.timeout(STATUS_DEADLINE_S):
            code, details = await call.code(), await call.details()
            trailing = await call.trailing_metadata()
    except (TimeoutError, *streams.STREAM_ERRORS):
        return None
    no_metadata = grpc.aio.Metadata()
    return None if code is grpc.StatusCode.OK else grpc.aio.AioRpcError(code, no_metadata, trailing, details)


class _Shared:
    """A channel of several calls, closed with the last of them."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel, self._calls = channel, 0

    def take(self) -> grpc.aio.Channel:
        """For one more call."""
        self._calls += 1
        return self._channel

    async def release(self) -> None:
        """One of them has ended."""
        self._calls -= 1
        if self._calls == 0:
            await self._channel.close()


class GrpcDialer:
    """The agent's Dialer. Every link has a connection of its own, so that nothing queues behind something else.

    gate: shared by the dialers of a process that plays many hosts; who waits at it has not begun to dial.
    """

    def __init__(self, identity: IdentitySource, gate: asyncio.Semaphore | None = None) -> None:
        self._identity = identity
        self._gate = gate or nullcontext()
        self._links: set[GrpcLink[Any] | GrpcWarmLink] = set()

    async def connect(self, address: str, deadline_ns: int) -> FrameLink:
        """Open a stream to `host:port`; raises LinkClosed past the deadline or when it is refused (its `__cause__`
        then is what the Access named)."""
        async with self._gate:
            channel = _channel(address, self._identity, "access", streams.AGENT_OPTIONS)
            return self._kept(await _open(channel, CONNECT, link_pb2.Frame, deadline_ns))

    async def bandwidth(self, address: str, deadline_ns: int) -> BandwidthLink:
        """Open a measurement stream, all of it within the deadline."""
        # Only here may the window grow: the line is to be filled.
        channel = _channel(address, self._identity, "access", streams.TRUNK_OPTIONS)
        link = await _open(channel, BANDWIDTH, services_pb2.BandwidthChunk, deadline_ns, deadline_ns / SECOND)
        return self._kept(link)

    async def warm(self, address: str, deadline_ns: int) -> WarmLink:
        """Open a connection with one call of pings on it."""
        heard, said = services_pb2.PingReply, services_pb2.PingRequest
        async with self._gate:
            shared = _Shared(_channel(address, self._identity, "access", streams.AGENT_OPTIONS))
            pings = await _open(shared.take(), WARM, heard, deadline_ns, said=said, release=shared.release)

        async def connect(deadline_ns: int) -> DialledLink:
            opening = _open(shared.take(), CONNECT, link_pb2.Frame, deadline_ns, release=shared.release)
            return self._kept(await opening)

        return self._kept(GrpcWarmLink(pings, connect))

    def _kept(self, link: L) -> L:
        self._links = {kept for kept in self._links if not kept.closed.is_set()} | {link}
        return link

    async def ping(self, address: str, deadline_ns: int) -> PingAnswer:
        """The shortest of some round trips on a connection made for them; the handshake does not count."""
        async with self._gate:
            return await self._ping(address, deadline_ns)

    async def _ping(self, address: str, deadline_ns: int) -> PingAnswer:
        channel = _channel(address, self._identity, "access", streams.AGENT_OPTIONS)
        ask = channel.unary_unary(
            PING,
            request_serializer=services_pb2.PingRequest.SerializeToString,
            response_deserializer=services_pb2.PingReply.FromString,
        )
        try:
            return await pinged(ask, deadline_ns)
        except streams.STREAM_ERRORS as error:
            raise LinkClosed(f"The ping failed: {streams.words(error)}") from streams.named_error(error)
        finally:
            await channel.close()

    async def close(self) -> None:
        """End every link this dialer opened; safe to call twice."""
        links, self._links = self._links, set()
        for link in links:
            await link.close()


async def dial_trunk(
    addresses: Sequence[str], identity: IdentitySource, deadline_ns: int = DIAL_DEADLINE_NS
) -> TrunkLink:
    """Attach to the first Master that answers, each within the deadline; raises LinkClosed when none does."""
    failures: list[str] = []
    for address in addresses:
        channel = _channel(address, identity, "master", streams.TRUNK_OPTIONS)
        try:
            link: TrunkLink = await _open(channel, ATTACH, services_pb2.TrunkBatch, deadline_ns)
            return link
        except LinkClosed as error:
            failures.append(f"{address}: {error.detail}")
    raise LinkClosed("No Master could be reached. " + " ".join(failures))


# --- serving ------------------------------------------------------------------------------------------------------


class GrpcServer:
    """A listening server: `address` is where it can be dialled, `stop` ends it."""

    def __init__(self, server: grpc.aio.Server, host: str, port: int) -> None:
        self.port = port
        self.address = f"{host}:{port}"
        self._server = server

    async def stop(self, grace_s: float = 0.5) -> None:
        """Refuse new streams, give open ones `grace_s` to end, then cut them."""
        await self._server.stop(grace_s)


async def serve_agents(
    acceptor: AgentAcceptor, identity: IdentitySource, listen: str = "127.0.0.1:0", max_connections: int | None = None
) -> GrpcServer:
    """Listen for agents. Several processes may listen on one port; the kernel spreads connections over them.

    max_connections: held at once, from their acceptance, handshake or none; gRPC closes what is more. Raises
    Unavailable if the address cannot be had.
    """

    async def connect(_: Any, context: Any) -> None:
        await _serve_stream(context, "host", acceptor.accepted)

    async def measure(_: Any, context: Any) -> None:
        await _serve_stream(context, "host", acceptor.measured)

    async def warm(_: Any, context: Any) -> None:
        await _serve_stream(context, "host", acceptor.warmed)

    async def asked(context: Any) -> PingFacts:
        try:
            return await acceptor.pinged(_peer(context, "host"))
        except WindrowError as error:
            await _abort(context, error)
            raise

    async def unknown(_: Any, context: Any) -> None:
        """Counted as a ping: gRPC itself would refuse any number of these unseen."""
        await asked(context)
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, "There is no such method.")

    async def ping(request: services_pb2.PingRequest, context: Any) -> services_pb2.PingReply:
        return reply_to(request, await asked(context))

    handlers = {
        CONNECT: grpc.stream_stream_rpc_method_handler(connect, frame_from, link_pb2.Frame.SerializeToString),
        BANDWIDTH: _stream_handler(measure, services_pb2.BandwidthChunk),
        WARM: grpc.stream_stream_rpc_method_handler(
            warm, services_pb2.PingRequest.FromString, services_pb2.PingReply.SerializeToString
        ),
        PING: grpc.unary_unary_rpc_method_handler(
            ping, services_pb2.PingRequest.FromString, services_pb2.PingReply.SerializeToString
        ),
    }
    cap = () if max_connections is None else (("grpc.max_allowed_incoming_connections", max_connections),)
    rest: Handler = grpc.stream_stream_rpc_method_handler(unknown)
    return await _serve(_Methods(handlers, rest), identity, listen, (*streams.AGENT_OPTIONS, *cap))


async def serve_trunk(acceptor: TrunkAcceptor, identity: IdentitySource, listen: str = "127.0.0.1:0") -> GrpcServer:
    """Listen for Access workers. Raises Unavailable if the address cannot be had."""

    async def attach(_: Any, context: Any) -> None:
        await _serve_stream(context, "access", acceptor.attached)

    handlers = {ATTACH: _stream_handler(attach, services_pb2.TrunkBatch)}
    return await _serve(_Methods(handlers), identity, listen, streams.TRUNK_OPTIONS)


def _stream_handler(serve: Callable[[Any, Any], Awaitable[None]], kind: type[Any]) -> "Handler":
    return grpc.stream_stream_rpc_method_handler(serve, kind.FromString, kind.SerializeToString)


class _Methods(grpc.GenericRpcHandler):
    """By their names; rest: for every other name, which gRPC refuses by itself otherwise."""

    def __init__(self, handlers: "dict[str, Handler]", rest: "Handler | None" = None) -> None:
        self._handlers, self._rest = handlers, rest

    def service(self, details: grpc.HandlerCallDetails) -> "Handler | None":
        return self._handlers.get(details.method, self._rest)


async def _serve(
    methods: _Methods, identity: IdentitySource, listen: str, options: tuple[tuple[str, int], ...]
) -> GrpcServer:
    server = grpc.aio.server(options=[*options, *streams.SERVER_OPTIONS])
    server.add_generic_rpc_handlers((methods,))
    try:
        port = server.add_secure_port(listen, _server_credentials(identity))
    except RuntimeError as error:
        raise Unavailable(f"{listen} cannot be listened on: {_why_not(listen)}.") from error
    await server.start()
    return GrpcServer(server, listen.rpartition(":")[0], port)


def _why_not(listen: str) -> str:
    """The system's own reason, which gRPC does not tell."""
    host, _, port = listen.rpartition(":")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
        with socket.socket(found[0]) as probe:
            probe.bind(found[4])
            probe.listen()
    except (OSError, ValueError) as error:
        return (error.strerror if isinstance(error, OSError) else None) or "it is not an address and a port"
    return "another process had it"


def _server_credentials(identity: IdentitySource) -> grpc.ServerCredentials:
    """mTLS that follows a renewed identity: gRPC asks at every handshake, and is answered when it has changed."""
    told = _now(identity)

    def configuration(own: TlsIdentity) -> grpc.ServerCertificateConfiguration:
        return grpc.ssl_server_certificate_configuration([(own.key_pem, own.certificate_pem)], own.ca_pem)

    def changed() -> grpc.ServerCertificateConfiguration | None:
        nonlocal told
        own = _now(identity)
        if own == told:
            return None
        told = own
        return configuration(own)

    return grpc.dynamic_ssl_server_credentials(configuration(told), changed, require_client_authentication=True)  # type: ignore[arg-type]  # None is "unchanged"


def _peer(context: Any, role: str) -> PeerFacts:
    """Returns the caller; raises CertificateRefused or Forbidden for anyone but this role."""
    pems = context.auth_context().get("x509_pem_cert", ())
    if not pems:
        raise CertificateRefused("The caller showed no certificate.")
    facts = certificate_facts(pems[0])
    if facts.role != role:
        raise Forbidden(f"Only a {role} may call this; the certificate is of {facts.role} {facts.subject_id}.")
    return PeerFacts(
        role=facts.role,
        subject_id=facts.subject_id,
        generation=facts.generation,
        not_after_ns=facts.not_after_ns,
        address=context.peer(),
        certificate_sha256=facts.sha256,
    )


async def _abort(context: Any, error: WindrowError) -> None:
    status = grpc.StatusCode[error.grpc]
    await context.abort(status, error.detail, streams.named(error))


async def _serve_stream(context: Any, role: str, accept: Callable[[PeerFacts, Any], Awaitable[None]]) -> None:
    """Run an acceptor beside its stream; whichever ends first ends the other.

    The stream is opened once the acceptor waits for something or has something to say: who is sent away at once hears
    it as the answer to his opening. (What he had written meanwhile would make his gRPC forget the reason.)
    """
    try:
        peer = _peer(context, role)
    except WindrowError as error:
        await _abort(context, error)
        return
    outcome: list[WindrowError] = []
    is_open = is_gone = False

    async def open_stream() -> None:
        nonlocal is_open
        if not is_open:
            is_open = True
            await context.send_initial_metadata(((streams.OPEN_KEY, "1"),))

    async def write(message: Any) -> None:
        await open_stream()
        await context.write(message)

    async def drop() -> None:
        """The handler below watches `closed`."""

    link: GrpcLink[Any] = GrpcLink(context.read, write, drop)

    async def work() -> None:
        try:
            await accept(peer, link)
        except WindrowError as error:
            error.__traceback__ = None  # it leads to all of the stream, of which some lead to the error: a ring
            if not isinstance(error, LinkClosed):
                outcome.append(error)
        finally:
            await link.end("it was served")

    async with asyncio.TaskGroup() as group:
        task = group.create_task(work())
        await asyncio.sleep(0)  # in which the acceptor comes to its first wait, or to its end
        try:
            if not outcome:
                await open_stream()
            await link.closed.wait()
        except asyncio.CancelledError:
            # gRPC's way to say that the caller has gone; the acceptor hears it as LinkClosed.
            is_gone = True
            await link.end("the peer has gone")
        except streams.STREAM_ERRORS as error:
            await link.end(streams.words(error))
        _, late = await asyncio.wait({task}, timeout=CLOSE_GRACE_S)
        if late:
            task.cancel()
    if outcome and not is_gone:
        await _abort(context, outcome[0])
