"""Sends reports by mail when they are due: the totals, and a link to the whole.

Whoever has a schedule gets what the own roles show at the time of sending; without a role in the project the schedule
ends. A time that passed while no Master ran is made up for once.
"""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Final
from urllib.parse import urlencode

import structlog

from windrow_master.identity.model import Principal
from windrow_master.identity.people_lookup import acting, own_user_of
from windrow_master.loops import again, ends_alone
from windrow_master.mail.message import Letter
from windrow_master.mail.service import MailService
from windrow_master.reports import schedule as rules
from windrow_master.reports.asking import Asked, words_of
from windrow_master.reports.model import Report
from windrow_master.reports.output import totals_text
from windrow_master.reports.repository import ScheduleRepository
from windrow_master.reports.schedule import Schedule
from windrow_master.reports.service import ReportService, scope_of
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Conflict, NotFound, WindrowError
from windrow_proto.ids import AccountId
from windrow_proto.ports import Clock
from windrow_proto.units import MINUTE, SECOND

LOOK_NS: Final = 20 * SECOND
AGAIN_NS: Final = 10 * MINUTE
"""After what may pass, such as a history that does not answer."""
AT_A_TIME: Final = 10
SCHEDULES_MAX: Final = 20
"""Of one user in one project."""

log = structlog.get_logger(__name__)


class ScheduleService:
    """Schedules of reports."""

    def __init__(self, store: Store, clock: Clock, reports: ReportService, mail: MailService, base_url: str) -> None:
        """base_url: of the console, as mails name it."""
        self._store, self._clock, self._reports, self._mail = store, clock, reports, mail
        self._base_url = base_url

    async def add(self, principal: Principal, name: str, cron: str, asked: Asked) -> Schedule:
        """Have a report sent to the user who asks. Raises InvalidInput, Forbidden, Conflict where mail cannot be."""
        rules.check(cron, asked.time_zone, self._clock.wall_ns())

        def add(uow: UnitOfWork) -> Schedule:
            user, now_ns = own_user_of(uow, principal), uow.now_wall_ns
            if not self._mail.is_on or user.address is None:
                missing = "You have no mail address. Set one" if self._mail.is_on else "This market sends no mail. Ask"
                raise Conflict(f"{missing}{' in your profile' if self._mail.is_on else ' its operator'}.")
            if len(uow[ScheduleRepository].of_user(principal.account_id, user.id)) >= SCHEDULES_MAX:
                raise Conflict(f"You have {SCHEDULES_MAX} schedules in this project. Remove one first.")
            scope = scope_of(uow, principal, asked.wanted_view)
            asked.query(scope, now_ns)
            made = Schedule(
                schedule_id=uow.mint("schedule"),
                account_id=principal.account_id,
                user_id=user.id,
                name=" ".join(name.split()) or "Report",
                cron=cron,
                time_zone=asked.time_zone,
                query=asdict(replace(asked, view=str(scope.view))),
                created_at_ns=now_ns,
                due_at_ns=rules.next_ns(cron, asked.time_zone, now_ns),
            )
            uow[ScheduleRepository].add(made)
            uow.audit(principal.actor, "report_schedule.add", made.schedule_id, made.name, {"cron": cron})
            return made

        return await self._store.write(add, name="report_schedule.add")

    async def list(self, principal: Principal) -> Sequence[Schedule]:
        """Those of the user who asks, in this project."""
        user = principal.user_id or ""
        return await self._store.read(lambda uow: uow[ScheduleRepository].of_user(principal.account_id, user))

    async def remove(self, principal: Principal, schedule_id: str) -> None:
        """Send it no more. Raises NotFound."""

        def remove(uow: UnitOfWork) -> None:
            found = uow[ScheduleRepository].get(schedule_id)
            if found is None or (found.account_id, found.user_id) != (principal.account_id, principal.user_id):
                raise NotFound("You have no such schedule. List them: windrow report schedule ls", subject=schedule_id)
            uow[ScheduleRepository].remove(schedule_id)
            uow.audit(principal.actor, "report_schedule.remove", schedule_id, found.name)

        await self._store.write(remove, name="report_schedule.remove")

    async def run(self) -> None:
        """Send what is due, until cancelled."""
        await again(self.turn, LOOK_NS, self._clock, "report_schedules")

    async def turn(self) -> None:
        """Send what is due now."""
        now_ns = self._clock.wall_ns()
        for one in await self._store.read(lambda uow: uow[ScheduleRepository].due(now_ns, AT_A_TIME)):
            with ends_alone("report_schedule", schedule=one.schedule_id):
                await self._send(one)

    async def _send(self, schedule: Schedule) -> None:
        asked, report, problem, is_passing = Asked(**schedule.query), None, "", False
        known = await self._store.read(lambda uow: acting(uow, schedule.user_id, AccountId(schedule.account_id)))
        if known is not None:
            try:
                scope = await self._reports.scope(known[1], asked.wanted_view)
                report = await self._reports.report(asked.query(scope, self._clock.wall_ns()))
            except WindrowError as error:
                problem, is_passing = error.detail, error.retryable

        def went(uow: UnitOfWork) -> None:
            receiver = acting(uow, schedule.user_id, AccountId(schedule.account_id))
            if receiver is None:
                uow[ScheduleRepository].remove(schedule.schedule_id)
                uow.audit("master", "report_schedule.remove", schedule.schedule_id, "its user may not see it any more")
                return
            next_ns = rules.next_ns(schedule.cron, schedule.time_zone, uow.now_wall_ns)
            due_ns = min(next_ns, uow.now_wall_ns + AGAIN_NS) if is_passing else next_ns
            sent_ns = uow.now_wall_ns if report is not None else schedule.sent_at_ns
            address = receiver[0].address
            said = problem if address and self._mail.is_on else "no mail can be sent to this user"
            is_first = uow[ScheduleRepository].went(schedule, due_ns, sent_ns, said)
            if is_first and report is not None and address and self._mail.is_on:
                self._mail.write(uow, address, self._letter(schedule, report))

        await self._store.write(went, name="report_schedule.sent")

    def _letter(self, schedule: Schedule, report: Report) -> Letter:
        words = urlencode(words_of(report.query))
        days = report.query.days
        return Letter(
            subject=f"{schedule.name}: {days.first} to {days.last}",
            paragraphs=(f"From {days.first} to {days.last}, days in {days.zone}:", *totals_text(report)),
            link=f"{self._base_url}/reports?{words}",
            link_text="Open the report",
            below=(f"To stop these mails: windrow report schedule rm {schedule.schedule_id}",),
        )


def forget_account(uow: UnitOfWork, account_id: AccountId) -> None:
    """Remove the schedules of a project."""
    uow[ScheduleRepository].forget(account_id)
