"""Rules that keep containers away from the host's network: their text, who may set them, and the words where they are
missing."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from windrow_agent.core import egress
from windrow_agent.runtimes import egress_firewall

RESOLV = """# made by hand
nameserver 192.168.1.1
nameserver fe80::1%eth0
nameserver 127.0.0.53
nameserver ::1
nameserver what
nameserver 192.168.1.1
search example
"""


def test_resolvers_are_those_that_are_not_on_the_hosts_loopback() -> None:
    assert egress.resolvers(RESOLV) == ("192.168.1.1", "fe80::1")


def test_no_more_than_a_few_resolvers_are_let_through() -> None:
    assert len(egress.resolvers("".join(f"nameserver 10.0.0.{n}\n" for n in range(1, 100)))) == egress.RESOLVERS_MAX


@pytest.mark.parametrize("servers", [(), ("192.168.1.1",), ("192.168.1.1", "2001:4860:4860::8888")])
def test_the_rules_are_what_nft_understands(servers: tuple[str, ...]) -> None:
    if shutil.which("nft") is None or os.geteuid() != 0:
        pytest.skip("it needs root and nft")
    done = subprocess.run(
        ["nft", "--check", "-f", "-"], input=egress.rules(servers), capture_output=True, text=True, timeout=20
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_names_are_asked_for_at_resolvers_only_and_before_private_addresses_are_closed() -> None:
    lines = egress.rules(("192.168.1.1",)).splitlines()
    asked = next(n for n, line in enumerate(lines) if "192.168.1.1" in line)
    closed = next(n for n, line in enumerate(lines) if "192.168.0.0/16" in line)
    assert "th dport 53 accept" in lines[asked]
    assert asked < closed


def test_nothing_else_of_the_machine_is_touched() -> None:
    chains = egress.rules(()).split("chain ")[1:]
    assert len(chains) == 2
    for chain in chains:
        assert chain.splitlines()[2].strip() == 'iifname != "windrow0" accept'


def test_who_is_not_root_believes_only_a_note_of_roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        pytest.skip("it needs root, to give a file to another user")
    monkeypatch.setattr(shutil, "which", lambda name, path="": "/usr/sbin/nft")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    note = tmp_path / "note"

    without = egress_firewall.install(is_anew=False, note=note)
    note.write_text("standing\n")
    with_roots = egress_firewall.install(is_anew=False, note=note)
    os.chown(note, 1000, 1000)

    assert "windrow-agent fence" in without
    assert with_roots == ""
    assert egress_firewall.install(is_anew=False, note=note) == without


def test_a_machine_without_nft_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, path="": None)
    assert egress_firewall.install(is_anew=True).startswith("nft is missing")
