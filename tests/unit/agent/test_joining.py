"""Under what name a host joins, and what it learns by that."""

import base64
from pathlib import Path

import pytest

from windrow_agent.link import membership
from windrow_master.identity.authority import Authority
from windrow_master.identity.model import MemberRole
from windrow_proto import enrol
from windrow_proto.clock import SystemClock
from windrow_proto.errors import InvalidInput

wall_ns = SystemClock().wall_ns


def test_a_host_is_not_called_like_an_id_except_by_its_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[enrol.JoinRequest] = []
    monkeypatch.setattr(enrol, "host_name", lambda: "8377bb5b")
    monkeypatch.setattr(enrol, "join", lambda folder, url, token, request, wait_s: asked.append(request))

    with pytest.raises(InvalidInput, match="not like an id"):
        membership.join(tmp_path, "http://master", "token", "8377bb5b")
    assert not asked
    membership.join(tmp_path, "http://master", "token")
    assert [one.host_name for one in asked] == ["8377bb5b"]


def test_a_bought_machine_knows_so_from_the_masters_answer_on(tmp_path: Path) -> None:
    folder, authority = enrol.IdentityFolder(tmp_path), Authority.make(tmp_path / "ca", wall_ns())
    issued = authority.issue_member(MemberRole.HOST, "host_1", 1, folder.tls_key().csr_pem("box"), (), wall_ns())
    answer = {
        "id": "host_1",
        "generation": 1,
        "not_after": "",
        "master_public": base64.b64encode(authority.signing.public).decode(),
        "certificate_pem": issued.certificate_pem,
    }
    for more, is_bought in (({}, False), ({"is_bought": True}, True)):  # an older Master says nothing of it
        folder.store("https://master", {**answer, **more}, authority.root_pem, folder.tls_key())
        assert folder.load().is_bought is is_bought
