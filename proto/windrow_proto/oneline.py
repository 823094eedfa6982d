"""Writes one JSON object per line on standard error also for output that is no event of ours: libraries' warnings, and
a crash.

So no text of a stranger begins a line of its own in a log, and the redaction sees the traceback that ends a process.
"""

import json
import logging
import sys
import threading
from datetime import UTC, datetime
from types import TracebackType
from typing import Final

from windrow_proto import redact

CRASHED: Final = "crashed"


class OneLine(logging.Formatter):
    """A record as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        event = {
            "event": record.getMessage(),
            "logger": record.name,
            "level": record.levelname.lower(),
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(),
        }
        if record.exc_info:
            event["exception"] = self.formatException(record.exc_info)
        return json.dumps(redact.redacted(event))


def install() -> None:
    """Send the standard logging's warnings and whatever ends this process or one of its threads this way."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    catch_crashes()


def catch_crashes() -> None:
    """Log what nobody caught, instead of printing it as it is; Ctrl-C stays what it is."""
    log = logging.getLogger("windrow")

    def crashed(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error, trace)
        else:
            log.critical(CRASHED, exc_info=(kind, error, trace))

    def thread_crashed(found: threading.ExceptHookArgs) -> None:
        if found.exc_value is not None and found.exc_type is not SystemExit:
            crashed(found.exc_type, found.exc_value, found.exc_traceback)

    sys.excepthook = crashed
    threading.excepthook = thread_crashed
