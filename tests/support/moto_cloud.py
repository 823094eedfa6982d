"""Amazon on this machine: moto's server, and a layer before it that does what moto lacks and goes wrong on order.

The layer makes ClientToken idempotent, hides young machines from lists (`lag` ... `catch_up`), gives spot prices that
could be, and plays a fault at the next call of an action: an error code of Amazon's, or a way of `Cut`.
"""

import io
import logging
import socket
import threading
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final
from urllib.parse import parse_qsl

from windrow_master.hybrid.backends.ec2 import Ec2Settings
from windrow_master.prices import offers
from windrow_master.prices.book import PriceBook

REGION: Final = "eu-central-1"
AMI_PARAMETER: Final = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64"
"""A parameter that moto knows."""
PATIENCE_S: Final = 60.0
SECRET_KEY: Final = "a-secret-key-that-nobody-may-ever-read-in-a-log"
STATUS: Final = {"RequestLimitExceeded": 503, "InsufficientInstanceCapacity": 500, "InternalError": 500}
"""HTTP statuses of Amazon's codes, where they are not 400."""
SPOT_PRICE: Final = b"0.402000"

Start = Callable[..., Any]


class Cut(StrEnum):
    """A way in which no answer comes that can be read."""

    LOST = "lost"
    """It is done, and the connection ends without an answer."""
    UNDONE = "undone"
    """The connection ends before it is done."""
    HTML = "html"
    """A page of HTML in place of an answer, as of a proxy or of moto."""
    SLOW = "slow"
    """No answer until `release`; then it is done."""


