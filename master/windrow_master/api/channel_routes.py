"""Routes of channels, to which alerts are delivered, and of deliveries."""

from typing import Annotated, Any, Final

from fastapi import Query, Response
from pydantic import Field

from windrow_master.api import answers
from windrow_master.api.answers import Out, Read, Time
from windrow_master.api.auth import Reach, Repeat
from windrow_master.api.bodies import Body
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.paging import Cursor, Limit, page, read_cursor
from windrow_master.api.route import Routes
from windrow_master.identity.decide import Permission
from windrow_master.watch.model import MessageKind
from windrow_master.watch.notify.channels import ChannelSettings
from windrow_master.watch.notify.model import (
    RULES_MAX,
    URL_MAX,
    ChannelKind,
    DeliveryState,
    MailLevel,
    Quiet,
    Scope,
)
from windrow_proto.conditions import Severity

route = Routes("channels")

DIGEST_MINUTES_MAX: Final = 24 * 60
TIME: Final = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"
Rule = Annotated[str, Field(min_length=1, max_length=128)]


class QuietBody(Body):
    """Hours of each day in which only alerts of the severity page are sent; the others follow together."""

    begin: Annotated[str, Field(pattern=TIME, description="Such as 22:00")]
    end: Annotated[str, Field(pattern=TIME, description="Such as 07:00; before the begin: on the next day")]
    time_zone: Annotated[str, Field(max_length=64, description="Such as Europe/Berlin")] = "UTC"


class ChannelSettingsBody(Body):
    """The settings of a channel that can be changed."""

    name: Annotated[str, Field(min_length=1, max_length=64)]
    min_severity: Annotated[Severity, Field(description="Alerts of less are not sent")] = Severity.TICKET
    rules: Annotated[
        tuple[Rule, ...], Field(max_length=RULES_MAX, description="Rules of alerts, such as host.*; empty: all")
    ] = ()
    quiet: QuietBody | None = None
    digest_minutes: Annotated[
        int | None,
        Field(ge=5, le=DIGEST_MINUTES_MAX, description="What can wait goes together, as often; not of a webhook"),
    ] = None
    is_enabled: bool = True

    def parsed(self) -> ChannelSettings:
        """The same as a value."""
        said = self.quiet
        quiet = None if said is None else Quiet(_minute(said.begin), _minute(said.end), said.time_zone)
        return ChannelSettings(
            name=self.name,
            min_severity=self.min_severity,
            rules=self.rules,
            quiet=quiet,
            digest_minutes=self.digest_minutes,
            is_enabled=self.is_enabled,
        )


class ChannelBody(ChannelSettingsBody):
    """A new channel."""

    kind: ChannelKind
    target: Annotated[str, Field(min_length=1, max_length=URL_MAX, description="A mail address, or a URL")]
    scope: Annotated[Scope, Field(description="Whose alerts it gets")] = Scope.PROJECT


class AlertMailBody(Body):
    """The alerts that a user gets by mail without a channel."""

    level: MailLevel


class AlertMailOut(Out):
    """The alerts that a user gets by mail without a channel: none, the urgent ones (severity page), or all (page and
    ticket)."""

    level: MailLevel


class QuietOut(Out):
    """Hours in which only alerts of the severity page are sent."""

    begin: Annotated[str, Read(lambda quiet: _time(quiet.from_minute))]
    end: Annotated[str, Read(lambda quiet: _time(quiet.until_minute))]
    time_zone: str


class ChannelOut(Out):
    """A channel."""

    id: Annotated[str, Read("channel_id")]
    name: str
    kind: ChannelKind
    scope: Scope
    owner: Annotated[str, Field(description="`operators`, or the id of a project, an organisation or a user")]
    target: Annotated[str, Read("shown"), Field(description="Of a URL the host alone")]
    min_severity: Severity
    rules: list[str]
    quiet: QuietOut | None
    digest_minutes: int | None
    is_enabled: Annotated[bool, Read(lambda one: one.disabled_at_ns is None)]
    created_at: Time
    created_by: str
    rotated_at: Time | None


class ChannelMadeOut(Out):
    """A channel, and the secret by which its receiver verifies messages."""

    channel: ChannelOut
    secret: Annotated[str | None, Field(description="Shown this once; null: no webhook")]


class DeliveryOut(Out):
    """One message on its way to one channel."""

    id: Annotated[str, Read("delivery_id")]
    channel_id: Annotated[str, Field(description="`mail:` and a user's id: the mail that needs no channel")]
    message_id: Annotated[str, Read("message.message_id"), Field(description="The same at each try")]
    alert_id: Annotated[str, Read("message.alert_id")]
    kind: Annotated[MessageKind, Read("message.kind")]
    severity: Annotated[Severity, Read("message.severity")]
    title: Annotated[str, Read("message.title")]
    object: Annotated[str, Read("message.object_key"), Field(description="Messages of one object go in order")]
    state: DeliveryState
    tries: int
    last_answer: str | None
    due_at: Annotated[Time | None, Field(description="The next try; null: none")]
    first_at: Time
    done_at: Time | None


