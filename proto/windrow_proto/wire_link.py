"""The link's own messages as bytes and back: hello, welcome, ack, heartbeat, settings, gap, query, regions, channel.
Pure.
"""

from collections.abc import Iterable
from typing import Any

from windrow_proto import wire_fields as fields
from windrow_proto.canary import Canary, CanaryReply, Heard, HeardLanes, Sent, SentLanes
from windrow_proto.errors import InvalidInput, TooLarge
from windrow_proto.messages import (
    CHANNEL_CHUNK_BYTES,
    AccessPoint,
    Ack,
    Channel,
    ChannelClose,
    ChannelCredit,
    ChannelData,
    ChannelOpen,
    Gap,
    Heartbeat,
    HeartbeatReply,
    Hello,
    LaneMarks,
    Query,
    RegionMap,
    Settings,
    Welcome,
)
from windrow_proto.model import ChannelPurpose, Lane
from windrow_proto.nearness import RTTS_MAX
from windrow_proto.v1 import host_pb2, link_pb2


def encode_hello(hello: Hello) -> bytes:
    """A hello as a body."""
    return link_pb2.Hello(
        protocol_version=hello.protocol_version,
        agent_version=hello.agent_version,
        x25519_public=hello.x25519_public,
        generation=hello.generation,
        wall_ns=hello.wall_ns,
        inventory_hash=hello.inventory_hash,
        simulated=hello.simulated,
        unacked=fields.from_marks(hello.unacked),
        epoch_seen=hello.epoch_seen,
        second=hello.second,
        encrypts=hello.encrypts,
    ).SerializeToString()


def decode_hello(data: bytes) -> Hello:
    """Read a hello; raises InvalidInput."""
    message = fields.parse(link_pb2.Hello, data)
    return Hello(
        protocol_version=message.protocol_version,
        agent_version=fields.text(message.agent_version),
        x25519_public=fields.digest(message.x25519_public, "An exchange key"),
        generation=message.generation,
        wall_ns=message.wall_ns,
        inventory_hash=fields.text(message.inventory_hash),
        simulated=message.simulated,
        unacked=fields.to_marks(message.unacked),
        epoch_seen=message.epoch_seen,
        second=message.second,
        encrypts=message.encrypts,
    )


def encode_resume(unacked: Iterable[LaneMarks]) -> bytes:
    """The first words of a second connection that takes the first one's place, as a body."""
    return link_pb2.Resume(unacked=fields.from_marks(tuple(unacked))).SerializeToString()


def decode_resume(data: bytes) -> tuple[LaneMarks, ...]:
    """Read what the spool holds; raises InvalidInput."""
    return fields.to_marks(fields.parse(link_pb2.Resume, data).unacked)


def encode_welcome(welcome: Welcome) -> bytes:
    """A welcome as a body."""
    return link_pb2.Welcome(
        protocol_version=welcome.protocol_version,
        epoch=welcome.epoch,
        x25519_public=welcome.x25519_public,
        have=fields.from_marks(welcome.have),
        settings=_from_settings(welcome.settings),
        wall_ns=welcome.wall_ns,
        hello_digest=welcome.hello_digest,
        inventory_wanted=welcome.inventory_wanted,
        encrypts=welcome.encrypts,
    ).SerializeToString()


def decode_welcome(data: bytes) -> Welcome:
    """Read a welcome; raises InvalidInput."""
    message = fields.parse(link_pb2.Welcome, data)
    return Welcome(
        protocol_version=message.protocol_version,
        epoch=message.epoch,
        x25519_public=fields.digest(message.x25519_public, "An exchange key"),
        have=fields.to_marks(message.have),
        settings=_to_settings(message.settings),
        wall_ns=message.wall_ns,
        hello_digest=fields.digest(message.hello_digest, "A digest"),
        inventory_wanted=message.inventory_wanted,
        encrypts=message.encrypts,
    )


