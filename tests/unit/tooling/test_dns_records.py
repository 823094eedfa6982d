"""The records by which a host finds an Access: read again by a library that reads any zone, and fetched over TLS."""

import base64
import http.server
import json
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import dns.zone
import pytest

from deploy.dns import records
from tests.support.pki import issue, make_ca
from windrow_proto.messages import AccessPoint, RegionMap
from windrow_proto.wire_link import encode_region_map

DOMAIN = "access.example.org"
PLAN = records.Plan(DOMAIN, "ns1.example.org", 60, {"lab": "oc"}, {"192.0.2.0/24": "eu", "198.51.100.0/24": "af"})
MAP = RegionMap(
    1_795_000_000_123,
    (
        AccessPoint("acc_1", "eu-1", "192.0.2.11:7443", 200),
        AccessPoint("acc_2", "us-east", "[2001:db8::2]:7443", 1000),
        AccessPoint("acc_3", "us-west", "Relay.example.net:7444", 0),
        AccessPoint("acc_4", "eu-1", "192.0.2.14:7443", 0, draining=True),
        AccessPoint("acc_5", "lab", "192.0.2.15:7500", 0),
    ),
)


def _read(text: str) -> dict[tuple[str, str], set[str]]:
    parsed = dns.zone.from_text(text, origin=f"{DOMAIN}.", relativize=False, check_origin=True)
    return {
        (name.to_text(), dns.rdatatype.to_text(rdataset.rdtype)): {rdata.to_text() for rdata in rdataset}
        for name, node in parsed.nodes.items()
        for rdataset in node.rdatasets
    }


def test_a_zone_names_every_access_and_its_room():
    read = _read(records.zone(MAP, PLAN))
    assert read[f"_windrow-access._tcp.{DOMAIN}.", "SRV"] == {
        f"10 80 7443 acc-1.{DOMAIN}.",
        f"10 1 7443 acc-2.{DOMAIN}.",
        "10 100 7444 relay.example.net.",
        f"30 100 7443 acc-4.{DOMAIN}.",
        f"10 100 7500 acc-5.{DOMAIN}.",
    }
    assert read[f"acc-1.{DOMAIN}.", "A"] == {"192.0.2.11"}
    assert read[f"acc-2.{DOMAIN}.", "AAAA"] == {"2001:db8::2"}
    assert (read[f"{DOMAIN}.", "A"], read[f"{DOMAIN}.", "AAAA"]) == ({"192.0.2.11"}, {"2001:db8::2"})
    assert read[f"{DOMAIN}.", "SOA"] == {f"ns1.example.org. hostmaster.{DOMAIN}. 1795000000 300 60 604800 60"}


def test_those_of_a_continent_come_first_there_and_the_others_are_still_there():
    (made,) = json.loads(records.geoip(MAP, PLAN))["domains"]

    def priorities(near: str) -> dict[str, int]:
        texts = [record["srv"].split() for record in made["records"][f"_windrow-access._tcp.{near}.geo.{DOMAIN}"]]
        return {target.split(".")[0]: int(priority) for priority, _, _, target in texts}

    assert priorities("all") == {"acc-1": 10, "acc-2": 10, "relay": 10, "acc-4": 30, "acc-5": 10}
    assert priorities("eu") == {"acc-1": 10, "acc-2": 20, "relay": 20, "acc-4": 30, "acc-5": 20}
    assert priorities("na") == {"acc-1": 20, "acc-2": 10, "relay": 10, "acc-4": 30, "acc-5": 20}
    assert priorities("oc") == {"acc-1": 20, "acc-2": 20, "relay": 20, "acc-4": 30, "acc-5": 10}
    assert made["records"][f"eu.geo.{DOMAIN}"] == [{"a": "192.0.2.11"}]
    assert made["records"][f"oc.geo.{DOMAIN}"] == [{"a": "192.0.2.11"}, {"aaaa": "2001:db8::2"}]


