"""People with the command line: invited by link, signed in by password, at work in a project, removed."""

import json
import os
import platform
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support import warm_windrow
from tests.support.rental import Renter
from tests.support.stack import WINDROW, Stack

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
PASSWORD = "violet kettle upon seven hills"


@dataclass
class Person:
    """Somebody with a home folder, and what the environment says beside it."""

    home: Path
    own: dict[str, str]

    def _environment(self) -> dict[str, str]:
        bare = {name: value for name, value in os.environ.items() if not name.startswith("WINDROW_")}
        return bare | {"HOME": str(self.home), "XDG_CONFIG_HOME": str(self.home / "config")} | self.own

    def begun(self, *words: str) -> "subprocess.Popen[str]":
        """A process of `windrow ...`, without standard input, whose standard error can be read."""
        return subprocess.Popen(
            [WINDROW, *words],
            cwd=self.home,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def windrow(self, *words: str, fails: bool = False) -> str:
        """What `windrow ...` prints; of one that fails, what it says."""
        done = subprocess.run(
            [warm_windrow.command(), *words],
            cwd=self.home,
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (done.returncode != 0) == fails, done.stderr
        return done.stderr if fails else done.stdout

    def json(self, *words: str) -> Any:
        """The same as JSON."""
        return json.loads(self.windrow(*words, "--json"))


@pytest.fixture
def market(renter: Renter) -> Stack:
    """Its people come and go."""
    return renter.stack


@pytest.mark.proves("people: invited, signed in by password, at work in a project and removed, by the command line")
def test_an_invited_person_signs_in_works_in_a_project_and_is_removed(market: Stack, tmp_path: Path) -> None:
    owner = _person(tmp_path / "owner", {"WINDROW_URL": market.cli["url"], "WINDROW_TOKEN": market.cli["token"]})
    ada = _person(tmp_path / "ada", {})
    secret = tmp_path / "password"
    secret.write_text(PASSWORD + "\n")

    owner.windrow("project", "add", "lab")
    link = owner.windrow("invite", "--address", "ada@example.org", "--project", "lab:renter,admin").strip()
    assert "ada@example.org" in owner.windrow("invitation", "ls")
    ada.windrow("login", link, "--name", "Ada Lovelace", "--password-file", str(secret))
    assert "accepted already" in ada.windrow("login", link, "--name", "A", "--password-file", str(secret), fails=True)

    me = ada.json("whoami")
    assert (me["user"]["name"], me["account"]["name"], me["roles"]) == ("Ada Lovelace", "lab", ["admin", "renter"])
    ada.windrow("logout")
    ada.windrow("whoami", fails=True)
    ada.windrow("login", market.cli["url"], "--address", "ADA@example.org", "--password-file", str(secret))
    assert ada.json("project", "ls") == [{**ada.json("project", "ls")[0], "name": "lab"}]

    owner.windrow("member", "set", "ada@example.org", "--project", "default:viewer")
    assert "default" in ada.windrow("project", "use", "default") + ada.windrow("whoami")
    assert ada.json("whoami")["roles"] == ["viewer"]
    assert "windrow project ls" in ada.windrow("project", "use", "nothing", fails=True)
    owner.windrow("member", "rm", "Ada Lovelace", "--yes")
    assert "was revoked" in ada.windrow("whoami", fails=True)
    _check_nothing_is_told(market)


@pytest.mark.proves("people: a command line without a token is signed in by a code that its user approves")
def test_a_command_line_is_signed_in_by_a_code_that_its_user_approves(market: Stack, tmp_path: Path) -> None:
    url, own = market.cli["url"], {"WINDROW_URL": market.cli["url"], "WINDROW_TOKEN": market.cli["token"]}
    owner, laptop = _person(tmp_path / "owner", own), _person(tmp_path / "laptop", {})
    with laptop.begun("login", url) as login:
        assert login.stderr is not None
        code = next(found[0] for line in login.stderr if (found := re.search(r"code=([A-Z-]{9})", line)))[5:]
        with httpx2.Client(base_url=f"{url}/api/v1", timeout=30) as browser:
            secret = browser.post("/session", json={"token": market.cli["token"]}).json()["secret"]
            browser.headers["Authorization"] = f"Bearer {secret}"
            look = browser.post("/device/look", json={"user_code": code}).json()
            assert (look["name"], look["project"]) == (platform.node()[:60], "default")
            assert browser.post("/device/approve", json={"user_code": code}).status_code == 204
            assert browser.post("/device/approve", json={"user_code": code}).status_code == 409
        assert login.wait(60) == 0, login.stderr.read()

    me = laptop.json("whoami")
    assert (me["user"]["name"], me["account"]["name"]) == ("owner", "default")
    assert "renter" in me["roles"] and me["token"]["name"].startswith("windrow login on ")
    laptop.windrow("can-i", "rent")
    token = laptop.json("service-account", "add", "ci", "--role", "viewer")["token"]["token"]
    ci = _person(tmp_path / "ci", {"WINDROW_URL": url, "WINDROW_TOKEN": token})
    assert ci.json("whoami")["service"]["name"] == "ci"
    assert "This needs the role renter" in ci.windrow("can-i", "POST", "/clusters", fails=True)
    owner.windrow("service-account", "rm", "ci", "--yes")
    assert "was revoked" in ci.windrow("whoami", fails=True)
    laptop.windrow("logout")
    laptop.windrow("whoami", fails=True)


def _person(home: Path, own: dict[str, str]) -> Person:
    home.mkdir()
    return Person(home, own)


def _check_nothing_is_told(market: Stack) -> None:
    """The password stands in no file of the market, logs and database among them."""
    for path in market.data_dir.rglob("*"):
        if path.is_file():
            assert PASSWORD.encode() not in path.read_bytes(), path
