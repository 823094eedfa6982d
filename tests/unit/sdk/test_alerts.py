"""`windrow alert`: until when, by whom and why an alert is silenced, and names in the place of ids."""

from typing import Any

import httpx2
import pytest
from typer.main import get_command

from windrow.cli import alerts
from windrow.cli.main import app
from windrow.client import Client
from windrow.config import Config

HOST = "host_01a227ca000070008000000000000007"
ALERT: dict[str, Any] = {
    "id": "alert_01a227ca00007000b078ac8b00000001",
    "title": "GPU hot: gpu-7",
    "text": "It is hot.",
}
ALERT |= {"severity": "ticket", "state": "silenced", "silenced_until": "2030-01-01T14:00:00.000Z", "remedy": None}
NOTE = {"at": "2030-01-01T10:00:00.000Z", "actor": "user/user_1", "kind": "silenced", "text": "new fans"}
SILENCE = {"id": "silence_1", "rule": None, "cause": HOST, "starts_at": NOTE["at"], "ends_at": ALERT["silenced_until"]}
SILENCE |= {"reason": "", "created_by": "user/user_1"}
ME = {"user": {"id": "user_1", "name": "Ada"}, "service": None, "account": {"id": "account_1", "name": "lab"}}


@pytest.mark.parametrize(
    ("notes", "words", "told"),
    [
        ([NOTE], ["show", ALERT["id"]], "Silenced by Ada: new fans.\nEnd it: windrow alert unsilence b078ac8b"),
        ([NOTE, NOTE | {"kind": "unsilenced"}], ["show", ALERT["id"]], "Silenced by a silence of its rule"),
        ([], ["silences", "ls"], "1 alert silenced now"),
    ],
)
def test_a_silence_says_what_it_is_and_what_ends_it(
    notes: list[dict[str, Any]],
    words: list[str],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        path = request.url.path.removeprefix("/api/v1")
        known: dict[str, Any] = {"/me": ME, f"/hosts/{HOST}": {"name": "gpu-7"}}
        known |= {f"/alerts/{ALERT['id']}": ALERT | {"affected": [], "notes": notes}}
        listed = {"/alert-silences": SILENCE, "/alerts": ALERT}
        return httpx2.Response(200, json=known.get(path) or {"items": [listed[path]], "next_cursor": None})

    api = Client(Config("http://master", "wt_secret"), httpx2.MockTransport(answer))
    monkeypatch.setattr(alerts, "client", lambda context: context.with_resource(api))
    get_command(app)(["alert", *words], standalone_mode=False)
    said = capsys.readouterr()
    assert told in said.err
    assert words[0] == "show" or ("gpu-7" in said.out and "Ada" in said.out and HOST not in said.out)