def _from_settings(settings: Settings) -> link_pb2.Settings:
    return link_pb2.Settings(
        telemetry_period_ns=settings.telemetry_period_ns,
        sample_period_ns=settings.sample_period_ns,
        heartbeat_interval_ns=settings.heartbeat_interval_ns,
        evidence_credits=settings.evidence_credits,
        telemetry_credits=settings.telemetry_credits,
        channel_credit_bytes=settings.channel_credit_bytes,
    )


def _to_settings(message: link_pb2.Settings) -> Settings:
    periods = (message.telemetry_period_ns, message.sample_period_ns, message.heartbeat_interval_ns)
    if min(periods) <= 0:
        raise InvalidInput("A period in the settings is not positive.")
    return Settings(
        telemetry_period_ns=message.telemetry_period_ns,
        sample_period_ns=message.sample_period_ns,
        heartbeat_interval_ns=message.heartbeat_interval_ns,
        evidence_credits=message.evidence_credits,
        telemetry_credits=message.telemetry_credits,
        channel_credit_bytes=message.channel_credit_bytes,
    )


def encode_settings(settings: Settings) -> bytes:
    """Settings as a body."""
    return _from_settings(settings).SerializeToString()


def decode_settings(data: bytes) -> Settings:
    """Read settings; raises InvalidInput, also for a period that is not positive."""
    return _to_settings(fields.parse(link_pb2.Settings, data))


def encode_ack(ack: Ack) -> bytes:
    """An ack as a body."""
    return link_pb2.Ack(
        have=fields.from_marks(ack.have), missing=fields.from_marks(ack.missing), epoch=ack.epoch
    ).SerializeToString()


def decode_ack(data: bytes) -> Ack:
    """Read an ack; raises InvalidInput."""
    message = fields.parse(link_pb2.Ack, data)
    return Ack(have=fields.to_marks(message.have), missing=fields.to_marks(message.missing), epoch=message.epoch)


def encode_heartbeat(heartbeat: Heartbeat) -> bytes:
    """A heartbeat as a body."""
    return link_pb2.Heartbeat(
        wall_ns=heartbeat.wall_ns,
        uptime_ns=heartbeat.uptime_ns,
        inventory_hash=heartbeat.inventory_hash,
        observed_digest=heartbeat.observed_digest,
        conditions=heartbeat.conditions,
        sampling_age_ns=heartbeat.sampling_age_ns,
        access_id=heartbeat.access_id,
        access_rtt_ns=heartbeat.access_rtt_ns,
        spool_bytes=heartbeat.spool_bytes,
        rtts=[link_pb2.AccessRtt(access_id=access_id, rtt_ns=rtt_ns) for access_id, rtt_ns in heartbeat.rtts],
    ).SerializeToString()


def decode_heartbeat(data: bytes) -> Heartbeat:
    """Read a heartbeat; raises InvalidInput."""
    message = fields.parse(link_pb2.Heartbeat, data)
    return Heartbeat(
        wall_ns=message.wall_ns,
        uptime_ns=fields.not_negative(message.uptime_ns, "An uptime"),
        inventory_hash=fields.text(message.inventory_hash),
        observed_digest=fields.digest(message.observed_digest, "A digest"),
        conditions=fields.texts(message.conditions),
        sampling_age_ns=max(-1, message.sampling_age_ns),
        access_id=fields.text(message.access_id),
        access_rtt_ns=max(-1, message.access_rtt_ns),
        spool_bytes=message.spool_bytes,
        rtts=tuple(
            (fields.text(one.access_id), fields.not_negative(one.rtt_ns, "A round trip"))
            for one in fields.listed(message.rtts, RTTS_MAX)
        ),
    )


def encode_heartbeat_reply(reply: HeartbeatReply) -> bytes:
    """The answer to a heartbeat as a body."""
    return link_pb2.HeartbeatReply(
        epoch=reply.epoch,
        wall_ns=reply.wall_ns,
        inventory_wanted=reply.inventory_wanted,
        observed_wanted=reply.observed_wanted,
    ).SerializeToString()


def decode_heartbeat_reply(data: bytes) -> HeartbeatReply:
    """Read the answer to a heartbeat; raises InvalidInput."""
    message = fields.parse(link_pb2.HeartbeatReply, data)
    return HeartbeatReply(
        epoch=message.epoch,
        wall_ns=message.wall_ns,
        inventory_wanted=message.inventory_wanted,
        observed_wanted=message.observed_wanted,
    )


