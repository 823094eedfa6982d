"""Names of services: what means a port of a cluster, and what does not."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow_proto.errors import InvalidInput
from windrow_proto.ids import ClusterId, mint
from windrow_proto.service_names import (
    LOCAL_DOMAIN,
    check_domain,
    check_place,
    forward_host,
    is_under,
    read_name,
    service_name,
    service_url,
)

CLUSTER = ClusterId(mint("cluster", 1_790_000_000_000_000_000, bytes(range(10))))
DIGITS = CLUSTER.removeprefix("cluster_")


@pytest.mark.parametrize("port", [1, 80, 65_535])
def test_a_name_is_read_as_it_was_made_and_its_label_fits(port: int) -> None:
    name = service_name(CLUSTER, port, LOCAL_DOMAIN)
    assert read_name(name, LOCAL_DOMAIN) == (CLUSTER, port)
    assert read_name(name.upper() + ".", LOCAL_DOMAIN) == (CLUSTER, port)
    assert len(name.partition(".")[0]) <= 63
    assert is_under(name, LOCAL_DOMAIN)


@pytest.mark.parametrize(
    "name",
    [
        "",
        LOCAL_DOMAIN,
        f"p80-{DIGITS}",
        f"p80-{DIGITS}.localhost",
        f"p80-{DIGITS}.x.{LOCAL_DOMAIN}",
        f"p0-{DIGITS}.{LOCAL_DOMAIN}",
        f"p080-{DIGITS}.{LOCAL_DOMAIN}",
        f"p65536-{DIGITS}.{LOCAL_DOMAIN}",
        f"p80-{DIGITS}0.{LOCAL_DOMAIN}",
        f"p80-{DIGITS[:-1]}.{LOCAL_DOMAIN}",
        f"p80-{DIGITS[:-1]}g.{LOCAL_DOMAIN}",
        f"80-{DIGITS}.{LOCAL_DOMAIN}",
        f"p80-{DIGITS}\n.{LOCAL_DOMAIN}",
        f"p\u0668\u0660-{DIGITS}.{LOCAL_DOMAIN}",
    ],
)
def test_every_other_name_means_nothing(name: str) -> None:
    assert read_name(name, LOCAL_DOMAIN) is None


def test_only_one_label_below_the_domain_is_under_it() -> None:
    assert is_under("anything.svc.localhost", LOCAL_DOMAIN)
    for name in ("svc.localhost", "a.b.svc.localhost", ".svc.localhost", "asvc.localhost", "localhost"):
        assert not is_under(name, LOCAL_DOMAIN)


def test_an_address_says_its_port_unless_it_is_what_browsers_take() -> None:
    assert service_url(CLUSTER, 80, "svc.example.org:7743") == f"https://p80-{DIGITS}.svc.example.org:7743/"
    assert service_url(CLUSTER, 80, "svc.example.org:443") == f"https://p80-{DIGITS}.svc.example.org/"


def test_a_domain_for_services_has_two_labels_and_room_for_a_third() -> None:
    assert check_domain("Svc.Example.org.") == "svc.example.org"
    for bad in ("localhost", "", "a b.c", "*.example.org", "x." * 100 + "org", "svc.example.org/"):
        with pytest.raises(InvalidInput):
            check_domain(bad)


@pytest.mark.parametrize(
    "text", ["", "svc.localhost", "svc.localhost:", "svc.localhost:0", "svc.localhost:65536", "localhost:80", "a/b.c:1"]
)
def test_a_place_that_is_none_is_nothing(text: str) -> None:
    assert check_place(text) == ""
    assert check_place("svc.localhost:7743") == "svc.localhost:7743"


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("lab", "lab.localhost"),
        ("box-7", "box-7.localhost"),
        ("My Lab", "my-lab-00000001.localhost"),
        ("my_lab", "my-lab-00000001.localhost"),
        ("a.b", "a-b-00000001.localhost"),
        ("svc", "svc-00000001.localhost"),
        ("数据", "cluster-00000001.localhost"),
        ("-", "cluster-00000001.localhost"),
        ("x" * 300, f"{'x' * 48}-00000001.localhost"),
    ],
)
def test_a_forwarded_port_has_a_host_name_that_is_the_clusters(name: str, host: str) -> None:
    assert forward_host(name, ClusterId("cluster_0192f7c4" + "0" * 23 + "1")) == host


@given(st.text())
def test_a_forwarded_ports_host_name_is_always_one_label_under_localhost_and_never_the_services(name: str) -> None:
    label, _, rest = forward_host(name, ClusterId("cluster_0192f7c4" + "0" * 23 + "1")).partition(".")

    assert rest == "localhost" and re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", label)
    assert f"{label}.localhost" != LOCAL_DOMAIN
