"""A Master with an operator's certificate: browsers trust that one; pinned lines, hosts and `windrow` go on."""

import http.client
import json
import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.pki import TestAuthority, issue, make_ca
from tests.waiting import PATIENCE_S, poll
from windrow.client import Client
from windrow.config import Config
from windrow.errors import ApiProblem, MasterUnreachable
from windrow.remote.tunnel_request import open_tunnel
from windrow_master.app.serving import pin_of
from windrow_proto import enrol
from windrow_proto.keys import TlsIdentity
from windrow_up.client import MasterHttp

NAME = "market.test"
FLAGS = ("--http-port", "0", "--https-port", "0", "--trunk-port", "0", "--health-port", "0", "--public", "localhost")
"""`localhost` is a name of the test's certificate, so that hosts and people come by the same name."""


@dataclass(frozen=True, slots=True)
class Market:
    """A Master's process with the certificate of a test's authority. record: its cli.json."""

    process: "subprocess.Popen[bytes]"
    folder: Path
    ca: TestAuthority
    record: dict[str, Any]

    @property
    def url(self) -> str:
        return str(self.record["https_url"])

    @property
    def http(self) -> MasterHttp:
        return MasterHttp(self.record["local_url"], self.record["token"], Path(self.record["ca_pem"]))

    def get(self, name: str, trusted: bytes) -> tuple[int, bytes]:
        """Status and certificate (PEM), as a browser asks that trusts one authority. Raises ssl.SSLError."""
        context = ssl.create_default_context(cadata=trusted.decode())
        port = self.record["ports"]["https"]
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=PATIENCE_S, context=context)
        connection.sock = context.wrap_socket(
            connection._create_connection(("127.0.0.1", port), PATIENCE_S),  # type: ignore[attr-defined]
            server_hostname=name,
        )
        try:
            shown = ssl.DER_cert_to_PEM_cert(connection.sock.getpeercert(binary_form=True) or b"")
            connection.request("GET", "/healthz", headers={"Host": f"{name}:{port}"})
            return connection.getresponse().status, shown.encode()
        finally:
            connection.close()

    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "master.log").read_text().splitlines()]


def put(folder: Path, given: TlsIdentity) -> None:
    for name, content in (("key.pem", given.key_pem), ("chain.pem", given.certificate_pem)):
        fresh = folder / f"{name}.new"
        fresh.write_bytes(content)
        fresh.chmod(0o600)
        fresh.replace(folder / name)


def environment(folder: Path) -> dict[str, str]:
    files = {"WINDROW_TLS_CERT_FILE": str(folder / "chain.pem"), "WINDROW_TLS_KEY_FILE": str(folder / "key.pem")}
    return os.environ | files | {"WINDROW_NAMES": NAME}


def command(folder: Path) -> list[str]:
    return [sys.executable, "-m", "windrow_master", "--data-dir", str(folder / "data"), *FLAGS]


@pytest.fixture
def market(tmp_path: Path) -> Iterator[Market]:
    ca = make_ca()
    put(tmp_path, issue(ca, "master", "shop", lifetime_s=30 * 86_400, names=(NAME,)))
    with (tmp_path / "master.log").open("ab") as log:
        process = subprocess.Popen(command(tmp_path), stderr=log, stdout=log, env=environment(tmp_path))
    try:

        def read() -> dict[str, Any] | None:
            assert process.poll() is None, (tmp_path / "master.log").read_text()[-2000:]
            path = tmp_path / "data" / "cli.json"
            record = json.loads(path.read_text()) if path.exists() else {}
            return record if "https_url" in record else None

        found = poll(read)
        assert found is not None
        running = Market(process, tmp_path, ca, found)
        poll(lambda: any(line["event"] == "master_ready" for line in running.log()))
        yield running
    finally:
        process.kill()
        process.wait(PATIENCE_S)


@pytest.mark.proves("an operator's certificate is shown to browsers, and pinned lines and hosts go on")
def test_browsers_trust_the_operators_certificate_and_hosts_and_lines_the_masters_own(
    market: Market, tmp_path: Path
) -> None:
    own = Path(market.record["ca_pem"]).read_bytes()
    assert [market.get(name, market.ca.certificate_pem)[0] for name in (NAME, "localhost")] == [200, 200]
    assert [market.get(name, own)[0] for name in ("127.0.0.1", "master.windrow")] == [200, 421]
    with pytest.raises(ssl.SSLCertVerificationError):
        market.get(NAME, own)

    made = market.http.call("POST", "/join-tokens", {"role": "host"})
    fetch = made["command"].partition(" | ")[0]
    done = subprocess.run(["sh", "-c", fetch], capture_output=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0 and done.stdout.startswith(b"#!/bin/sh"), done.stderr
    folder = enrol.IdentityFolder(tmp_path / "identity")
    enrol.join(folder, market.url, made["join_token"], enrol.JoinRequest("host", "rack-7"))
    identity = enrol.renew(folder, wall_ns=0)
    assert enrol.fetch_regions(market.url, identity.tls.ca_pem, identity.master_public)

    with Client(Config(market.url, market.record["token"], market.record["ca_pem"])) as windrow:
        assert windrow.get("/me")["roles"]
        with pytest.raises(ApiProblem) as refused:
            open_tunnel(windrow.config, "cluster_none", 1)
        assert refused.value.status == 404
    shown = tmp_path / "authority.pem"
    shown.write_bytes(market.ca.certificate_pem)
    with Client(Config(market.url, market.record["token"], str(shown))) as windrow:
        assert windrow.get("/me")["roles"]
    stranger = tmp_path / "stranger.pem"
    stranger.write_bytes(make_ca().certificate_pem)
    with (
        Client(Config(market.url, market.record["token"], str(stranger))) as windrow,
        pytest.raises(MasterUnreachable, match="does not trust the certificate"),
    ):
        windrow.get("/me")


@pytest.mark.long
def test_a_renewal_is_taken_up_without_a_restart_and_a_broken_one_is_said(market: Market) -> None:
    before = market.get(NAME, market.ca.certificate_pem)[1]
    (market.folder / "chain.pem").write_text("half a file")
    told = poll(lambda: [line for line in market.log() if line["event"] == "certificate_refused"])
    assert told and "is no certificate chain in PEM" in told[0]["error"]
    assert market.get(NAME, market.ca.certificate_pem) == (200, before)
    assert "master.certificate" in market.http.call("GET", "/healthz")["conditions"]

    renewed = issue(market.ca, "master", "shop", lifetime_s=60 * 86_400, names=(NAME,))
    put(market.folder, renewed)
    poll(lambda: market.get(NAME, market.ca.certificate_pem)[1] == renewed.certificate_pem)
    assert market.process.poll() is None
    line = market.http.call("POST", "/join-tokens", {"role": "host"})["command"]
    assert pin_of(renewed.certificate_pem) in line


def test_a_master_does_not_start_with_a_key_of_another_certificate(tmp_path: Path) -> None:
    ca = make_ca()
    put(tmp_path, issue(ca, "master", "shop", names=(NAME,)))
    (tmp_path / "key.pem").write_bytes(issue(ca, "master", "shop", names=(NAME,)).key_pem)
    done = subprocess.run(
        command(tmp_path), capture_output=True, text=True, timeout=PATIENCE_S, env=environment(tmp_path), check=False
    )
    assert done.returncode == 1
    (failed,) = [one for line in done.stderr.splitlines() if (one := json.loads(line))["event"] == "master_failed"]
    assert failed["error"].startswith(f"{tmp_path}/key.pem is not the key of the first certificate in")
    assert not (tmp_path / "data" / "cli.json").exists()
