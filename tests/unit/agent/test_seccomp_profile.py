"""The seccomp profile of containers, as it is judged by a kernel that reads it."""

import json
from typing import Any

import pytest

from windrow_agent.core import seccomp_profile
from windrow_agent.core.seccomp_filter import FAMILIES, NAMESPACES, REFUSED

RULES: list[dict[str, Any]] = json.loads(seccomp_profile.profile())["syscalls"]
HOW = {
    "SCMP_CMP_EQ": lambda said, value: said == value,
    "SCMP_CMP_LT": lambda said, value: said < value,
    "SCMP_CMP_GT": lambda said, value: said > value,
    "SCMP_CMP_MASKED_EQ": lambda said, mask: said & mask == 0,
}


def is_allowed(name: str, first: int = 0) -> bool:
    def fits(rule: dict[str, Any]) -> bool:
        return all(HOW[one["op"]](first, one["value"]) for one in rule.get("args", ()))

    found = {rule["action"] for rule in RULES if name in rule["names"] and fits(rule)}
    assert len(found) <= 1, f"{name} is allowed and refused"
    return found == {"SCMP_ACT_ALLOW"}


@pytest.mark.parametrize("name", [*REFUSED, "clone3", "socketcall", "umount", "a_call_of_the_year_2040"])
def test_what_is_refused_to_processes_is_refused_to_containers(name: str) -> None:
    assert not is_allowed(name)


@pytest.mark.parametrize(
    "name", ["read", "execve", "futex", "ptrace", "rseq", "chown", "setgroups", "memfd_create", "futex_waitv"]
)
def test_what_programs_live_on_is_allowed(name: str) -> None:
    assert is_allowed(name)


def test_new_threads_are_allowed_and_new_namespaces_are_not() -> None:
    assert is_allowed("clone", 0x3D0F00)
    assert not any(is_allowed("clone", 1 << bit | 0x11) for bit in range(32) if NAMESPACES >> bit & 1)


def test_sockets_are_of_every_family_but_those_that_lead_out() -> None:
    assert [family for family in range(64) if not is_allowed("socket", family)] == list(FAMILIES)


def test_programs_may_ask_for_the_layout_of_memory_that_they_know() -> None:
    assert is_allowed("personality", 0xFFFFFFFF) and not is_allowed("personality", 0x0040000)
