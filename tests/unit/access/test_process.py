"""Decisions of an Access process at its start: its port, its configuration, when to renew."""

import socket
from pathlib import Path

import pytest

from windrow_access.config import RunConfig, parse
from windrow_access.core.renewal import is_due
from windrow_access.main import free_port
from windrow_proto.errors import InvalidInput


def test_a_taken_port_is_followed_by_the_next_free_one() -> None:
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        taken = holder.getsockname()[1]
        assert free_port("127.0.0.1", taken) > taken


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "--listen", "nowhere"],
        ["run", "--listen", "::1:7443"],
        ["run", "--region", "a b"],
        ["run", "--region", ""],
        ["run", "--workers", "0"],
        ["run", "--trunk", "host"],
        ["run", "--advertise", "x:99999"],
        ["run", "--service-domain", "localhost"],
        ["run", "--service-port", "65536"],
        ["run", "--speedtest-port", "65500"],
        ["run", "--service-certificate", "certificate.pem"],
    ],
)
def test_a_bad_argument_is_named(arguments: list[str]) -> None:
    with pytest.raises(InvalidInput):
        parse(arguments)


def test_what_was_said_is_what_runs(tmp_path: Path) -> None:
    config = parse(
        ["run", "--data-dir", str(tmp_path), "--listen", "0.0.0.0:7443", "--region", "eu-1", "--workers", "4"]
    )
    assert isinstance(config, RunConfig)
    assert (config.host, config.port, config.region, config.workers) == ("0.0.0.0", 7443, "eu-1", 4)


@pytest.mark.parametrize(
    ("given", "address"),
    [
        (["--listen", "127.0.0.1:7443"], "svc.localhost:9"),
        (["--listen", "0.0.0.0:7443"], ""),
        (["--listen", "0.0.0.0:7443", "--service-domain", "Svc.example.org"], "svc.example.org:9"),
        (["--service-domain", "svc.example.org", "--service-advertise", "443"], "svc.example.org:443"),
        (["--service-domain", ""], ""),
    ],
)
def test_services_are_found_under_a_domain_and_without_one_on_this_machine_only(given: list[str], address: str) -> None:
    config = parse(["run", *given])
    assert isinstance(config, RunConfig)
    assert config.service_address(9) == address


def test_the_port_of_services_is_above_that_of_agents_or_any_on_loopback() -> None:
    for given, port in ((["--listen", "0.0.0.0:1"], 7743), ([], 0), (["--service-port", "9"], 9)):
        config = parse(["run", *given])
        assert isinstance(config, RunConfig)
        assert config.first_service_port(7443) == port


def test_renewal_is_due_at_half_life_and_never_before_the_beginning() -> None:
    assert not is_due(100, 200, 149)
    assert is_due(100, 200, 150)
    assert not is_due(100, 200, 0)