def test_networks_lead_only_where_there_is_an_access():
    (made,) = json.loads(records.geoip(MAP, PLAN))["domains"]
    answers = made["services"][f"_windrow-access._tcp.{DOMAIN}"]
    assert answers["192.0.2.0/24"] == [f"_windrow-access._tcp.eu.geo.{DOMAIN}"]
    assert "198.51.100.0/24" not in answers  # no Access in Africa
    known = set(made["records"])
    assert answers["default"][-1] in known and made["services"][DOMAIN]["default"][-1] in known


@pytest.mark.parametrize(
    "address",
    ["a.org:7443\n@ IN A 203.0.113.66", "a b.org:7443", "a.org", "a.org:0", "a.org:70000", ":7443", 'a".org:7443'],
)
def test_what_no_zone_can_hold_is_left_out_and_named(address: str):
    both = RegionMap(1000, (*MAP.points[:1], AccessPoint("acc_9", "eu", address)))
    found, left_out = records.places(both, DOMAIN)
    assert [one.target for one in found] == [f"acc-1.{DOMAIN}"]
    assert len(left_out) == 1 and left_out[0].startswith("acc_9 is left out")
    assert "203.0.113.66" not in records.zone(both, PLAN) + records.geoip(both, PLAN)


# --- fetching ---------------------------------------------------------------------------------------------------------


class Master:
    """A Master as far as its map: over TLS, on loopback."""

    def __init__(self, folder: Path, is_ours: bool = True) -> None:
        ca = make_ca()
        identity = issue(ca if is_ours else make_ca(), "master", "master")
        (folder / "ca.pem").write_bytes(ca.certificate_pem)
        (folder / "own.pem").write_bytes(identity.certificate_pem + identity.key_pem)
        self.regions = MAP
        master = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                assert "Authorization" not in self.headers
                body = json.dumps({"signed": base64.b64encode(encode_region_map(master.regions)).decode()}).encode()
                self.send_response(200 if self.path == "/api/v1/regions" else 404)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "own.pem")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.cli = folder / "cli.json"
        url = f"https://127.0.0.1:{self.server.server_address[1]}"
        self.cli.write_text(json.dumps({"https_url": url, "ca_pem": str(folder / "ca.pem")}))
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self) -> "Master":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def master(tmp_path: Path) -> Iterator[Master]:
    with Master(tmp_path) as running:
        yield running


def _run(cli: Path, *more: str) -> int:
    return records.main(["--cli", str(cli), "--domain", DOMAIN, "--name-server", "ns1.example.org", *more])


def test_the_command_prints_what_the_master_says(master: Master, capsys: pytest.CaptureFixture[str]):
    assert _run(master.cli, "--continent", "lab=oc") == 0
    assert capsys.readouterr().out == records.zone(MAP, PLAN)
    networks = ("--network", "192.0.2.0/24=eu", "--network", "198.51.100.0/24=af")
    assert _run(master.cli, "--continent", "lab=oc", "--format", "geoip", *networks) == 0
    assert capsys.readouterr().out == records.geoip(MAP, PLAN)


def test_without_an_access_nothing_is_printed(master: Master, capsys: pytest.CaptureFixture[str]):
    master.regions = RegionMap(5, (AccessPoint("acc_1", "eu", "no port"),))
    assert _run(master.cli) == 1
    said = capsys.readouterr()
    assert said.out == "" and "acc_1 is left out" in said.err and "names no Access" in said.err


def test_another_master_is_not_believed(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with Master(tmp_path, is_ours=False) as stranger:
        assert _run(stranger.cli) == 1
    said = capsys.readouterr()
    assert said.out == "" and "CERTIFICATE_VERIFY_FAILED" in said.err


@pytest.mark.parametrize(
    "more",
    [["--ttl", "0"], ["--continent", "eu-1"], ["--continent", "eu-1=xx"], ["--network", "nowhere=eu"]],
)
def test_a_wrong_option_is_a_sentence(master: Master, more: list[str], capsys: pytest.CaptureFixture[str]):
    assert _run(master.cli, *more) == 1
    said = capsys.readouterr()
    assert said.out == "" and said.err.strip()
