"""Under what name a host joins."""

from pathlib import Path

import pytest

from windrow_agent.link import membership
from windrow_proto import enrol
from windrow_proto.errors import InvalidInput


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
