"""Writes charts as questions in PromQL, and reads the store's answers as points. Pure.

Both views of history answer a step with the samples in [start, start + step): the mean of a gauge, the highest of a
counter. A step shorter than COARSE_MS is made here of the raw samples, so both say exactly the same. A longer one is
made by the store with `avg_over_time(...[step])` at the step's last millisecond; a Prometheus before 3.0 closes that
range on its left, so there a sample in the very last millisecond before a step counts in that step, too.
"""

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from windrow_master.telemetry.model import GroupQuery, Place, SeriesKey, SeriesPoints, SeriesQuery
from windrow_master.telemetry.remote.wire import device_label, series_name
from windrow_proto.errors import Unavailable
from windrow_proto.ids import HostId
from windrow_proto.metrics import BY_NUMBER

COARSE_MS: Final = 60_000
INFO_NAME: Final = "windrow_gpu_info"
"""Of value 1, with the tier of each GPU as a label: what groups are made by."""
INFO_LASTS: Final = "10m"
ALWAYS: Final = (("nocache", "1"),)
"""VictoriaMetrics moves instants to multiples of the step without it; others do not know it."""


@dataclass(frozen=True, slots=True)
class Question:
    """One request to the store's API: the path below /api/v1 and its form."""

    path: str
    form: tuple[tuple[str, str], ...]


def questions(query: SeriesQuery) -> tuple[Question, ...]:
    """One question for each metric that is asked for."""
    by_metric: dict[int, list[Place]] = {}
    for key in query.keys:
        by_metric.setdefault(key.metric, []).append((key.host_id, key.device))
    return tuple(_question(metric, places, query) for metric, places in by_metric.items())


def _question(metric: int, places: Sequence[Place], query: SeriesQuery) -> Question:
    matcher = selector(metric, places)
    if query.step_ms < COARSE_MS:
        # A range that is closed on its left brings one millisecond too many; it falls into no step below.
        text = f"{matcher}[{query.to_ms - query.from_ms}ms]"
        return Question("query", (("query", text), ("time", _seconds(query.to_ms - 1)), *ALWAYS))
    return _range(f"{_over_time(metric)}({matcher}[{query.step_ms}ms])", query.from_ms, query.to_ms, query.step_ms)


def grouped_question(query: GroupQuery) -> Question:
    """The mean over the GPUs of each tier of their means (of counters: of their highest)."""
    inner = f"{_over_time(query.metric)}({series_name(query.metric)}[{query.step_ms}ms])"
    info = f"last_over_time({INFO_NAME}[{INFO_LASTS}])"
    text = f"avg by (tier) ({inner} * on (host, gpu) group_left (tier) {info})"
    return _range(text, query.from_ms, query.to_ms, query.step_ms)


def workload_question(metric: int, from_ms: int, to_ms: int) -> Question:
    """The mean of a metric of each workload in this time."""
    text = f"avg by (workload) (avg_over_time({series_name(metric)}[{to_ms - from_ms}ms]))"
    return Question("query", (("query", text), ("time", _seconds(to_ms - 1)), *ALWAYS))


