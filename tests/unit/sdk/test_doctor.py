"""`windrow doctor`: hosts that need somebody fail it, for those who look after them."""

from typing import Any

import httpx2
import pytest

from windrow.cli import doctor
from windrow.cli.context import Options
from windrow.client import Client
from windrow.config import Config

Json = dict[str, Any]
REASON = "2 of 8 GPUs faulty. GPU 1, 5: This GPU fell off its bus; the others go on"
REMEDY = "Reboot the host."
HEALTH: Json = {
    "master": {"problems": [], "conditions": []},
    "accesses": [{"access_id": "access_1", "region": "eu"}],
}


def host(name: str, headline: str = "idle", link: str = "online", **more: Any) -> Json:
    return {"name": name, "headline": headline, "link_state": link, "owner_account": None} | more


def examined(monkeypatch: pytest.MonkeyPatch, roles: list[str], *hosts: Json) -> list[doctor.Check]:
    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.url.path.endswith("/me"):
            return httpx2.Response(200, json={"account": {"id": "account_1", "name": "ann"}, "roles": roles})
        if request.url.path.endswith("/health"):
            return httpx2.Response(200, json=HEALTH)
        return httpx2.Response(200, json={"items": list(hosts), "next_cursor": None})

    config, transport = Config("http://master", "wr_secret"), httpx2.MockTransport(answer)
    monkeypatch.setattr(doctor, "find", lambda url, token: config)
    monkeypatch.setattr(doctor, "Client", lambda found: Client(found, transport=transport))
    return doctor.examine(Options())


BROKEN = host("rack", "degraded", headline_reason=REASON, headline_remedy=REMEDY)


@pytest.mark.case("M-11")
def test_a_host_with_dead_gpus_fails_and_says_which_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    found = examined(monkeypatch, ["operator"], host("sound"), BROKEN)
    assert ("hosts", True, "2 of 2 online") in found
    assert ("host rack", False, f"degraded: {REASON}. {REMEDY}") in found


@pytest.mark.case("M-11")
def test_a_host_that_does_not_answer_fails_and_one_that_is_drained_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = host("gone", "offline", "lost", headline_reason="it has not reported for two minutes or more")
    found = examined(monkeypatch, ["operator"], lost, host("calm", "draining"))
    assert ("hosts", True, "1 of 2 online") in found
    bad = [check for check in found if not check[1]]
    assert bad == [("host gone", False, "offline: it has not reported for two minutes or more.")]


@pytest.mark.parametrize(("owner", "is_told"), [(None, False), ("account_1", True)])
def test_who_is_no_operator_is_told_of_their_own_hosts_only(
    monkeypatch: pytest.MonkeyPatch, owner: str | None, is_told: bool
) -> None:
    found = examined(monkeypatch, ["provider"], BROKEN | {"owner_account": owner})
    assert any(name == "host rack" for name, _, _ in found) is is_told


def test_many_troubled_hosts_are_cut_with_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    found = examined(monkeypatch, ["operator"], *(BROKEN | {"name": f"rack{n}"} for n in range(11)))
    assert found[-1] == ("hosts", False, "3 more need somebody: `windrow host ls`.")


def test_a_market_that_is_well_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(ok for _, ok, _ in examined(monkeypatch, ["operator"], host("sound")))
