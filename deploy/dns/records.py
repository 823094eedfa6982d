"""Prints DNS records by which hosts find an Access, made of the Master's map: a zone file, or PowerDNS geoip's YAML.

`records.py --cli CLI_JSON --domain D --name-server NS [--format zone|geoip]`, again whenever the map may have changed.
The domain is one that serves nothing else. Agents believe none of it: `--access dns:DOMAIN` is a hint to them.
"""

import argparse
import base64
import ipaddress
import json
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from windrow_proto.dns_names import DEFAULT_PORT, SERVICE, check_name
from windrow_proto.errors import InvalidInput
from windrow_proto.messages import AccessPoint, RegionMap
from windrow_proto.wire_link import decode_region_map

ANSWER_S: Final = 10.0
ANSWER_BYTES_MAX: Final = 1 << 20
NEAR, ELSEWHERE, DRAINING = 10, 20, 30
"""Priorities: lower ones are tried first."""
CONTINENTS: Final[Mapping[str, str]] = {
    **{code: code for code in ("af", "an", "as", "eu", "na", "oc", "sa")},
    "us": "na",
    "ca": "na",
    "ap": "as",
    "asia": "as",
    "au": "oc",
    "me": "as",
    "uk": "eu",
}
"""Of a region's name up to its first hyphen, as clouds name them; others by --continent."""
DOMAIN_CHARS_MAX: Final = 200
"""Of a name that others go before."""


@dataclass(frozen=True, slots=True)
class Place:
    """One Access as DNS tells of it. address: of `target`, or empty where the target is somebody else's name."""

    target: str
    address: str
    port: int
    region: str
    room: int
    draining: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """An operator's decisions. ttl_s: 1 to 86,400. networks: CIDR to continent, before any geography."""

    domain: str
    name_server: str
    ttl_s: int
    continents: Mapping[str, str]
    networks: Mapping[str, str]


def name(text: str) -> str:
    """A DNS name in lower case without its last dot; raises ValueError."""
    try:
        found = check_name(text)
    except InvalidInput as error:
        raise ValueError(error.detail) from error
    if len(found) > DOMAIN_CHARS_MAX:
        raise ValueError(f"{text[:260]!r} is too long for names to go before it.")
    return found


