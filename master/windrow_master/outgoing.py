"""Asks other servers over HTTP, within a deadline and a size, at addresses that this Master may ask; the adapter of
httpx2.

A name is looked up once, and the connection goes to an address that was looked at: to the next one, of the other family
first, where one does not answer within a second. Redirects are not followed.
"""

import asyncio
import json
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_address
from itertools import zip_longest
from typing import Any, Final

import httpx2

from windrow_proto.errors import Unavailable
from windrow_proto.networks import Network, is_public
from windrow_proto.wire_fields import clean_text

DEADLINE_S: Final = 5.0
"""Of a whole exchange, from the look-up of the name to the last byte, where a person waits for it."""
BYTES_MAX: Final = 256 * 1024
"""Of an answer; 10,000 groups have some 150 KiB."""
BEGIN_BYTES: Final = 64 * 1024
"""Of an answer of which only the status counts."""
SAID_MAX: Final = 200
"""Characters of what a server or a library says that are passed on."""
ADDRESSES_TRIED: Final = 3
CONNECT_S: Final = 1.0
"""For a connection to an address that is not the last one: a dead route leaves time for the others."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer. said: the object of its JSON; empty where it has none."""

    status: int
    said: Mapping[str, Any]


async def looked_up(host: str, port: int) -> Sequence[str]:
    """The addresses of a name; raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]) for one in found))


class Outgoing:
    """The one way by which this Master asks servers that users name."""

    def __init__(
        self,
        transport: httpx2.AsyncBaseTransport | None = None,
        look_up: Callable[[str, int], Awaitable[Sequence[str]]] = looked_up,
        deadline_s: float = DEADLINE_S,
        connect_s: float = CONNECT_S,
        allowed: Sequence[Network] = (),
    ) -> None:
        """transport: instead of the network. allowed: private networks in which any host may be asked."""
        self._transport, self._look_up = transport, look_up
        self._deadline_s, self._connect_s, self._allowed = deadline_s, connect_s, allowed

    @cached_property
    def _trust(self) -> ssl.SSLContext:
        return ssl.create_default_context()

    async def ask(
        self,
        method: str,
        url: str,
        private_host: str = "",
        *,
        form: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One exchange, in JSON. private_host: the one host that may lie in a private network, whatever networks are
        allowed. Raises Unavailable with what is wrong with the server."""
        status, content = await self._tried(
            httpx2.URL(url), private_host, self._deadline_s, _content, method, data=form and dict(form), headers=headers
        )
        return Answer(status, _object(content))

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], deadline_s: float) -> tuple[int, str]:
        """Send a body; returns the status of the answer and the begin of its text. Raises Unavailable."""
        try:
            target = httpx2.URL(url)
        except httpx2.InvalidURL as wrong:
            raise Unavailable(f"The URL is not valid: {wrong}") from None
        status, content = await self._tried(target, "", deadline_s, _begin, "POST", content=body, headers=headers)
        return status, content.decode(errors="replace")

    async def _tried(
        self,
        target: httpx2.URL,
        private_host: str,
        deadline_s: float,
        read: Callable[[httpx2.Response, str], Awaitable[bytes]],
        method: str,
        **sent: Any,
    ) -> tuple[int, bytes]:
        """The status and the content of an answer."""
        failed: Exception = OSError("its name has no address")
        try:
            async with asyncio.timeout(deadline_s):
                addresses = await self._addresses(target, is_private=target.host == private_host)
                for address in addresses:
                    wait = httpx2.Timeout(None, connect=None if address == addresses[-1] else self._connect_s)
                    try:
                        return await self._exchange(target, address, wait, read, method, **sent)
                    except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                        failed = error
                raise failed
        except TimeoutError:
            raise Unavailable(f"{target.host} did not answer within {deadline_s:g} s.") from None
        except (httpx2.HTTPError, OSError, UnicodeError) as error:
            said = clean_text(str(error), SAID_MAX) or type(error).__name__
            raise Unavailable(f"{target.host} does not answer: {said}.") from None

    async def _addresses(self, target: httpx2.URL, *, is_private: bool) -> Sequence[str]:
        found = await self._look_up(target.host, target.port or (443 if target.scheme == "https" else 80))
        if not is_private and not all(is_public(one) or self._allows(one) for one in found):
            raise Unavailable(
                f"{target.host} lies in a private network. If it is your own identity provider, add it with --private; "
                "for other servers an operator names the network in WINDROW_EGRESS_ALLOW."
            )
        if target.scheme != "https" and not is_private and not all(map(self._allows, found)):
            raise Unavailable(f"{target.host} is not asked without TLS. Give an https URL.")
        return alternating(found)[:ADDRESSES_TRIED]

    def _allows(self, address: str) -> bool:
        found = ip_address(address.partition("%")[0])
        return any(found in network for network in self._allowed)

    async def _exchange(
        self,
        target: httpx2.URL,
        address: str,
        wait: httpx2.Timeout,
        read: Callable[[httpx2.Response, str], Awaitable[bytes]],
        method: str,
        *,
        headers: Mapping[str, str] | None,
        **sent: Any,
    ) -> tuple[int, bytes]:
        known = {"Host": target.netloc.decode(), "Accept": "application/json", "Accept-Encoding": "identity"}
        options: dict[str, Any] = {"transport": self._transport} if self._transport else {"verify": self._trust}
        async with httpx2.AsyncClient(trust_env=False, follow_redirects=False, timeout=wait, **options) as client:
            asked = client.build_request(
                method,
                target.copy_with(host=address),
                headers={**known, **(headers or {})},
                extensions={"sni_hostname": target.host},
                **sent,
            )
            answer = await client.send(asked, stream=True)
            try:
                return answer.status_code, await read(answer, target.host)
            finally:
                await answer.aclose()


def alternating(addresses: Sequence[str]) -> list[str]:
    """The same with the two families in turn, from that of the first (RFC 8305)."""
    families = [[one for one in addresses if (":" in one) is is_ipv6] for is_ipv6 in (True, False)]
    families.sort(key=lambda family: family[:1] != list(addresses[:1]))
    return [one for turn in zip_longest(*families) for one in turn if one is not None]


def _check_stays(answer: httpx2.Response, host: str) -> None:
    if answer.is_redirect:
        raise Unavailable(f"{host} sends elsewhere (status {answer.status_code}), and is not followed.")


async def _begin(answer: httpx2.Response, host: str) -> bytes:
    """At most BEGIN_BYTES and one chunk of the text; what follows is not read."""
    _check_stays(answer, host)
    content = bytearray()
    async for chunk in answer.aiter_raw():
        content += chunk
        if len(content) >= BEGIN_BYTES:
            break
    return bytes(content[:BEGIN_BYTES])


async def _content(answer: httpx2.Response, host: str) -> bytes:
    _check_stays(answer, host)
    if answer.headers.get("Content-Encoding", "identity") != "identity":
        raise Unavailable(f"{host} answers with compressed content, which was not asked for.")
    content = bytearray()
    async for chunk in answer.aiter_bytes():
        content += chunk
        if len(content) > BYTES_MAX:
            raise Unavailable(f"{host} answers with more than {BYTES_MAX // 1024} KiB.")
    return bytes(content)


def _object(content: bytes) -> Mapping[str, Any]:
    try:
        said = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}
