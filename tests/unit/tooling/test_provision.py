"""Providing services: only when asked, said aloud, and never in the way of the command's own result."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import provision

ROOT = Path(__file__).parents[3]
RUN_S = 60


def provided(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command through the provisioner, with PROVISION unset unless given."""
    kept = {name: value for name, value in os.environ.items() if name not in {"PROVISION", "REQUIRE_SERVICES"}}
    line = [sys.executable, "-m", "tests.provision", "--", *command]
    return subprocess.run(
        line, cwd=ROOT, env=kept | environment, capture_output=True, text=True, timeout=RUN_S, check=False
    )


def test_without_being_asked_it_only_runs_the_command_and_answers_its_status() -> None:
    done = provided(sys.executable, "-c", "import os, sys; print(os.environ.get('REQUIRE_SERVICES')); sys.exit(3)")
    assert (done.returncode, done.stdout) == (3, "None\n")


def test_a_signal_reaches_the_command_and_its_end_is_awaited() -> None:
    told = "import os, signal, sys; os.kill(os.getppid(), signal.SIGTERM); signal.pause()"
    assert provided(sys.executable, "-c", told).returncode != 0


def test_who_is_not_root_is_told_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("PROVISION", "1")
    assert provision.main(["--", "true"]) == 2
    assert "run it as root" in capsys.readouterr().err


def test_without_a_command_it_installs_and_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(provision, "install_missing", lambda: done.append("packages"))
    monkeypatch.setattr(provision, "install_client_generator", lambda: done.append("generator"))
    monkeypatch.setattr(provision, "docker_daemon", lambda: pytest.fail("a daemon was started"))
    monkeypatch.setenv("PROVISION", "")
    assert (provision.main([]), done) == (0, [])
    monkeypatch.setenv("PROVISION", "1")
    assert (provision.main([]), done) == (0, ["packages", "generator"])


def test_what_is_present_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    present = provision.Package("nothing", lambda: True, "a test")
    monkeypatch.setattr(provision, "packages", lambda: (present,))
    monkeypatch.setattr(provision, "_apt", lambda *arguments: pytest.fail(f"apt was called: {arguments}"))
    provision.install_missing()


def test_lists_are_asked_for_only_when_a_package_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = provision.Package("some-package", lambda: False, "a test")
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(provision, "packages", lambda: (absent,))
    monkeypatch.setattr(provision, "_apt", lambda *arguments: asked.append(arguments))
    monkeypatch.setattr(provision, "_is_known", lambda name: False)
    provision.install_missing()
    monkeypatch.setattr(provision, "_is_known", lambda name: True)
    provision.install_missing()
    assert [arguments[0] for arguments in asked] == ["update", "install", "install"]