@route.get("/channels", may=Permission.SIGNED_IN, answer=answers.Page[ChannelOut])
async def channels(services: Serving, principal: Asking, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """The channels of the caller, the project and, by role, the organisation and the installation."""
    found = await services.channels.list(principal, read_cursor(cursor), limit + 1)
    return page(found, limit, ChannelOut.of, lambda one: one.channel_id)


@route.post("/channels", may=Permission.SIGNED_IN, repeat=Repeat.ALWAYS, status_code=201, answer=ChannelMadeOut)
async def add_channel(services: Serving, principal: Asking, body: ChannelBody) -> Any:
    """Create a channel. A project's takes an admin, a renter or a provider; an organisation's an owner or admin; the
    installation's (operators) an operator."""
    channel, secret = await services.channels.add(principal, body.scope, body.kind, body.target, body.parsed())
    return {"channel": ChannelOut.of(channel), "secret": secret}


@route.get("/channels/{channel_id}", may=Permission.SIGNED_IN, reach=Reach.OWN, answer=ChannelOut)
async def channel(services: Serving, principal: Asking, channel_id: str) -> Any:
    """One channel."""
    return ChannelOut.of(await services.channels.get(principal, channel_id))


@route.put("/channels/{channel_id}", may=Permission.SIGNED_IN, reach=Reach.OWN, answer=ChannelOut)
async def set_channel(services: Serving, principal: Asking, channel_id: str, body: ChannelSettingsBody) -> Any:
    """Replace the settings of a channel. One that is switched off gives up what it has not sent."""
    return ChannelOut.of(await services.channels.set(principal, channel_id, body.parsed()))


@route.delete("/channels/{channel_id}", may=Permission.SIGNED_IN, reach=Reach.OWN, status_code=204)
async def delete_channel(services: Serving, principal: Asking, channel_id: str) -> Response:
    """Delete a channel. What it has not sent is given up."""
    await services.channels.delete(principal, channel_id)
    return Response(status_code=204)


@route.post("/channels/{channel_id}/test", may=Permission.SIGNED_IN, reach=Reach.OWN, answer=DeliveryOut)
async def test_channel(services: Serving, principal: Asking, channel_id: str) -> Any:
    """Send a test message now, and tell how it went."""
    return DeliveryOut.of(await services.channels.test(principal, channel_id))


@route.post(
    "/channels/{channel_id}/rotate",
    may=Permission.SIGNED_IN,
    reach=Reach.OWN,
    repeat=Repeat.ALWAYS,
    answer=ChannelMadeOut,
)
async def rotate_channel(services: Serving, principal: Asking, channel_id: str) -> Any:
    """Make a new secret for a webhook. For one day each message is signed by both."""
    channel, secret = await services.channels.rotate(principal, channel_id)
    return {"channel": ChannelOut.of(channel), "secret": secret}


@route.get("/deliveries", may=Permission.SIGNED_IN, answer=answers.Page[DeliveryOut])
async def deliveries(
    services: Serving,
    principal: Asking,
    channel: Annotated[str | None, Query(max_length=96, description="Id of a channel")] = None,
    state: DeliveryState | None = None,
    alert: Annotated[str | None, Query(max_length=64, description="Id of an alert")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Any:
    """The deliveries of the channels in reach, the latest first. They are kept for 90 days."""
    wanted = {"channel_id": channel, "state": state, "alert_id": alert}
    found = await services.deliveries.list(principal, read_cursor(cursor), limit + 1, wanted)
    return page(found, limit, DeliveryOut.of, lambda one: one.delivery_id)


@route.post("/deliveries/{delivery_id}/again", may=Permission.SIGNED_IN, reach=Reach.OWN, answer=DeliveryOut)
async def deliver_again(services: Serving, principal: Asking, delivery_id: str) -> Any:
    """Send a message again, with the id that it had."""
    return DeliveryOut.of(await services.deliveries.again(principal, delivery_id))


@route.get("/user/alert-mail", may=Permission.SIGNED_IN, answer=AlertMailOut)
async def alert_mail(services: Serving, principal: Asking) -> Any:
    """The alerts that the caller's user gets by mail without a channel."""
    return {"level": await services.channels.mail_level(principal)}


@route.put("/user/alert-mail", may=Permission.SIGNED_IN, answer=AlertMailOut)
async def set_alert_mail(services: Serving, principal: Asking, body: AlertMailBody) -> Any:
    """Choose the alerts that the caller's user gets by mail without a channel."""
    await services.channels.set_mail_level(principal, body.level)
    return {"level": body.level}


def _minute(text: str) -> int:
    return int(text[:2]) * 60 + int(text[3:])


def _time(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"