def _range(text: str, from_ms: int, to_ms: int, step_ms: int) -> Question:
    first = from_ms + step_ms - 1
    steps = -(-(to_ms - from_ms) // step_ms)
    last = first + (steps - 1) * step_ms
    form = (("query", text), ("start", _seconds(first)), ("end", _seconds(last)), ("step", f"{step_ms}ms"), *ALWAYS)
    return Question("query_range", form)


def _over_time(metric: int) -> str:
    known = BY_NUMBER.get(metric)
    return "max_over_time" if known is not None and known.counter else "avg_over_time"


def selector(metric: int, places: Sequence[Place]) -> str:
    """The series of one metric of these devices."""
    hosts = sorted({host_id for host_id, _ in places})
    devices = sorted({device for _, device in places})
    matchers = [_matcher("host", hosts)]
    if devices != [""]:
        matchers.append(_matcher(device_label(metric), devices))
    return f"{series_name(metric)}{{{','.join(matchers)}}}"


def _matcher(label: str, values: Sequence[str]) -> str:
    if len(values) == 1:
        return f"{label}={quoted(values[0])}"
    return f"{label}=~{quoted('|'.join(_literal(value) for value in values))}"


def _literal(value: str) -> str:
    """A value as a regular expression that matches nothing else (RE2)."""
    return "".join(c if c.isalnum() or c in "_-" else f"\\{c}" for c in value)


def quoted(text: str) -> str:
    """A PromQL string: whatever a host calls its GPU, it stays inside the quotes."""
    return json.dumps(text, ensure_ascii=False)


def _seconds(at_ms: int) -> str:
    return f"{at_ms // 1000}.{at_ms % 1000:03d}"


def read_answer(data: bytes) -> list[Mapping[str, Any]]:
    """The result of an answer; raises Unavailable with the store's own words where it refused."""
    with _reading():
        answer = json.loads(data)
        if answer["status"] != "success":
            raise Unavailable(f"The metrics store refused: {str(answer.get('error'))[:200]}")
        result: list[Mapping[str, Any]] = answer["data"]["result"]
        return result


@contextlib.contextmanager
def _reading() -> Iterator[None]:
    """Whatever is wrong with what the store said, it is the store's failure and no bug of ours."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise Unavailable("The metrics store answered with something that is not PromQL's JSON.") from error


def points(query: SeriesQuery, results: Iterable[Sequence[Mapping[str, Any]]]) -> tuple[SeriesPoints, ...]:
    """The answers to `questions(query)`, in that order, as the answer to the query."""
    steps = -(-(query.to_ms - query.from_ms) // query.step_ms)
    found: dict[SeriesKey, list[float | None]] = {key: [None] * steps for key in query.keys}
    metrics = dict.fromkeys(key.metric for key in query.keys)
    with _reading():
        for metric, result in zip(metrics, results, strict=True):
            for one in result:
                labels = one.get("metric", {})
                key = SeriesKey(HostId(labels.get("host", "")), labels.get(device_label(metric), ""), metric)
                if key in found:
                    found[key] = _steps(one.get("values", ()), metric, query.from_ms, query.step_ms, steps)
    return tuple(
        SeriesPoints(key, tuple((query.from_ms + n * query.step_ms, value) for n, value in enumerate(values)))
        for key, values in found.items()
    )


def groups(query: GroupQuery, result: Sequence[Mapping[str, Any]]) -> dict[str, tuple[tuple[int, float | None], ...]]:
    """The answer to `grouped_question(query)`."""
    steps = -(-(query.to_ms - query.from_ms) // query.step_ms)
    answer = {}
    with _reading():
        for one in result:
            values = _steps(one.get("values", ()), query.metric, query.from_ms, query.step_ms, steps)
            at = (query.from_ms + n * query.step_ms for n in range(steps))
            answer[str(one.get("metric", {}).get("tier", ""))] = tuple(zip(at, values, strict=True))
    return answer


def workloads(result: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The answer to a `workload_question`."""
    with _reading():
        means = {str(one["metric"]["workload"]): float(one["value"][1]) for one in result}
    return {workload_id: mean for workload_id, mean in means.items() if mean == mean}


def _steps(values: Iterable[Sequence[Any]], metric: int, from_ms: int, step_ms: int, steps: int) -> list[float | None]:
    known = BY_NUMBER.get(metric)
    is_counter = known is not None and known.counter
    total, count, high = [0.0] * steps, [0] * steps, [float("-inf")] * steps
    for at_s, text in values:
        step = (round(float(at_s) * 1000) - from_ms) // step_ms
        value = float(text)
        if 0 <= step < steps and value == value:  # staleness is told as NaN
            total[step] += value
            count[step] += 1
            high[step] = max(high[step], value)
    return [None if not n else (high[at] if is_counter else total[at] / n) for at, n in enumerate(count)]