def encode_canary(canary: Canary) -> bytes:
    """A canary as a body."""
    return link_pb2.Canary(
        number=canary.number,
        answers=canary.answers,
        sent=_from_sent(canary.sent),
        heard=_from_heard(canary.heard),
        samples=canary.samples,
    ).SerializeToString()


def decode_canary(data: bytes) -> Canary:
    """Read a canary; raises InvalidInput."""
    message = fields.parse(link_pb2.Canary, data)
    sent = {fields.lane(one.lane): Sent(one.before, one.last) for one in fields.listed(message.sent, len(Lane))}
    heard = {fields.lane(one.lane): Heard(one.last, one.count) for one in fields.listed(message.heard, len(Lane))}
    return Canary(message.number, message.answers, sent, heard, message.samples)


def encode_canary_reply(reply: CanaryReply) -> bytes:
    """A canary's reply as a body."""
    return link_pb2.CanaryReply(
        number=reply.number, kept_up=reply.kept_up, kept_down=reply.kept_down
    ).SerializeToString()


def decode_canary_reply(data: bytes) -> CanaryReply:
    """Read a canary's reply; raises InvalidInput."""
    message = fields.parse(link_pb2.CanaryReply, data)
    return CanaryReply(message.number, message.kept_up, message.kept_down)


def _from_sent(lanes: SentLanes) -> list[link_pb2.LaneTally]:
    return [link_pb2.LaneTally(lane=_lane(lane), before=one.before, last=one.last) for lane, one in lanes.items()]


def _from_heard(lanes: HeardLanes) -> list[link_pb2.LaneTally]:
    return [link_pb2.LaneTally(lane=_lane(lane), last=one.last, count=one.count) for lane, one in lanes.items()]


def _lane(lane: Lane) -> Any:
    return link_pb2.Lane.Name(lane)


def encode_gap(gap: Gap) -> bytes:
    """A gap as the body of a record."""
    return link_pb2.Gap(
        lane=link_pb2.Lane.Name(gap.lane),
        origin_boot=gap.origin_boot,
        ranges=fields.from_ranges(gap.ranges),
        reason=gap.reason,
    ).SerializeToString()


def decode_gap(data: bytes) -> Gap:
    """Read a gap; raises InvalidInput."""
    message = fields.parse(link_pb2.Gap, data)
    return Gap(
        lane=fields.lane(message.lane),
        origin_boot=fields.boot_id(message.origin_boot),
        ranges=fields.to_ranges(message.ranges),
        reason=fields.text(message.reason),
    )


def encode_query(query: Query) -> bytes:
    """A query as a body."""
    return link_pb2.Query(command_ids=query.command_ids, observed=query.observed).SerializeToString()


def decode_query(data: bytes) -> Query:
    """Read a query; raises InvalidInput."""
    message = fields.parse(link_pb2.Query, data)
    ids = tuple(fields.command_id(value) for value in fields.listed(message.command_ids))
    return Query(command_ids=ids, observed=message.observed)


def encode_region_map(regions: RegionMap) -> bytes:
    """The region map as a body, and as what is signed for its cache (domain REGIONS)."""
    points = [
        link_pb2.AccessPoint(
            access_id=point.access_id,
            region=point.region,
            address=point.address,
            load_permille=point.load_permille,
            draining=point.draining,
        )
        for point in regions.points
    ]
    return link_pb2.RegionMap(version=regions.version, points=points).SerializeToString()


def decode_region_map(data: bytes) -> RegionMap:
    """Read a region map; raises InvalidInput."""
    message = fields.parse(link_pb2.RegionMap, data)
    points = tuple(
        AccessPoint(
            access_id=fields.text(point.access_id),
            region=fields.text(point.region),
            address=fields.text(point.address, fields.IMAGE_MAX),
            load_permille=point.load_permille,
            draining=point.draining,
        )
        for point in fields.listed(message.points)
    )
    return RegionMap(version=message.version, points=points)


