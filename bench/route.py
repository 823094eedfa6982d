"""`route`: where a program should run, among 5,000 offers. Goal: at most 5 times a bare parse and sort of the same.

Ours is the whole answer but HTTP and the store: the program is read, the offers are grouped, priced, scored and put in
order with their reasons. Limit: `ast.parse` of the same program and a sort of the same offers by price, in turn.
Measured as this thread's own processor time, the middle of the runs.
"""

import ast
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from bench._report import last_line, median, percentile, scale, table
from windrow_master.hybrid.analysis import analyse
from windrow_master.hybrid.places import all_places
from windrow_master.hybrid.routing import Work, recommend
from windrow_master.hybrid.service import completed
from windrow_master.prices.book import PriceBook
from windrow_master.prices.shipped import shipped

OFFERS = 5_000
GOAL = 5.0
PROGRAM = """
import torch
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM

def step{n}(model, batch, optimizer):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(batch["input_ids"].cuda(), labels=batch["labels"].cuda()).loss / 4
    loss.backward()
    if batch["index"] % 4 == 3:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return loss.item()
"""
FUNCTIONS = 40
"""About 500 lines, as a training script has."""


def own_ms(work: Callable[[], object]) -> float:
    """Milliseconds of this thread for one call."""
    began = time.thread_time_ns()
    work()
    return (time.thread_time_ns() - began) / 1e6


def main() -> None:
    """Measure and print."""
    runs = max(10, int(100 * scale()))
    code = "".join(PROGRAM.format(n=n).replace("{n}", str(n)) for n in range(FUNCTIONS))
    known = shipped().offers
    offers = [replace(known[n % len(known)], name=f"copy {n}") for n in range(OFFERS)]
    book = PriceBook(offers)
    newest = max(one.source.read_on for one in offers if one.source.read_on)
    today = newest + timedelta(days=1)
    asked = Work(hours=3.0, interruptible=True, checkpoint_minutes=30.0, dataset_gb=50.0, gpu_memory_gib=40.0)

    def ours() -> object:
        work = completed(asked, analyse(code))
        return recommend(work, all_places((), (), book, today, work))

    def bare() -> object:
        ast.parse(code)
        return sorted(offers, key=lambda one: (one.per_hour, one.name))

    ours(), bare()
    times: dict[str, list[float]] = {"ours": [], "bare": []}
    for _ in range(runs):
        times["ours"].append(own_ms(ours))
        times["bare"].append(own_ms(bare))
    ratio = median(times["ours"]) / median(times["bare"])
    rows = [(name, f"{median(found):.2f} ms (p90 {percentile(found, 0.9):.2f})") for name, found in times.items()]
    table([("offers", len(book.offers)), ("lines of the program", code.count("\n")), *rows, ("ratio", f"{ratio:.2f}")])
    detail = {"goal": GOAL, "offers": len(book.offers), "limit_ms": round(median(times["bare"]), 3)}
    last_line("route", median(times["ours"]), "ms", "a bare parse and sort of the same", ratio, detail)


if __name__ == "__main__":
    main()
