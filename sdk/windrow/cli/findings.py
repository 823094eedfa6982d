"""`windrow job doctor` and `windrow machine doctor`: which rank failed first, what holds the GPUs of some work back,
and what to change."""

from typing import Any

from windrow.cli.output import print_json, say
from windrow.client import Client
from windrow.words import counted


def print_findings(api: Client, path: str, as_json: bool) -> None:
    """Prints the findings of `/jobs/ID` or `/clusters/ID`."""
    answer = api.get(f"{path}/findings")
    if as_json:
        print_json(answer)
        return
    if first := answer["first_ended"]:
        code = "an unknown exit code" if first["exit_code"] is None else f"exit {first['exit_code']}"
        why = f" ({first['detail']})" if first["detail"] else ""
        say(f"Rank {first['rank']} on {first['host_name']} failed first: {code}{why}, at {first['at']}")
        for line in first["last_lines"]:
            say(f"  {line}")
        say("")
    say(answer["words"])
    for one in answer["findings"]:
        say("")
        say(f"{_gpu(one)}: {one['title']}")
        say(f"  {one['words']}")
        if one["lost_ratio"] > 0:
            say(f"  It costs {one['lost_ratio']:.0%} of the GPU, {one['lost_per_hour']} an hour.")
        say(f"  To change it: {one['remedy']}")
    if answer["gpus"]:
        say("")
        say(f"Looked at {counted(answer['gpus'], 'GPU')} from {answer['looked_from']} to {answer['looked_to']}.")


def _gpu(one: dict[str, Any]) -> str:
    index = "" if one["gpu_index"] is None else f" {one['gpu_index']}"
    return f"GPU{index} of {one['host_name']}"