@dataclass
class MotoCloud:
    """The running server. `endpoint`: its address."""

    endpoint: str = ""
    asked: Counter[str] = field(default_factory=Counter)
    """How often each action came."""
    bodies: list[dict[str, str]] = field(default_factory=list)
    """Each call of RunInstances, as it came."""
    page_max: int | None = None
    """The most results in one page, whatever is asked for."""
    spot_price: bytes = SPOT_PRICE
    full: set[tuple[str, str]] = field(default_factory=set)
    """Zones without a machine, each with `spot` or `on-demand`."""
    listener: Callable[[str, bool], None] | None = None
    """Told of each call by its action: when it comes (False), and when it is done and not answered yet (True)."""
    _next: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    _made: dict[str, tuple[dict[str, str], list[bytes]]] = field(default_factory=dict)
    _hidden: set[str] = field(default_factory=set)
    _is_lagging: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _released: threading.Event = field(default_factory=threading.Event)

    def then(self, action: str, *faults: str) -> None:
        """The next calls of this action, such as RunInstances, go so: a Cut, or a code of Amazon's."""
        self._next[action] += faults

    def lag(self) -> None:
        """What is made from now on is in no list until `catch_up`."""
        self._is_lagging = True

    def catch_up(self) -> None:
        """All that was made is in the lists."""
        self._is_lagging = False
        self._hidden.clear()

    def release(self) -> None:
        """Let slow calls go on."""
        self._released.set()

    def reset(self) -> None:
        """No fault, no lag."""
        self._next.clear()
        self.catch_up()
        self.release()
        self._released = threading.Event()
        self.page_max, self.listener = None, None
        self.full.clear()

    def settings(self, **more: Any) -> Ec2Settings:
        """Settings of a backend that buys here."""
        known = {"region": REGION, "endpoint": self.endpoint, "access_key": "AKIAEXAMPLE", "secret_key": SECRET_KEY}
        return Ec2Settings(**{**known, "image": AMI_PARAMETER, "image_gpu": AMI_PARAMETER, **more})

    def client(self, service: str = "ec2") -> Any:
        """A client of boto3 for tests, which passes the same layer."""
        import boto3

        keys = {"aws_access_key_id": "AKIAEXAMPLE", "aws_secret_access_key": SECRET_KEY}
        return boto3.client(service, endpoint_url=self.endpoint, region_name=REGION, **keys)

    def app(self, inner: Callable[[dict[str, Any], Start], Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
        """The layer before another WSGI application."""

        def answer(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
            body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            asked = dict(parse_qsl(body.decode("latin-1"), keep_blank_values=True))
            action = asked.get("Action") or environ.get("HTTP_X_AMZ_TARGET", "").rpartition(".")[2]
            self.asked[action] += 1
            self._tell(action, False)
            fault = self._next[action].pop(0) if self._next[action] else ""
            if action == "RunInstances" and _place(asked) in self.full:
                fault = "InsufficientInstanceCapacity"
            if fault in (Cut.UNDONE, Cut.HTML) or (fault and fault not in tuple(Cut)):
                return _refused(environ, start, fault)
            if fault == Cut.SLOW:
                self._released.wait(PATIENCE_S)
            done = self._done(inner, environ, body, action, asked)
            self._tell(action, True)
            if fault == Cut.LOST:
                _hang_up(environ)
            start(done.status, done.headers)
            return [done.body]

        return answer

    def _tell(self, action: str, is_done: bool) -> None:
        if self.listener is not None:
            self.listener(action, is_done)

    def _done(self, inner: Any, environ: dict[str, Any], body: bytes, action: str, asked: dict[str, str]) -> "_Answer":
        token = asked.get("ClientToken", "") if action == "RunInstances" and "DryRun" not in asked else ""
        with self._lock:
            if action == "RunInstances":
                self.bodies.append(asked)
            if token in self._made:
                before, said = self._made[token]
                if before != asked:
                    return _error("IdempotentParameterMismatch", 400)
                return _Answer("200 OK", [("Content-Type", "text/xml")], said[0])
            if self.page_max is not None and "MaxResults" not in asked and action.startswith("Describe"):
                body += f"&MaxResults={self.page_max}".encode()
            found = _passed(inner, environ, body)
            if token and found.status.startswith("200"):
                self._made[token] = (asked, [found.body])
                if self._is_lagging:
                    self._hidden |= {one.text or "" for one in ET.fromstring(found.body).findall(".//{*}instanceId")}
        if action == "DescribeInstances" and self._hidden:
            found.body = self._without_hidden(found.body)
        if action == "DescribeSpotPriceHistory":
            found.body = found.body.replace(b"<spotPrice>0.00001", b"<spotPrice>" + self.spot_price)
        return found

    def _without_hidden(self, body: bytes) -> bytes:
        root = ET.fromstring(body)
        groups = root.find("{*}reservationSet")
        for group in list(groups if groups is not None else ()):
            if {one.text for one in group.findall(".//{*}instanceId")} & self._hidden:
                groups.remove(group)  # type: ignore[union-attr]
        return ET.tostring(root)


@dataclass
class _Answer:
    status: str
    headers: list[tuple[str, str]]
    body: bytes


@contextmanager
def moto_cloud() -> Iterator[MotoCloud]:
    """A server in a thread of this process, for as long as this lasts."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    cloud = MotoCloud()
    server = make_server("127.0.0.1", 0, cloud.app(DomainDispatcherApplication(create_backend_app)), threaded=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    cloud.endpoint = f"http://127.0.0.1:{server.port}"
    try:
        yield cloud
    finally:
        cloud.release()
        server.shutdown()
        server.server_close()
        thread.join()


def price_book(on_demand_usd: str = "1.006") -> PriceBook:
    """Types of two providers, of prices that never grow old."""
    sellers = offers.providers(
        ",".join(offers.COLUMNS["providers"]) + "\naws,Amazon Web Services,US,USD,excluded,1,60,announced,0.09,,\n"
        "modal,Modal Labs,US,USD,,1,1,announced,,,\n"
    )
    read_in = offers.sources(
        ",".join(offers.COLUMNS["sources"]) + "\naws,a list,2026-11-01,3650\nmodal,a list,2026-11-01,3650\n"
    )
    rows = (
        f"aws,g5.xlarge,a10g,1,4,16,250,{REGION},,DE,on-demand,{on_demand_usd},aws",
        f"aws,m5.xlarge,cpu,0,4,16,,{REGION},,DE,on-demand,0.23,aws",
        "aws,g5.xlarge,a10g,1,4,16,250,us-east-1,,US,on-demand,0.9,aws",
        "modal,gpu=A10,a10g,1,,,,us,,,spot,1.1016,modal",
    )
    text = "\n".join((",".join(offers.COLUMNS["offers"]), *rows, ""))
    found, refused = offers.offers(text, sellers, read_in, {"a10g", "cpu"})
    assert not refused
    return PriceBook(found)


def _place(asked: dict[str, str]) -> tuple[str, str]:
    """The zone of a call of RunInstances, and how it buys."""
    is_spot = asked.get("InstanceMarketOptions.MarketType") == "spot"
    return asked.get("Placement.AvailabilityZone", ""), "spot" if is_spot else "on-demand"


def _passed(inner: Any, environ: dict[str, Any], body: bytes) -> _Answer:
    """What the inner application answers to this body."""
    seen: list[Any] = []

    def start(status: str, headers: list[tuple[str, str]], _error: object = None) -> Callable[[bytes], object]:
        seen[:] = [status, headers]
        return lambda _piece: None

    own = {**environ, "wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))}
    said = b"".join(inner(own, start))
    headers = [(name, value) for name, value in seen[1] if name.lower() != "content-length"]
    return _Answer(seen[0], headers, said)


def _refused(environ: dict[str, Any], start: Start, fault: str) -> Iterable[bytes]:
    if fault == Cut.UNDONE:
        _hang_up(environ)
    if fault == Cut.HTML:
        start("500 Internal Server Error", [("Content-Type", "text/html")])
        return [b"<!doctype html><title>500</title><h1>Internal Server Error</h1>"]
    said = _error(fault, STATUS.get(fault, 400))
    start(said.status, said.headers)
    return [said.body]


def _error(code: str, status: int) -> _Answer:
    text = (
        f"<Response><Errors><Error><Code>{code}</Code><Message>{code}, said the layer.</Message></Error></Errors>"
        "<RequestID>r</RequestID></Response>"
    )
    return _Answer(f"{status} No", [("Content-Type", "text/xml")], text.encode())


def _hang_up(environ: dict[str, Any]) -> None:
    """End the connection; what is written after it goes nowhere."""
    environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
