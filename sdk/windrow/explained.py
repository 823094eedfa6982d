"""A paragraph for each error code of the API: what happened, and what to do. Pure.

`windrow explain` and docs/errors.md are made of this table; a test compares its codes with those of the Master.
"""

from collections.abc import Mapping
from typing import Final

PARAGRAPHS: Final[dict[str, str]] = {
    "internal": (
        "Windrow itself failed; your request was probably right. Try it once more. If it fails again, report it "
        "with the request id of the message: the operator finds that id in the log of the Master."
    ),
    "invalid_input": (
        "A field of the request has a value that it may not have; the message names the field and the rule. "
        "Nothing was changed. Correct the field and send the request again. The `--help` of the command lists "
        "what each option takes."
    ),
    "not_found": (
        "There is nothing with this name or id, or it belongs to a project that you are not in. Look at which "
        "project you act in (`windrow whoami`), list what there is (`windrow ps --all`, `windrow host ls`), or "
        "ask its owner to share it with you."
    ),
    "unauthenticated": (
        "Your token is missing, has expired or was revoked. Sign in again: `windrow login URL`. In a script, set "
        "WINDROW_URL and WINDROW_TOKEN; `windrow token add NAME` makes a token."
    ),
    "second_factor_required": (
        "This user signs in with a second factor. Give the code of the authenticator app, or one of the recovery "
        "codes, each of which works once. Who has neither asks an operator."
    ),
    "misdirected": (
        "The request went to an address at which this Master does not answer, for example by an old name or "
        "through a wrong proxy. Use the address that `windrow whoami` or the operator gives; an operator sets it "
        "with `--public`."
    ),
    "forbidden": (
        "Your roles in this project do not allow this. The message names the role that does. `windrow can-i WHAT` "
        "says what you may do and who can give you the role; `windrow project use NAME` changes to a project in "
        "which you have others."
    ),
    "sign_in_again": (
        "This changes who may do what, and your last sign-in in the browser is more than ten minutes old. Give "
        "your password, a code of your authenticator app or a token again, and repeat it."
    ),
    "authorization_pending": (
        "The sign-in of this device waits for somebody to approve it in the browser. Open the page that `windrow "
        "login` shows and compare the code. The command asks again by itself."
    ),
    "slow_down": (
        "This device asks too often whether its sign-in was approved. `windrow login` waits longer by itself; a "
        "program of your own adds five seconds between two requests."
    ),
    "access_denied": (
        "Somebody refused the sign-in of this device on the page. If that was a mistake, begin again: `windrow "
        "login URL`."
    ),
    "expired_token": (
        "The code of this device has expired or was used: it is valid for some minutes and once. Begin again: "
        "`windrow login URL`."
    ),
    "conflict": (
        "The present state does not allow this, or somebody changed it in the meantime. Look at it again "
        "(`windrow status NAME`), then decide."
    ),
    "already_registered": (
        "The registry of resources has this resource_id already. Choose another id, or change the one that there "
        "is: `windrow resource set ID`."
    ),
    "spending_limit": (
        "This would pass a spending limit of the project, the token or the service account. `windrow limit ls` "
        "shows each limit with what is spent of it. An admin of the project raises it with `windrow limit set`; "
        "or ask for fewer or cheaper GPUs, or for a shorter time."
    ),
    "quota_exceeded": (
        "This would pass a quota: the message names it, with its limit, what is used, what was asked and who can raise "
        "it. `windrow quota ls` lists the quotas. Wait until something has ended, ask for less, or have it raised with "
        "`windrow quota set`. A job waits by itself, unless it is larger than the quota."
    ),
    "idempotency_mismatch": (
        "A program used one Idempotency-Key for two different requests. A key is for one request and its "
        "repetitions; use a new one."
    ),
    "no_capacity": (
        "No host that fits is free now. The message lists the reasons, the most telling first, and the smallest "
        "change that would fit: a higher `--max-price`, less memory, another model. `windrow gpus` shows what is "
        "free; `windrow job submit` waits in the queue until a host is."
    ),
    "insufficient_funds": (
        "The balance does not pay the first 15 minutes, which are reserved when something starts. `windrow "
        "whoami` shows the balance. Ask an operator for credit (`windrow credit add NAME 50`), stop something "
        "that runs (`windrow ps`), or ask for something cheaper."
    ),
    "too_large": (
        "What was sent is larger than the limit that the message names, and nothing was changed. Send less: leave "
        "files out with .windrowignore, or keep large data in a volume. docs/limits.md lists the limits."
    ),
    "too_many": (
        "Too many requests, or too many things of one kind. For requests, wait as long as the answer says; the "
        "command does that by itself. For things, delete what is not needed any more. docs/limits.md lists the "
        "limits."
    ),
    "unavailable": ("This is not possible right now, and nothing was changed. The same command may work in a moment."),
    "host_unreachable": (
        "The host is not connected to the market now. What was asked of it is kept for a while and is sent when "
        "the host is back. `windrow host show NAME` says since when; its owner looks at the machine and its "
        "network."
    ),
    "deadline_exceeded": (
        "The answer did not come in time, so it is not known whether it was done. Look first (`windrow status "
        "NAME`, `windrow command ls`), then repeat what was not done."
    ),
    "link_closed": (
        "The connection between a host and the market ended. The host connects again by itself; try again in a moment."
    ),
    "kept_back": (
        "A relay held messages back, so the host left it and connects through another one. Nothing was lost. If "
        "it happens often, an operator looks at that relay: `windrow access ls`."
    ),
    "bad_proof": (
        "A message did not carry a valid signature of whom it said it came from. It was thrown away. If it "
        "happens often, look at the clock of the host, and whether the host was copied from another one."
    ),
    "banned": (
        "This host is in quarantine or was retired, so the market does not talk to it. `windrow host show NAME` "
        "has the reason; an operator lifts a quarantine with `windrow host activate NAME`. A retired host joins "
        "again with a new token."
    ),
    "join_token_refused": (
        "The join token was used already, has expired (they are valid for 15 minutes) or is of another market. "
        "Make a new one: `windrow token add --join`."
    ),
    "certificate_refused": (
        "The certificate of this host has expired, was replaced or is of another market. An agent renews its own "
        "in time; one that was switched off for long joins again with a new token: `windrow token add --join`."
    ),
    "fenced": (
        "The GPU has a new renter, or a new Master leads, so this old command was refused. It could have harmed the "
        "work that runs there now. Look at the present state and begin from there."
    ),
    "expired": (
        "The command reached the host after the time until which it was valid, and was not carried out. The host "
        "or its connection was away too long. Repeat it."
    ),
    "image_unavailable": (
        "The host could not find or pull the image. Check the name and the tag, whether its registry can be "
        "reached from the host, and for a private image its login (`--registry-secret`). docs/images.md has more."
    ),
    "runtime_unavailable": (
        "The host cannot start this kind of work now: its container runtime is missing or does not answer. "
        "`windrow host show NAME` lists its runtimes and conditions. Try without `--host`, so that another one is "
        "chosen."
    ),
    "workload_failed": (
        "The work did not start, or ended with an error. Its log says why: `windrow logs NAME`. The files that it "
        "changed are kept and can be fetched."
    ),
    "storage_failed": (
        "A disk refused a write, and nothing was confirmed that was not written. The operator or the owner of the "
        "host frees space or replaces the disk, then restarts the service."
    ),
    "disk_full": (
        "The disk of the Master is full, so it takes no new work; what runs goes on. The operator frees space, "
        "and the Master goes on by itself. `windrow doctor` shows it."
    ),
}


def first_sentence(code: str, texts: Mapping[str, str] = PARAGRAPHS) -> str:
    """What happened, in a sentence."""
    return texts[code].split(". ")[0].rstrip(".") + "."