def place(point: AccessPoint, domain: str) -> Place:
    """Read one point of the map; raises ValueError for an address that no zone can hold."""
    host, _, port = point.address.rpartition(":")
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"{point.address!r} has no port.")
    try:
        address = str(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        address = ""
    target = name(f"{point.access_id.replace('_', '-')}.{domain}" if address else host)
    room = max(1, (1000 - min(1000, point.load_permille)) // 10)
    return Place(target, address, int(port), point.region, room, point.draining)


def places(regions: RegionMap, domain: str) -> tuple[tuple[Place, ...], tuple[str, ...]]:
    """Returns the places that can be published, by target, and a sentence for each point that cannot."""
    found, left_out = {}, []
    for point in regions.points:
        try:
            one = place(point, domain)
            found[one.target, one.port] = one
        except ValueError as error:
            left_out.append(f"{point.access_id} is left out: {error}")
    return tuple(found[key] for key in sorted(found)), tuple(left_out)


def continent(region: str, plan: Plan) -> str:
    """The two letters of a region's continent; empty where nobody said."""
    return plan.continents.get(region, CONTINENTS.get(region.lower().partition("-")[0], ""))


def services(found: Sequence[Place], near: str, plan: Plan) -> list[str]:
    """SRV records as seen from a continent ("" for anywhere): the near first, then the others, then who drains."""

    def priority(one: Place) -> int:
        if one.draining:
            return DRAINING
        return NEAR if not near or continent(one.region, plan) == near else ELSEWHERE

    return [f"{priority(one)} {one.room} {one.port} {one.target}." for one in found]


def addresses(found: Sequence[Place]) -> list[tuple[str, str]]:
    """(A or AAAA, address) for who asks for the domain itself: those at the port that goes without saying."""
    plain = [one for one in found if one.address and one.port == DEFAULT_PORT and not one.draining]
    return sorted({(record_type(one.address), one.address) for one in plain})


def record_type(address: str) -> str:
    """A or AAAA."""
    return "AAAA" if ":" in address else "A"


def authority(regions: RegionMap, plan: Plan) -> str:
    """The SOA record; its serial is the map's time in seconds, so that it grows with it."""
    return f"{plan.name_server}. hostmaster.{plan.domain}. {regions.version // 1000 % 2**32} 300 60 604800 {plan.ttl_s}"


def zone(regions: RegionMap, plan: Plan) -> str:
    """A zone file (RFC 1035) for any name server: the same answer for everybody."""
    found, _ = places(regions, plan.domain)
    lines = [f"$ORIGIN {plan.domain}.", f"$TTL {plan.ttl_s}"]
    lines += [f"@ IN SOA {authority(regions, plan)}", f"@ IN NS {plan.name_server}."]
    lines += [f"@ IN {kind} {address}" for kind, address in addresses(found)]
    lines += [f"{SERVICE} IN SRV {text}" for text in services(found, "", plan)]
    told = sorted({(one.target, one.address) for one in found if one.address})
    lines += [f"{target}. IN {record_type(address)} {address}" for target, address in told]
    return "\n".join(lines) + "\n"


def geoip(regions: RegionMap, plan: Plan) -> str:
    """The domain for PowerDNS's geoip backend (YAML, in the part of it that is JSON): the near Accesses first.

    A continent's records are under `CONTINENT.geo.DOMAIN`, everybody's under `all.geo.DOMAIN`.
    """
    found, _ = places(regions, plan.domain)
    served = sorted({continent(one.region, plan) for one in found if not one.draining} - {""})
    records: dict[str, list[dict[str, str]]] = {
        plan.domain: [{"soa": authority(regions, plan)}, {"ns": f"{plan.name_server}."}]
    }
    for one in found:
        if one.address:
            records.setdefault(one.target, []).append({record_type(one.address).lower(): one.address})
    for near in ("", *served):
        here = [one for one in found if not near or continent(one.region, plan) == near] or found
        part = f"{near or 'all'}.geo.{plan.domain}"
        records[f"{SERVICE}.{part}"] = [{"srv": text} for text in services(found, near, plan)]
        records[part] = [{kind.lower(): address} for kind, address in addresses(here) or addresses(found)]
    answers = {}
    for asked, prefix in ((f"{SERVICE}.{plan.domain}", f"{SERVICE}."), (plan.domain, "")):
        everybody = [f"{prefix}%cn.geo.{plan.domain}", f"{prefix}all.geo.{plan.domain}"]
        known = {net: [f"{prefix}{near}.geo.{plan.domain}"] for net, near in plan.networks.items() if near in served}
        answers[asked] = {"default": everybody, **known}
    kept = {key: value for key, value in records.items() if value}
    made = {"domain": plan.domain, "ttl": plan.ttl_s, "records": kept, "services": answers}
    return json.dumps({"domains": [made]}, indent=2) + "\n"


def fetch(cli: Path) -> RegionMap:
    """The map from the Master of a cli.json, over HTTPS with the authority of that file or, where an operator gave the
    Master a certificate from elsewhere, one of this machine; no token is sent."""
    record = json.loads(cli.read_text())
    context = ssl.create_default_context()
    context.load_verify_locations(record["ca_pem"])
    # Past any proxy that the environment names, as for every call to a Master.
    handlers = urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    asked = f"{record['https_url']}/api/v1/regions"
    with urllib.request.build_opener(*handlers).open(asked, timeout=ANSWER_S) as answer:
        told = json.loads(answer.read(ANSWER_BYTES_MAX))
    return decode_region_map(base64.b64decode(told["signed"]))


def pairs(texts: Sequence[str]) -> dict[str, str]:
    """`A=B` each; raises ValueError."""
    found = dict(text.split("=", 1) for text in texts if "=" in text)
    if len(found) != len(texts) or not set(found.values()) <= set(CONTINENTS.values()):
        codes = ", ".join(sorted(set(CONTINENTS.values())))
        raise ValueError(f"Write NAME=CONTINENT, each NAME once; a continent is one of {codes}.")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the records; 1 where there are none, with the reason, so that nobody serves an empty zone."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0], allow_abbrev=False)
    parser.add_argument("--cli", type=Path, required=True, help="cli.json of the Master's data directory")
    parser.add_argument("--domain", required=True)
    parser.add_argument("--format", choices=("zone", "geoip"), default="zone")
    parser.add_argument("--name-server", required=True, help="the name of who will answer for the domain")
    parser.add_argument("--ttl", type=int, default=60, help="seconds, 1 to 86400")
    parser.add_argument("--continent", action="append", default=[], metavar="REGION=XX", help="where a region is")
    parser.add_argument("--network", action="append", default=[], metavar="CIDR=XX", help="where a network is (geoip)")
    given: Any = parser.parse_args(arguments)
    try:
        domain = name(given.domain)
        if not 1 <= given.ttl <= 86_400:
            raise ValueError("--ttl is 1 to 86400 seconds.")
        networks = {str(ipaddress.ip_network(net)): near for net, near in pairs(given.network).items()}
        plan = Plan(domain, name(given.name_server), given.ttl, pairs(given.continent), networks)
        regions = fetch(given.cli)
    except (ValueError, KeyError, OSError, urllib.error.URLError, InvalidInput) as error:
        print(error, file=sys.stderr)
        return 1
    found, left_out = places(regions, domain)
    for sentence in left_out:
        print(sentence, file=sys.stderr)
    if not found:
        print("The map names no Access; nothing is printed.", file=sys.stderr)
        return 1
    print(zone(regions, plan) if given.format == "zone" else geoip(regions, plan), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
