"""Reports by mail: sent once when due, with the totals and a link, to who may still see them."""

from datetime import UTC, datetime

from tests.unit.identity.people_world import RENTER, ask
from tests.unit.identity.test_people_mail import Post, post  # noqa: F401  # the fixture
from windrow_proto.units import DAY, SECOND

BODY = {
    "name": "Cost by model",
    "cron": "0 7 * * *",
    "by": "model",
    "period": "yesterday",
    "time_zone": "Europe/Berlin",
}


def text_of(mail) -> str:
    body = mail.get_body(("plain",))
    return body.get_content()


async def test_a_schedule_sends_its_report_once_each_day(post: Post) -> None:  # noqa: F811
    ada = await post.market.joined("ada@example.org", projects=RENTER)
    made = await ask(ada, "POST", "/report-schedules", 201, **BODY)
    service = post.market.opened.services.report_schedules
    await service.turn()
    await post.turn()
    assert post.box.mails == []
    now_ns = post.market.clock.wall_ns()
    due = datetime.fromisoformat(made["next_at"]).astimezone(UTC).timestamp()
    post.market.clock.advance(int(due * SECOND) - now_ns + SECOND)
    for _ in range(3):
        await service.turn()
        await post.turn()
    (mail,) = post.box.mails
    assert mail["To"] == "ada@example.org" and mail["Subject"].startswith("Cost by model: ")
    assert "Cost: 0.00 TEST" in text_of(mail) and "/reports?measure=cost&by=model&from=" in text_of(mail)
    post.market.clock.advance(2 * DAY)  # no Master ran for two days: one mail makes up for them
    await service.turn()
    await post.turn()
    assert len(post.box.mails) == 2
    (listed,) = (await ask(ada, "GET", "/report-schedules"))["items"]
    assert listed["problem"] is None and listed["sent_at"] is not None
    await ask(ada, "DELETE", f"/report-schedules/{made['id']}", 204)
    assert (await ask(ada, "GET", "/report-schedules"))["items"] == []


async def test_who_left_the_project_gets_no_more_reports(post: Post) -> None:  # noqa: F811
    ada = await post.market.joined("ada@example.org", projects=RENTER)
    await ask(ada, "POST", "/report-schedules", 201, **BODY)
    me = await ask(ada, "GET", "/user")
    await ask(post.market.owner, "DELETE", f"/members/{me['id']}", 204)
    post.market.clock.advance(2 * DAY)
    await post.market.opened.services.report_schedules.turn()
    await post.turn()
    assert [mail for mail in post.box.mails if "Cost" in mail["Subject"]] == []


async def test_a_schedule_that_nobody_could_be_sent_is_refused(post: Post) -> None:  # noqa: F811
    ada = await post.market.joined("ada@example.org", projects=RENTER)
    bob = await post.market.joined("bob@example.org", projects=RENTER)
    for wrong in ({"cron": "* * * * *"}, {"cron": "soon"}, {"by": "colour"}, {"time_zone": "Mars"}, {"period": "soon"}):
        await ask(ada, "POST", "/report-schedules", 422, **{**BODY, **wrong})
    await ask(ada, "POST", "/report-schedules", 403, **{**BODY, "view": "all"})
    made = await ask(ada, "POST", "/report-schedules", 201, **BODY)
    await ask(bob, "DELETE", f"/report-schedules/{made['id']}", 404)
    assert (await ask(bob, "GET", "/report-schedules"))["items"] == []
