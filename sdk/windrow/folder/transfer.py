"""Sends a folder with a run or a job, and brings its files back: a transfer can be interrupted and resumed."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final

from windrow.errors import WindrowClientError
from windrow.folder import record as records
from windrow.folder.archive import BrokenArchive, Resuming, Source
from windrow.folder.returning import Report, Terms, unpack
from windrow.folder.sending import Parcel, pack

SAVE_S: Final = 5.0
"""Between two notes of how far it has come: what is lost with this program is fetched again."""
STARTS_MAX: Final = 3
"""Times that a folder is fetched from its start because it is not what it was."""


def send(parcel: Parcel, owner_ids: Sequence[str], put: Callable[[IO[bytes]], object]) -> None:
    """Send a folder by `put`, and note what was sent for the runs or jobs of these ids."""
    with TemporaryFile() as file:
        sent = pack(parcel, file)
        file.seek(0)
        put(file)
    for owner_id in owner_ids:
        records.begin(owner_id, parcel.root, sent)


def bring(source: Source, owner_id: str, into: Path, *, allow_executables: bool = False) -> Report:
    """Write what comes into a folder. owner_id: of the run or job.

    Raises WindrowClientError where nothing can be fetched or written at all; else the report says what is missing.
    """
    root = Path(os.path.abspath(into))
    record = records.of(owner_id, root)
    for number in range(1, STARTS_MAX + 1):
        try:
            return _bring(source, record, allow_executables)
        except BrokenArchive:
            if number == STARTS_MAX or not source.is_resumed:
                raise
            record.offset = 0  # it is not the archive that it was
        except OSError as error:
            raise WindrowClientError(f"Nothing can be written to {root}: {error.strerror}.") from error
    raise AssertionError("the last try returns or raises")


def _bring(source: Source, record: records.Record, allow_executables: bool) -> Report:
    line = Resuming(source, record.offset, record.version)
    saved = time.monotonic()
    so_far = Report()

    def keep(report: Report, offset: int) -> None:
        record.taken |= report.taken
        record.offset, record.version = (offset, line.version) if line.version else (0, "")
        records.save(record)

    def note(report: Report) -> None:
        nonlocal saved, so_far
        so_far = report
        if time.monotonic() - saved > SAVE_S:
            saved = time.monotonic()
            keep(report, report.offset)

    try:
        report = unpack(line, Terms(record.root, record.known(), record.owner_id, allow_executables), note)
    except BrokenArchive:
        record.taken |= so_far.taken  # ours, so what comes from the start takes its place
        raise
    finally:
        line.close()
    if source.is_cut:
        report.missing.append(("some files", "there was more than the market keeps"))
    keep(report, report.offset if report.is_cut else 0)
    return report
