"""A host looks for an Access beyond its map."""

from collections import Counter

import pytest

from windrow_agent.app import config
from windrow_agent.core import discovery
from windrow_agent.core.discovery import (
    ADDRESSES_MAX,
    TARGETS_MAX,
    MapCopy,
    Seed,
    candidates,
    parse_place,
    parse_seed,
    targets,
)
from windrow_agent.core.dns import Service
from windrow_agent.link import membership
from windrow_proto.errors import InvalidInput
from windrow_proto.ids import HostId

HOST = HostId("host_1")


def test_a_seed_is_a_domain_and_perhaps_a_port():
    assert parse_seed("dns:Access.Example.org") == Seed("access.example.org", 7443)
    assert parse_seed("dns:example.org:9000") == Seed("example.org", 9000)
    assert [str(parse_seed(text)) for text in ("dns:a.org", "dns:a.org:9000")] == ["dns:a.org", "dns:a.org:9000"]


@pytest.mark.parametrize(
    "text",
    ["example.org", "dns:", "dns:a b", "dns:a.org:0", "dns:a.org:65536", "dns:a.org:", "dns:a.org:٣", "http://a"],
)
def test_what_is_no_seed_is_refused_with_the_reason(text: str):
    with pytest.raises(InvalidInput):
        parse_seed(text)


def test_a_copy_of_the_map_is_an_https_address():
    assert parse_place("https://a.org:8443/maps/eu.json") == MapCopy("https://a.org:8443/maps/eu.json")
    assert str(parse_place("https://a.org")) == "https://a.org"
    assert parse_place("dns:a.org") == Seed("a.org")


@pytest.mark.parametrize(
    "text",
    [
        "https://",
        "https:a.org",
        "https://a.org:0",
        "https://a.org:99999",
        "https://me:secret@a.org",
        "https://a.org/?token=x",
        "https://a.org/a b",
        "https://a.org/\n",
        "https://a.org/" + "x" * 255,
        "http://a.org",
        "ftp://a.org",
    ],
)
def test_what_is_no_place_is_refused_with_the_reason(text: str):
    with pytest.raises(InvalidInput):
        parse_place(text)


def test_seeds_come_by_option_and_are_kept_from_joining_on(tmp_path):
    found = config.parse(["run", "--access", "dns:a.org", "--access", "https://b.org/map", "--access", "dns:a.org"])
    assert found.seeds == (Seed("a.org"), MapCopy("https://b.org/map"))
    assert config.parse(["join", "https://m", "--token-file", "-", "--access", "dns:a.org"]).seeds == (Seed("a.org"),)
    with pytest.raises(InvalidInput):
        config.parse(["run", *(f"--access=dns:{n}.org" for n in "abcde")])

    assert membership.load_seeds(tmp_path) == ()
    membership.save_seeds(tmp_path, found.seeds)
    assert membership.load_seeds(tmp_path) == found.seeds
    (tmp_path / membership.SEEDS_FILE).write_bytes(b"dns:a.org\nrubbish\n")
    assert membership.load_seeds(tmp_path) == ()


def test_lower_priorities_come_first_and_no_more_than_so_many():
    services = [Service(priority, 1, f"p{priority}n{n}", 7443) for priority in (20, 10) for n in range(6)]
    taken = targets(HOST, services)
    assert [service.priority for service in taken] == [10] * 6 + [20] * (TARGETS_MAX - 6)


def test_services_without_port_or_target_are_left_out():
    assert targets(HOST, [Service(1, 1, "a", 0), Service(1, 1, "", 7443), Service(1, 1, "b", 1)]) == (
        Service(1, 1, "b", 1),
    )


def test_hosts_spread_over_services_by_their_weight():
    services = [Service(1, 30, "large", 7443), Service(1, 10, "small", 7443), Service(1, 0, "rest", 7443)]
    firsts = Counter(targets(HostId(f"host_{n}"), services)[0].target for n in range(2000))
    assert 1350 < firsts["large"] < 1600
    assert 380 < firsts["small"] < 600
    assert firsts["rest"] < 20


def test_candidates_are_bounded_and_could_be_dialled():
    one = Service(1, 1, "a", 7443)
    several = ("192.0.2.1", "0.0.0.0", "224.0.0.1", "192.0.2.1")
    assert candidates([(one, several), (one, ("2001:db8::1", "::", "ff02::1"))]) == (
        "192.0.2.1:7443",
        "[2001:db8::1]:7443",
    )
    many = [(Service(1, 1, str(n), 7443), tuple(f"10.0.{n}.{m}" for m in range(9))) for n in range(9)]
    assert len(candidates(many)) == ADDRESSES_MAX


def test_name_servers_come_from_the_systems_file():
    text = "# x\nnameserver 192.0.2.53\nsearch a.org\nnameserver  2001:db8::53 \nnameserver nonsense\nnameserver\n"
    assert discovery.name_servers(text) == ("192.0.2.53", "2001:db8::53")
    assert discovery.name_servers("nameserver 192.0.2.1\n" * 5) == ("192.0.2.1",) * 3
    assert discovery.name_servers("") == ("127.0.0.1",)
