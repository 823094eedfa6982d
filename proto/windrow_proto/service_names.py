"""Names of services and of forwarded ports, so that no page reads another's cookies. Pure.

A service has one origin for each port of each cluster:

p8080-0192f7c4...32 hexadecimal digits.svc.example.org:7743
"""

import re
from typing import Final

from windrow_proto.dns_names import NAME_CHARS_MAX, check_name
from windrow_proto.errors import InvalidInput
from windrow_proto.ids import ClusterId

LOCAL_DOMAIN: Final = "svc.localhost"
"""Browsers, curl and systemd's resolver take every name under localhost for this machine (RFC 6761). Not `localhost`
itself: OpenSSL accepts no certificate for `*.localhost`, a star right above the last label."""
CLUSTER_PREFIX: Final = "cluster_"
DOMAIN_CHARS_MAX: Final = NAME_CHARS_MAX - 64
"""Leaves space for the first label and its dot."""
FORWARD_CHARS_MAX: Final = 48
FORWARD_ID_CHARS: Final = 8
"""Together below the 63 characters of a label."""
_NOT_IN_LABEL: Final = re.compile(r"[^a-z0-9]+")
_LABEL: Final = re.compile(r"p([1-9][0-9]{0,4})-([0-9a-f]{32})")


def forward_host(name: str, cluster_id: ClusterId) -> str:
    """The host name of a cluster's forwarded ports on the renter's own machine: `lab.localhost` for the cluster `lab`.

    Browsers keep the cookies of a host name for all of its ports, so a forwarded page shares its name
    neither with the console nor with a cluster of another name. A name that is no label of DNS gets a part of the id.
    """
    label = _NOT_IN_LABEL.sub("-", name.lower()).strip("-")[:FORWARD_CHARS_MAX].strip("-")
    if not label or label != name or label == LOCAL_DOMAIN.partition(".")[0]:
        label = f"{label or 'cluster'}-{cluster_id[-FORWARD_ID_CHARS:]}"
    return f"{label}.localhost"


def service_name(cluster_id: ClusterId, port: int, domain: str) -> str:
    """The host name of this port. The first label has at most 39 of a label's 63 characters."""
    return f"p{port}-{cluster_id.removeprefix(CLUSTER_PREFIX)}.{domain}"


def service_url(cluster_id: ClusterId, port: int, place: str) -> str:
    """Its address for browsers. place: DOMAIN:PORT of an Access."""
    domain, _, at = place.rpartition(":")
    return f"https://{service_name(cluster_id, port, domain)}{'' if at == '443' else f':{at}'}/"


def read_name(name: str, domain: str) -> tuple[ClusterId, int] | None:
    """The cluster and port that a host name under this domain means; None: it means none of them."""
    label, dot, rest = name.lower().removesuffix(".").partition(".")
    found = _LABEL.fullmatch(label)
    if not dot or rest != domain or found is None or int(found[1]) > 65_535:
        return None
    return ClusterId(CLUSTER_PREFIX + found[2]), int(found[1])


def is_under(name: str, domain: str) -> bool:
    """True if it is one label under this domain, as a certificate for `*.domain` covers it."""
    label, dot, rest = name.lower().removesuffix(".").partition(".")
    return bool(label and dot) and rest == domain


def check_domain(text: str) -> str:
    """A domain for services in lower case; raises InvalidInput for what is none or has one label only."""
    domain = check_name(text)
    if "." not in domain or len(domain) > DOMAIN_CHARS_MAX:
        raise InvalidInput(f"{text[:80]!r}: a domain for services has two labels or more (svc.example.org).")
    return domain


def check_place(text: str) -> str:
    """DOMAIN:PORT, or nothing if it is not that."""
    domain, _, port = text.rpartition(":")
    try:
        return f"{check_domain(domain)}:{port}" if port.isascii() and 0 < int(port) <= 65_535 else ""
    except (InvalidInput, ValueError):
        return ""
