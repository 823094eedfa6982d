"""The attacks and losses that each have a test: an id and what goes wrong without the defence."""

from typing import Final

ROWS: Final[dict[str, str]] = {
    "F1": "a renter's environment runs code outside the sandbox",
    "F2": "the sandbox of an agent that runs as root can be unmounted",
    "F3": "a host writes files into the renter's folder that run there",
    "F4": "a result of a function starts a process on the renter's machine",
    "F5": "one text that is no Unicode stops everybody's jobs and lists",
    "F6": "a forwarded page reads the console's session",
    "F7": "a second account cannot be made, so one account sees everything",
    "F8": "a renter's token revokes the operator's",
    "F9": "a host reports events about others",
    "F10": "a host bills time that nobody used",
    "F11": "one account's jobs keep everybody's waiting",
    "F12": "one huge number makes every list fail",
    "F13": "idle connections shut everybody out",
    "F14": "slow downloads fill the Master's disk",
    "F15": "an upload without an end stops the market",
    "F16": "a host's events fill the Master's memory and disk",
    "F17": "a renter reads the images that a host's owner made",
    "F18": "a restored backup locks every host out",
    "F19": "one link among the results loses all of them",
    "F20": "one renter takes every channel and stream",
    "F21": "an anchor that does not match stops the market without a reason",
    "F22": "secrets of renters are kept and shown in clear",
    "F23": "records and memory grow without an end",
    "F24": "wrong tokens lock the right ones out",
    "F25": "a host without a sandbox offers processes and nobody is told",
    "F26": "a damaged database is answered with the wrong advice",
    "F27": "strangers see who rents what",
    "F28": "the file of another user is believed, a token goes out in clear",
    "K1": "results are lost on their way back",
    "K2": "files are changed that the work did not change",
    "K3": "what is sent is not the folder, or holds secrets",
    "K4": "a rental goes on, or holds a host, for nothing",
    "K5": "a secret is printed",
    "K14": "a volume loses what could be saved",
}

OPEN: Final[dict[str, str]] = {}
"""Cases without a defence, each with the day on which that was written down and what is missing."""
