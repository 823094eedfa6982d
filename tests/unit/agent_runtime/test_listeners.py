"""A port leads to a workload only where every socket that could answer there is the workload's."""

from ipaddress import ip_address

import pytest

from windrow_agent.core.listeners import Listener, dialled, parse
from windrow_agent.runtimes.docker_facts import networks, published

OWN, FOREIGN = 1, 2


def at(address: str, inode: int, port: int = 80) -> Listener:
    return Listener(ip_address(address), port, inode)


@pytest.mark.parametrize(
    ("listeners", "found"),
    [
        ([at("127.0.0.1", OWN)], ("127.0.0.1",)),
        ([at("0.0.0.0", OWN)], ("127.0.0.1",)),
        ([at("::", OWN)], ("127.0.0.1", "::1")),
        ([at("::1", OWN)], ("::1",)),
        ([at("10.0.0.5", OWN)], ("10.0.0.5",)),
        ([at("::ffff:127.0.0.1", OWN)], ("127.0.0.1",)),
        ([at("127.0.0.1", FOREIGN)], ()),
        ([at("127.0.0.1", OWN, port=81)], ()),
        ([at("0.0.0.0", OWN), at("127.0.0.1", FOREIGN)], ()),
        ([at("0.0.0.0", FOREIGN), at("127.0.0.1", OWN)], ("127.0.0.1",)),
        ([at("127.0.0.1", OWN), at("127.0.0.1", FOREIGN)], ()),
        ([at("::", OWN), at("0.0.0.0", FOREIGN)], ()),
        ([at("::", OWN), at("127.0.0.1", FOREIGN)], ("::1",)),
        ([at("::", OWN), at("::ffff:127.0.0.1", FOREIGN)], ("::1",)),
        ([], ()),
    ],
)
def test_only_an_address_where_nobody_else_could_answer_is_dialled(
    listeners: list[Listener], found: tuple[str, ...]
) -> None:
    assert dialled(listeners, 80, {OWN}) == found


def test_the_kernels_tables_are_read_and_connections_passed_over() -> None:
    head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
    rest = "00000000:00000000 00:00000000 00000000  1000        0"
    other = f"   1: 0100007F:1F90 0100007F:9999 01 {rest} 7 1"
    four = f"{head}\n   0: 0100007F:1F90 00000000:0000 0A {rest} 4242 1\n{other}\n"
    six = f"{head}\n   0: 00000000000000000000000001000000:0050 {'0' * 32}:0000 0A {rest} 5 1\nrubbish\n"

    assert list(parse(four)) == [Listener(ip_address("127.0.0.1"), 8080, 4242)]
    assert list(parse(six)) == [Listener(ip_address("::1"), 80, 5)]


def test_a_containers_addresses_and_published_ports_are_the_daemons_words() -> None:
    container = {
        "NetworkSettings": {
            "Networks": {"bridge": {"IPAddress": "172.17.0.2", "Gateway": "172.17.0.1"}, "none": {"IPAddress": ""}},
            "Ports": {"80/tcp": [{"HostIp": "127.0.0.1", "HostPort": "32768"}], "22/tcp": None},
        }
    }
    assert networks(container) == (("172.17.0.2", "172.17.0.1"),)
    assert published(container, 80) == (("127.0.0.1", 32768),)
    assert published(container, 22) == published(container, 443) == ()
    assert networks({}) == ()
