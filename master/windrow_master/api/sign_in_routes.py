"""Routes of signing in beside the password: devices that a person approves (RFC 8628), and signing in again."""

from typing import Annotated, Any, Final

from fastapi import Request, Response
from pydantic import Field, SecretStr

from windrow_master.api.answers import Out, Time
from windrow_master.api.auth import Repeat
from windrow_master.api.bodies import Body
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.identity_routes import TokenMadeOut, TokenOut
from windrow_master.api.route import Routes
from windrow_master.identity import device_flow
from windrow_master.identity.decide import Permission
from windrow_master.identity.model import Role
from windrow_proto.errors import InvalidInput
from windrow_proto.units import SECOND

route = Routes("sign-in")

PAGE: Final = "device"
"""Of the console, where a person types the code."""

UserCode = Annotated[str, Field(min_length=8, max_length=20, description="As the device shows it: ABCD-EFGH")]


class DeviceBody(Body):
    """The name of a device, for the person who approves it."""

    name: Annotated[str, Field(min_length=1, max_length=60)] = "a device"


class DeviceTokenBody(Body):
    """The secret of a device."""

    device_code: Annotated[str, Field(max_length=200)]


class UserCodeBody(Body):
    """The code that a device shows."""

    user_code: UserCode


class ProveBody(Body):
    """One of these: the password; a code of the second factor; an API token of the same user."""

    password: Annotated[SecretStr | None, Field(max_length=1_024)] = None
    code: Annotated[str | None, Field(min_length=6, max_length=40)] = None
    token: Annotated[SecretStr | None, Field(max_length=200)] = None


class DeviceBegunOut(Out):
    """The codes of a device that wants to be signed in, as RFC 8628 names them."""

    device_code: Annotated[str, Field(description="The secret with which the device asks for its token")]
    user_code: Annotated[str, Field(description="The code that a person compares and approves")]
    verification_uri: str
    verification_uri_complete: str
    expires_in: Annotated[int, Field(description="Seconds")]
    interval: Annotated[int, Field(description="Seconds between two questions for the token")]


class DeviceOut(Out):
    """A device that waits to be approved."""

    name: Annotated[str, Field(description="The name that the device gives itself")]
    address: Annotated[str, Field(description="The network address that it asks from")]
    created_at: Time
    expires_at: Time
    project: Annotated[str, Field(description="The project that it will act in: the caller's")]
    roles: Annotated[list[Role], Field(description="The roles that it will have: the caller's")]


@route.post("/device", may=Permission.NOBODY, repeat=Repeat.ALWAYS, status_code=201, answer=DeviceBegunOut)
async def begin_device(request: Request, services: Serving, body: DeviceBody) -> Any:
    """Begin the sign-in of a device. A person who is signed in approves its code in the console."""
    place = request.client.host if request.client is not None else ""
    begun = await services.identity.devices.begin(body.name, place)
    page = f"{services.https_url or str(request.base_url).rstrip('/')}/{PAGE}"
    return {
        "device_code": begun.device_code,
        "user_code": begun.user_code,
        "verification_uri": page,
        "verification_uri_complete": f"{page}?code={begun.user_code}",
        "expires_in": device_flow.LIFE_NS // SECOND,
        "interval": device_flow.INTERVAL_NS // SECOND,
    }


@route.post(
    "/device/token",
    may=Permission.NOBODY,
    signs_in=True,
    repeat=Repeat.ALWAYS,
    status_code=201,
    answer=TokenMadeOut,
)
async def device_token(services: Serving, body: DeviceTokenBody) -> Any:
    """The token of an approved device, shown this once. 400 `authorization_pending`: nobody has decided yet;
    `slow_down`: likewise, and the device asks too often; `access_denied`, `expired_token`: begin again."""
    token, text = await services.identity.devices.token(body.device_code)
    return {**TokenOut.of(token), "token": text}


@route.post("/device/look", may=Permission.TOKENS, repeat=Repeat.ALWAYS, answer=DeviceOut)
async def look_at_device(services: Serving, principal: Asking, body: UserCodeBody) -> Any:
    """The device with this code, before it is approved or refused."""
    code = await services.identity.devices.look_at(principal, body.user_code)
    return DeviceOut.of(code, project=principal.account_name, roles=sorted(principal.roles))


@route.post("/device/approve", may=Permission.TOKENS, changes_rights=True, keeps_limits=True, status_code=204)
async def approve_device(services: Serving, principal: Asking, body: UserCodeBody) -> Response:
    """Approve the device with this code. It will act as the caller, in the caller's project."""
    await services.identity.devices.decide(principal, body.user_code, approves=True)
    return Response(status_code=204)


@route.post("/device/refuse", may=Permission.TOKENS, status_code=204)
async def refuse_device(services: Serving, principal: Asking, body: UserCodeBody) -> Response:
    """Refuse the device with this code."""
    await services.identity.devices.decide(principal, body.user_code, approves=False)
    return Response(status_code=204)


@route.post("/session/proof", may=Permission.SIGNED_IN, repeat=Repeat.ALWAYS, status_code=204)
async def sign_in_again(services: Serving, principal: Asking, body: ProveBody) -> Response:
    """Prove again who uses this session. Routes that change rights need it after ten minutes: 403 `sign_in_again`."""
    password, code, token = body.password, body.code, body.token
    if sum(one is not None for one in (password, code, token)) != 1:
        raise InvalidInput("Give one of password, code and token.", subject="password")
    texts = [None if one is None else one.get_secret_value() for one in (password, token)]
    await services.identity.profiles.prove(principal, texts[0], code, texts[1])
    return Response(status_code=204)
