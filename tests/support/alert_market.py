"""A market of real daemons in a network of its own, with cards of the fake driver, and the places that alerts go to: a
mail server and a webhook's receiver."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import Envelope
from standardwebhooks import Webhook

from tests.fake_nvml.state import FakeState
from tests.support.namespaces import namespace, need_networks
from tests.support.regions import RegionalMarket, regional_market
from tests.support.rental import Renter
from tests.support.stack import wait_for

HERE = "127.0.0.1"
SMTP_PORT, HOOK_PORT = 2525, 9000
JOIN_S = 300.0


@dataclass
class Taken:
    """The messages that arrived, each with the wall time in seconds. secret: of the webhook, by which what it brings is
    verified."""

    mails: list[tuple[float, EmailMessage]] = field(default_factory=list)
    hooks: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    secret: str = ""

    async def handle_DATA(self, server: Any, session: Any, envelope: Envelope) -> str:  # noqa: N802  # aiosmtpd's name
        assert isinstance(envelope.content, bytes)
        self.mails.append((time.time(), message_from_bytes(envelope.content, policy=policy.default)))
        return "250 OK"

    def mailed(self, words: str) -> list[tuple[float, str]]:
        """When mails with these words in their subject arrived, and their subjects."""
        return [(at, mail["Subject"]) for at, mail in self.mails if words in mail["Subject"]]

    def hooked(self, kind: str, rule: str) -> list[float]:
        """When webhooks of this type about this rule arrived."""
        return [at for at, said in self.hooks if (said["type"], said["data"]["rule"]) == (kind, rule)]


@contextmanager
def receivers() -> Iterator[Taken]:
    """A mail server and an HTTP server in this thread's network."""
    taken = Taken()

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): text for name, text in self.headers.items()}
            taken.hooks.append((time.time(), Webhook(taken.secret).verify(body, headers)))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is written."""

    mail, hook = Controller(taken, hostname=HERE, port=SMTP_PORT), ThreadingHTTPServer((HERE, HOOK_PORT), Hook)
    serving = threading.Thread(target=hook.serve_forever)
    mail.start()
    serving.start()
    try:
        yield taken
    finally:
        hook.shutdown()
        serving.join()
        hook.server_close()
        mail.stop()


@dataclass
class AlertMarket:
    """The market; of each host its cards, its agent and its id, by name."""

    market: RegionalMarket
    taken: Taken
    library: Path
    cards: dict[str, FakeState] = field(default_factory=dict)
    agents: dict[str, Any] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)

    @property
    def renter(self) -> Renter:
        """The first account: it owns the hosts, rents, and operates the market."""
        return self.market.renter

    @property
    def url(self) -> str:
        """Of the console."""
        return str(self.renter.stack.cli["url"])

    def environment(self, name: str) -> dict[str, str]:
        """With which a host's agent finds its cards."""
        return {"LD_LIBRARY_PATH": str(self.library.parent), "FAKE_NVML_STATE": str(self.cards[name].path)}

    def add(self, name: str, count: int) -> None:
        """Join a host with so many cards, whose ids nobody else has."""
        state = FakeState(self.market.folder / f"cards-{name}", count=count)
        for index in range(count):
            state.gpu(index).uuid = b"GPU-%08d-0000-4000-8000-%012d" % (len(self.cards) + 1, index)
            state.gpu(index).serial = b"165%04d%06d" % (len(self.cards) + 1, index)
        self.cards[name] = state
        self.agents[name] = self.market.add_host(name, **self.environment(name))

    def kill_agent(self, name: str) -> None:
        """SIGKILL; what it runs goes on."""
        self.agents[name].kill()
        self.agents[name].wait()

    def start_agent(self, name: str) -> None:
        """As after a start of its service."""
        self.agents[name] = self.market.run_host(name, **self.environment(name))

    def alerts(self, rule: str = "", state: str = "all") -> list[dict[str, Any]]:
        """The alerts that operators see, the latest first."""
        return self.renter.all("/alerts", state=state, **({"rule": rule} if rule else {}))


@contextmanager
def alert_market(folder: Path, library: Path, cards: dict[str, int], lost_s: int) -> Iterator[AlertMarket]:
    """Run it, with these hosts and so many cards each, until all can be rented. lost_s: seconds of silence after which
    a host is lost."""
    need_networks()
    environment = {
        "WINDROW_SMTP_URL": f"smtp://{HERE}:{SMTP_PORT}?from=market@example.org&starttls=off",
        "WINDROW_EGRESS_ALLOW": f"{HERE}/32",
        "HASTE_LOST_S": str(lost_s),
    }
    with ExitStack() as cleanup:
        here = cleanup.enter_context(namespace())
        cleanup.enter_context(here.entered())
        taken = cleanup.enter_context(receivers())
        networks = dict.fromkeys(("master", "eu", *cards), here)
        addresses = dict.fromkeys(networks, HERE)
        master = "tests.support.hasty_alerts"
        market = cleanup.enter_context(regional_market(folder, networks, addresses, master, environment))
        market.add_accesses("eu")
        found = AlertMarket(market, taken, library)
        for name, count in cards.items():
            found.add(name, count)

        def are_up() -> bool:
            hosts = market.renter.all("/hosts")
            found.ids.update((one["name"].removeprefix("test-host-"), one["id"]) for one in hosts)
            ready = [one for one in hosts if one["link_state"] == "online" and one["tier"] and one["gpus"]]
            return len(ready) == len(cards)

        wait_for(are_up, JOIN_S)
        yield found