def encode_channel(channel: Channel) -> bytes:
    """One step of a channel as a body; raises TooLarge for a chunk over CHANNEL_CHUNK_BYTES."""
    message = host_pb2.Channel(channel_id=channel.channel_id)
    match channel.step:
        case ChannelOpen() as step:
            message.open.CopyFrom(_from_open(step))
        case ChannelData(data, stream):
            if len(data) > CHANNEL_CHUNK_BYTES:
                raise TooLarge(f"A chunk of {len(data)} bytes; the limit is {CHANNEL_CHUNK_BYTES}.")
            message.data.stream = stream
            message.data.data = data
        case ChannelCredit(credit_bytes):
            message.credit_bytes = credit_bytes
        case ChannelClose() as step:
            message.close.CopyFrom(
                host_pb2.ChannelClose(
                    error_code=step.error_code,
                    detail=step.detail,
                    exit_code=step.exit_code,
                    commit=step.commit,
                    truncated=step.truncated,
                    bytes_in=step.bytes_in,
                    bytes_out=step.bytes_out,
                )
            )
    return message.SerializeToString()


def _from_open(step: ChannelOpen) -> host_pb2.ChannelOpen:
    return host_pb2.ChannelOpen(
        workload_id=step.workload_id,
        purpose=host_pb2.ChannelPurpose.Name(step.purpose),
        argv=step.argv,
        offset=step.offset,
        follow=step.follow,
        changed_only=step.changed_only,
        port=step.port,
        stdin=step.stdin,
        tunnel_id=step.tunnel_id,
        tunnel_address=step.tunnel_address,
        tunnel_grant=step.tunnel_grant,
        tunnel_digest=step.tunnel_digest,
        cord_own=step.cord_own,
        cord_peer=step.cord_peer,
    )


def decode_channel(data: bytes) -> Channel:
    """Read one step of a channel; raises InvalidInput, TooLarge. An unknown purpose becomes UNSPECIFIED."""
    message = fields.parse(host_pb2.Channel, data)
    match message.WhichOneof("step"):
        case "open":
            return Channel(message.channel_id, _to_open(message.open))
        case "data":
            if len(message.data.data) > CHANNEL_CHUNK_BYTES:
                raise TooLarge(f"A chunk of {len(message.data.data)} bytes; the limit is {CHANNEL_CHUNK_BYTES}.")
            return Channel(message.channel_id, ChannelData(message.data.data, message.data.stream))
        case "credit_bytes":
            return Channel(message.channel_id, ChannelCredit(message.credit_bytes))
        case "close":
            return Channel(message.channel_id, _to_close(message.close))
        case _:
            raise InvalidInput("A channel message without a step we know.")


def _to_open(message: host_pb2.ChannelOpen) -> ChannelOpen:
    if message.port > 65_535:
        raise InvalidInput(f"There is no port {message.port}.")
    return ChannelOpen(
        workload_id=fields.workload_id(message.workload_id),
        purpose=fields.known(ChannelPurpose, message.purpose),
        argv=fields.arguments(message.argv),
        offset=message.offset,
        follow=message.follow,
        changed_only=message.changed_only,
        port=message.port,
        stdin=message.stdin,
        tunnel_id=fields.text(message.tunnel_id),
        tunnel_address=fields.text(message.tunnel_address, fields.IMAGE_MAX),
        tunnel_grant=fields.text(message.tunnel_grant, fields.DETAIL_MAX),
        tunnel_digest=message.tunnel_digest,
        cord_own=fields.text(message.cord_own),
        cord_peer=fields.text(message.cord_peer),
    )


def _to_close(message: host_pb2.ChannelClose) -> ChannelClose:
    return ChannelClose(
        error_code=fields.text(message.error_code),
        detail=fields.text(message.detail, fields.DETAIL_MAX),
        exit_code=message.exit_code if message.HasField("exit_code") else None,
        commit=message.commit,
        truncated=message.truncated,
        bytes_in=message.bytes_in,
        bytes_out=message.bytes_out,
    )
