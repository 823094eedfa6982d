"""The nftables rules that keep workloads from this host and its network: for the containers' bridge, and for the
network namespace of a process workload. Pure.

container ─▶ this host                     dropped, but answers to what the host began (tunnels, published ports)
          ─▶ another container             dropped
          ─▶ private and special addresses dropped (RFC 6890), a cloud's metadata address (169.254.169.254) among them
          ─▶ mail servers                  dropped (ports 25, 465, 587)
          ─▶ this host's own resolvers     port 53 only
          ─▶ anything else                 goes

A process workload may go where a container may; its names are asked of GATEWAY alone, by IPv4 alone.
"""

from collections.abc import Iterable
from ipaddress import ip_address
from typing import Final

NETWORK: Final = "windrow"
"""The container daemon's network for workloads, one on a machine."""
BRIDGE: Final = "windrow0"
TABLE: Final = "windrow_egress"
PRIORITY: Final = -10
"""Before the daemon's own rules (0): what is dropped here nobody lets pass."""
CLOSED_4: Final = (
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24"),
    *("192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
    "224.0.0.0/3",
)
"""IANA's special-purpose addresses (RFC 6890), multicast and what is reserved."""
CLOSED_6: Final = ("::/3", "4000::/2", "8000::/1", "2001::/23", "2001:db8::/32", "2002::/16")
"""All but global unicast (2000::/3), and of that the special-purpose parts; 64:ff9b::/96, ::ffff:0:0/96, fc00::/7,
fe80::/10 and ff00::/8 lie in the first three."""
MAIL_PORTS: Final = (25, 465, 587)
GATEWAY: Final = "198.18.255.1"
"""Of a process workload's network, where its names are asked; its own address is the next one. Of the addresses for
benchmarks (RFC 2544): no private network of a cluster (198.19) and hardly anybody's own has them."""
INSIDE: Final = "198.18.255.2"
INSIDE_BITS: Final = 30
OVERLAY: Final = "windrown"
"""How the devices of private networks begin; what passes there is judged by the agents at both ends."""
RESOLVERS_MAX: Final = 8


def resolvers(text: str) -> tuple[str, ...]:
    """The name servers of a resolv.conf(5) that a container may ask itself: none on the host's loopback, which the
    daemon asks for it."""
    found = [line.split()[1].partition("%")[0] for line in text.splitlines() if line.startswith("nameserver ")]
    return tuple(one for one in dict.fromkeys(found) if _is_elsewhere(one))[:RESOLVERS_MAX]


def rules(servers: Iterable[str]) -> str:
    """The whole table for `nft -f`: replaced in one transaction, so that there is no moment without it. servers: of
    names, as `resolvers` gives them."""
    names = [ip_address(one) for one in servers]
    asks = [
        f"{family} daddr {{ {', '.join(map(str, known))} }} meta l4proto {{ tcp, udp }} th dport 53 accept"
        for family, known in (
            ("ip", [one for one in names if one.version == 4]),
            ("ip6", [one for one in names if one.version == 6]),
        )
        if known
    ]
    forward = (
        f'iifname != "{BRIDGE}" accept',
        f'oifname "{BRIDGE}" drop',
        *asks,
        "ct state established,related accept",
        f"ip daddr {{ {', '.join(CLOSED_4)} }} drop",
        f"ip6 daddr {{ {', '.join(CLOSED_6)} }} drop",
        f"tcp dport {{ {', '.join(map(str, MAIL_PORTS))} }} drop",
    )
    to_host = (f'iifname != "{BRIDGE}" accept', "ct state established,related accept", "drop")
    chains = (
        _chain("leaving", "forward", forward),
        _chain("to_host", "input", to_host),
    )
    return f"table inet {TABLE}\ndelete table inet {TABLE}\ntable inet {TABLE} {{\n{''.join(chains)}}}\n"


def name_server(text: str) -> str:
    """The first IPv4 name server of a resolv.conf(5); empty: there is none. One on the host's loopback does: the
    host asks it."""
    found = [line.split()[1] for line in text.splitlines() if line.startswith("nameserver ")]
    return next((one for one in found if _is_of_version_4(one)), "")


def rules_within(addresses: Iterable[str]) -> str:
    """The whole table for the network of one process workload. addresses: of this host, IPv4."""
    own = ", ".join(dict.fromkeys(one for one in addresses if _is_elsewhere(one)))
    leaving = (
        'oifname "lo" accept',
        f'oifname "{OVERLAY}*" accept',
        "meta nfproto ipv6 drop",
        f"ip daddr {GATEWAY} meta l4proto {{ tcp, udp }} th dport 53 accept",
        f"ip daddr {{ {', '.join(CLOSED_4)} }} drop",
        *([f"ip daddr {{ {own} }} drop"] if own else []),
        f"tcp dport {{ {', '.join(map(str, MAIL_PORTS))} }} drop",
    )
    return f"table inet {TABLE} {{\n{_chain('leaving', 'output', leaving)}}}\n"


def _chain(name: str, hook: str, lines: Iterable[str]) -> str:
    head = f"type filter hook {hook} priority {PRIORITY}; policy accept;"
    body = "".join(f"    {line}\n" for line in (head, *lines))
    return f"  chain {name} {{\n{body}  }}\n"


def _is_of_version_4(text: str) -> bool:
    try:
        return ip_address(text).version == 4
    except ValueError:
        return False


def _is_elsewhere(text: str) -> bool:
    try:
        return not ip_address(text).is_loopback
    except ValueError:
        return False
