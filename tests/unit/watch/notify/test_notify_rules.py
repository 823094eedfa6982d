"""Who hears what, which targets are taken, and the words of messages."""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from tests.unit.watch.notify.test_schedule import channel
from tests.unit.watch.notify.world import message
from windrow_master.watch.model import MessageKind
from windrow_master.watch.notify import apprise_services, text
from windrow_master.watch.notify.model import ChannelKind, Quiet, check_settings, check_target, wants
from windrow_proto.conditions import Severity
from windrow_proto.errors import InvalidInput, Unavailable


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({}, True),
        ({"min_severity": Severity.PAGE}, False),
        ({"rules": ("host.*",)}, True),
        ({"rules": ("job.*", "budget")}, False),
        ({"disabled_at_ns": 1}, False),
    ],
)
def test_a_channel_takes_what_it_wants(settings: dict[str, object], wanted: bool) -> None:
    assert wants(channel(**settings), message(1)) is wanted


@pytest.mark.parametrize(
    ("kind", "target", "shown"),
    [
        (ChannelKind.MAIL, "ada@example.org", "ada@example.org"),
        (ChannelKind.WEBHOOK, "https://example.org:8443/T0/secret?key=canary", "https://example.org:8443/..."),
        (ChannelKind.APPRISE, "slack://TokenA/TokenB/TokenC/%23alerts", "slack://..."),
        (ChannelKind.APPRISE, "pagerduty://key@api?region=eu", "pagerduty://..."),
        (ChannelKind.APPRISE, "workflows://prod-1.westus.logic.azure.com:443/id/signature", "workflows://..."),
        (ChannelKind.APPRISE, "ntfys://my-topic", "ntfys://..."),
        (ChannelKind.APPRISE, "tgram://123456789:abcdefg_hijklmnop/12315544", "tgram://..."),
    ],
)
def test_of_a_target_only_its_host_is_shown(kind: ChannelKind, target: str, shown: str) -> None:
    assert check_target(kind, target) == shown


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        (ChannelKind.MAIL, "ada"),
        *((ChannelKind.WEBHOOK, url) for url in ("ftp://a.org/", "https://", "https://u:p@a.org/", "http://[::1/")),
        *(
            (ChannelKind.WEBHOOK, url)
            for url in ("https://a.org/#x", "https://a.org/a b", "https://a.org/" + "x" * 1_000)
        ),
        *((ChannelKind.APPRISE, url) for url in ("json://10.0.0.1/", "ntfys://10.0.0.1/topic", "syslog://")),
        *((ChannelKind.APPRISE, url) for url in ("slack://a/b/c?template=/etc/passwd", "slack://a/b/c?redirect=yes")),
        (ChannelKind.APPRISE, "workflows://10.0.0.1/a.logic.azure.com/x"),
        (ChannelKind.APPRISE, "workflows://evil.example\\@a.logic.azure.com/x"),
    ],
)
def test_a_target_that_could_lead_elsewhere_is_refused(kind: ChannelKind, target: str) -> None:
    with pytest.raises(InvalidInput):
        check_target(kind, target)


def test_a_webhook_has_no_digest_and_quiet_hours_have_a_length() -> None:
    with pytest.raises(InvalidInput, match="digest"):
        check_settings(channel(kind=ChannelKind.WEBHOOK, digest_minutes=60))
    with pytest.raises(InvalidInput, match="different times"):
        check_settings(channel(quiet=Quiet(60, 60, "UTC")))


def test_the_body_of_a_webhook_says_all_of_the_message() -> None:
    said = json.loads(text.body(replace(message(7), at_ns=0), "https://market.example"))
    assert said == {
        "type": "alert.firing",
        "timestamp": "1970-01-01T00:00:00.000Z",
        "data": {
            "alert_id": "alert_7",
            "rule": "host.lost",
            "severity": "ticket",
            "title": "Host a is lost",
            "text": "Nothing was heard for 60 s.",
            "remedy": "Look at the machine.",
            "object": "host.lost/a",
            "number": 7,
            "subjects": ["a"],
            "subject_count": 1,
            "is_simulated": False,
            "link": "https://market.example/alerts/alert_7",
        },
    }


def test_the_words_say_what_is_urgent_over_or_simulated_and_how_many_are_meant() -> None:
    page = replace(message(1), severity=Severity.PAGE, subjects=("a", "b"), subject_count=9)
    assert text.title(page) == "[PAGE] Host a is lost"
    assert (
        text.title(replace(page, kind=MessageKind.RESOLVED, simulated=True)) == "Resolved: Host a is lost (simulated)"
    )
    assert "Affected: a, b and 7 more" in text.paragraphs(page)
    letter = text.letter([message(number, cause=str(number)) for number in range(60)], "https://m.example")
    assert (letter.subject, letter.below) == ("60 messages of alerts", ("And 10 more.",))
    assert "Somebody used your address" not in letter.foot


def test_a_chat_gets_the_same_in_lines_and_a_tone_by_which_pagers_open_and_close() -> None:
    title, said, tone = text.plain([message(1)], "https://m.example")
    assert (title, tone) == ("Host a is lost", "warning")
    assert said.splitlines()[0] == "Nothing was heard for 60 s."
    assert said.splitlines()[-1] == "https://m.example/alerts/alert_1"
    page = replace(message(1), severity=Severity.PAGE)
    tones = [text.plain([replace(page, kind=kind)], "")[2] for kind in (MessageKind.FIRING, MessageKind.RESOLVED)]
    assert tones == ["failure", "success"]


def test_apprise_is_an_extra_and_is_handed_what_was_checked() -> None:
    told: list[Any] = []

    class Fake:
        AppriseAsset, NotifyFormat = dict, SimpleNamespace(TEXT="text")

        def Apprise(self, asset: Any) -> Any:  # noqa: N802  # its name
            told.append(asset)
            return SimpleNamespace(add=lambda url: url != "slack://", notify=lambda *words, **more: more)

    with pytest.raises(Unavailable, match="pip install 'windrow-master\\[notify\\]'"):
        apprise_services.send("slack://a/b/c", "title", "text", "warning")
    with mock.patch.multiple(apprise_services, is_installed=lambda: True, import_module=lambda name: Fake()):
        apprise_services.send("slack://a/b/c", "title", "text", "warning")
        with pytest.raises(Unavailable, match="does not know this URL"):
            apprise_services.send("slack://", "title", "text", "warning")
    assert told[0] == {"http_redirects": False}


@pytest.mark.parametrize("more", [",json://127.0.0.1/x", " json://a/", ";form://a/", "/json://127.0.0.1/x"])
def test_one_target_of_apprise_is_one_service(more: str) -> None:
    with pytest.raises(InvalidInput):
        check_target(ChannelKind.APPRISE, f"slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ{more}")
