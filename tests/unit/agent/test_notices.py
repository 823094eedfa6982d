"""A provider's notices, read from a metadata service as EC2's second version is."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from windrow_agent.core.notices import REBALANCE, SPOT, Notice, instance_id, rebalance_notice, spot_notice
from windrow_agent.host.metadata_service import MetadataService
from windrow_proto.units import SECOND

AT_NS = 1_795_626_000 * SECOND
SPOT_TEXT = b'{"action": "terminate", "time": "2026-11-25T17:00:00Z"}'
REBALANCE_TEXT = b'{"noticeTime": "2026-11-25T17:00:00Z"}'


class Service:
    """IMDSv2 on a port of its own. pages: by path below meta-data; tokens: those that it gave and still takes."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {"instance-id": b"i-0123456789abcdef0"}
        self.tokens: list[str] = []
        self.given = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *arguments: object) -> None:
                """Nothing."""

            def answer(self, status: int, content: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def do_PUT(self) -> None:
                assert self.path == "/latest/api/token"
                assert int(self.headers["X-aws-ec2-metadata-token-ttl-seconds"]) <= 21_600
                outer.given += 1
                outer.tokens.append(f"token-{outer.given}")
                self.answer(200, outer.tokens[-1].encode())

            def do_GET(self) -> None:
                if self.headers.get("X-aws-ec2-metadata-token") not in outer.tokens:
                    self.answer(401, b"")
                    return
                content = outer.pages.get(self.path.removeprefix("/latest/meta-data/"))
                self.answer(404 if content is None else 200, content or b"")

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


def test_a_machine_reads_its_id_and_the_most_pressing_notice(service: Service) -> None:
    read = MetadataService("127.0.0.1", service.port)
    assert read.instance_id() == "i-0123456789abcdef0"
    assert read.notice() is None
    service.pages["events/recommendations/rebalance"] = REBALANCE_TEXT
    assert read.notice() == Notice(REBALANCE)
    service.pages["spot/instance-action"] = SPOT_TEXT
    assert read.notice() == Notice(SPOT, AT_NS)
    assert service.given == 1


def test_a_token_that_is_no_longer_good_is_replaced(service: Service) -> None:
    read = MetadataService("127.0.0.1", service.port)
    assert read.instance_id()
    service.pages["spot/instance-action"] = SPOT_TEXT
    service.tokens.clear()
    assert read.notice() == Notice(SPOT, AT_NS)
    assert service.given == 2


def test_a_machine_without_such_a_service_has_no_id_and_no_notice(service: Service, monkeypatch) -> None:
    monkeypatch.setattr("windrow_agent.host.metadata_service.PAUSE_S", 0)
    service.pages = {"instance-id": b"<html>router</html>", "spot/instance-action": b"<html>", "x": b""}
    assert MetadataService("127.0.0.1", service.port).instance_id() == ""
    assert MetadataService("127.0.0.1", service.port).notice() is None
    closed = MetadataService("127.0.0.1", 1)
    assert (closed.instance_id(), closed.notice()) == ("", None)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"[]",
        b'"terminate"',
        b'{"action": "terminate"}',
        b'{"action": "terminate", "time": 5}',
        b'{"action": "", "time": "2026-11-25T17:00:00Z"}',
        b'{"action": "stop", "time": "tomorrow"}',
        b"\xff\x00",
        b"[" * 100_000,
    ],
)
def test_what_is_no_notice_is_none(text: bytes) -> None:
    assert spot_notice(text) is None
    assert rebalance_notice(text) is None
    assert instance_id(text) == ""
