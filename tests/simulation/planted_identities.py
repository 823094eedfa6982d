"""Planted bugs of who is who: renewals, certificates at the listener, copies of a host. How they are used:
planted.py."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from windrow_master.identity import decide
from windrow_master.link.certificates import Certificates
from windrow_master.link.copies import Copies
from windrow_master.link.route import Opening
from windrow_proto.errors import Banned


@contextmanager
def generation_unchecked() -> Iterator[None]:
    """A caller that holds the key is given the next certificate, whatever generation it asks with."""
    judge = decide.judge_renewal

    def trusting(member: Any, generation: int, csr_sha256: bytes, *rest: Any) -> Any:
        newest = member.generation if member is not None and csr_sha256 != member.csr_sha256 else generation
        return judge(member, newest, csr_sha256, *rest)

    with mock.patch.object(decide, "judge_renewal", trusting):
        yield


@contextmanager
def older_certificate_accepted() -> Iterator[None]:
    """At the listener it is asked whose a certificate is, and not whether there is a newer one."""

    async def lax(self: Certificates, opening: Opening) -> Any:
        facts = await self._identities.host_facts(opening.host_id)
        if facts is None or facts.is_banned:
            raise Banned(subject=opening.host_id)
        return facts

    with mock.patch.object(Certificates, "check", lax):
        yield


@contextmanager
def copies_take_turns() -> Iterator[None]:
    """The latest copy is the host, and nobody looks back."""
    with mock.patch.object(Copies, "is_copy", lambda self, host_id, boot: False):
        yield
