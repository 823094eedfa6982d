"""Examples of every verb, which its `--help` ends with; a test has the parser read each. Pure."""

from typing import Any, Final

SHOWN_MAX: Final = 3
"""Lines under the help of a noun; its verbs have their own."""

LINES: Final = """
windrow status
windrow status lab
windrow ps
windrow ps --all --json
windrow gpus
windrow gpus --vram 24GB --max-price 0.5 --sort price
windrow gpus --model h100 --gpus 8 --hours 8h --free
windrow run -- python train.py
windrow run --gpu 24GB --image pytorch/pytorch -- python train.py
windrow run fetch train
windrow open lab
windrow open web --no-browser
windrow open
windrow ssh lab
windrow ssh lab -- nvidia-smi
windrow logs -f train
windrow top
windrow top rack-7
windrow top lab --once
windrow cluster create --name lab --gpu H100 --max-duration 8h --idle 30m
windrow cluster create --gpu H100:2 --plan -- python train.py
windrow cluster create --kind service --port 8080 -- python3 -m http.server 8080
windrow cluster ls --state running
windrow cluster resize ray-1 4
windrow cluster extend lab --hours 2
windrow cluster show lab
windrow cluster logs -f lab
windrow cluster exec lab -- nvidia-smi
windrow cluster explain lab --host rack-7
windrow cluster doctor lab
windrow cluster files lab results --changed
windrow cluster delete lab
windrow cluster stop lab
windrow cluster start lab --max-price 2.50
windrow cluster forward lab 8888
windrow cluster ssh lab -- -A
windrow job submit --gpu 24GB --retries 2 -- python train.py
windrow job submit --script train.py --array 8
windrow job submit --script train.py --class low --begin 18:00 --array 1000%20
windrow job ls --state queued
windrow job show train
windrow job explain train
windrow job doctor train
windrow job logs -f train
windrow job wait train --timeout 2h
windrow job hold train
windrow job release train
windrow job top train
windrow job requeue train
windrow job cancel train
windrow job rerun train
windrow job artefacts train results
windrow queue ls
windrow queue show train
windrow offer ls --name 'h100/*'
windrow offer set h100/A 2.50
windrow price h100 spot
windrow route train.py
windrow template save lab-a100 --of lab
windrow template ls
windrow template show lab-a100
windrow template delete lab-a100
windrow alert ls
windrow alert show 3f2a9c01
windrow alert ack 3f2a9c01 --reason 'on my way'
windrow alert silence 3f2a9c01 --for 2h
windrow alert comment 3f2a9c01 'the fan is replaced'
windrow alert assign 3f2a9c01 ana
windrow alert rule ls
windrow alert rule add hot --metric gpu_temperature_celsius --above 80 --for 5m
windrow alert rule preview --metric gpu_temperature_celsius --above 80 --for 5m
windrow alert rule rm hot
windrow alert unsilence 3f2a9c01
windrow alert silences add --host gpu-7 --for 2h
windrow alert silences ls
windrow alert silences rm 8c1d0e42
windrow maintenance plan gpu-7
windrow maintenance add gpu-7 --from 2d --for 4h --reason 'new fans'
windrow maintenance ls
windrow maintenance set 8c1d0e42 --until 6h
windrow maintenance rm 8c1d0e42 --yes
windrow volume create data --max-size 100GB
windrow volume ls
windrow volume show data
windrow volume save lab
windrow volume rm data
windrow secret set HF_TOKEN
windrow secret ls
windrow secret rm HF_TOKEN
windrow artefact put model.bin
windrow artefact ls
windrow artefact get model.bin
windrow artefact rm model.bin
windrow checkpoint ls lab
windrow checkpoint save lab
windrow checkpoint restore lab-2 --from lab
windrow usage
windrow usage --by gpu --month 2026-11
windrow earnings
windrow earnings --by host --month 2026-11
windrow host simulate 50
windrow receipt ls --since 30d
windrow receipt show lab
windrow host ls --state degraded
windrow host show rack-7
windrow host why rack-7
windrow host export rack-7 --metric gpu_utilization_ratio --out use.csv
windrow host drain rack-7
windrow host activate rack-7
windrow host maintenance rack-7
windrow host quarantine rack-7
windrow host retire rack-7
windrow host set rack-7 --default-image pytorch/pytorch
windrow host measure rack-7
windrow host verify rack-7
windrow host prove rack-7
windrow host facts rack-7
windrow host bandwidth rack-7
windrow gpu ls --state faulty
windrow gpu show rack-7/5
windrow gpu cut rack-7 rack-7/0
windrow command ls --host rack-7
windrow command show 91f3d5b7
windrow event ls --since 2h --severity warning
windrow event ls --subject rack-7 --watch
windrow access ls
windrow access show local-a
windrow access drain local-a --reason 'new disk'
windrow access resume local-a
windrow access stop local-a --reason 'a rehearsal'
windrow account add mara --role renter --credit 50
windrow account ls
windrow account show mara
windrow account link mara
windrow account suspend mara
windrow account resume mara
windrow account transfer lab --to ACME --reason 'the team has moved'
windrow credit add mara 50
windrow credit settle mara --reason 'the project has ended'
windrow user ls
windrow user delete ada --reason 'asked for'
windrow user make-owner ada --organisation ACME --reason 'its owner has left'
windrow identity-provider add acme --issuer https://login.example.org --client-id windrow
windrow identity-provider ls
windrow identity-provider test acme
windrow identity-provider preview acme researchers
windrow identity-provider rm acme
windrow resource add lab-a100-01
windrow resource ls
windrow resource show lab-a100-01
windrow resource set lab-a100-01 --status unavailable
windrow resource bind lab-a100-01 --host rack-7
windrow resource unbind lab-a100-01
windrow resource rm lab-a100-01
windrow backend add aws --kind ec2 --set region=eu-central-1 --credentials aws.ini --per-day 40 --machines 2
windrow backend kinds
windrow backend ls
windrow backend show aws
windrow backend check aws
windrow backend offers aws --gpu a10g --spot
windrow backend renew aws --credentials aws.ini
windrow backend cap aws --per-day 60 --in-all none
windrow backend allow aws default --per-day 50 --in-all 200
windrow backend disallow aws default
windrow backend sweep aws
windrow backend stop-all aws
windrow backend rm aws
windrow purchase new aws g5.xlarge/eu-central-1a/spot --hours 8h --project lab
windrow purchase ls
windrow purchase show 3f2a9c01
windrow purchase end 3f2a9c01
windrow audit ls --since 1d
windrow audit verify
windrow audit reanchor --reason 'put back from a backup'
windrow doctor
windrow up --simulate 50
windrow login https://market.example
windrow logout
windrow whoami
windrow invite --project default:renter
windrow invite --address ada@example.org --role org_admin
windrow member ls
windrow member set ada --project lab:renter,viewer
windrow member password-link ada
windrow member rm ada
windrow member leave ACME
windrow invitation ls
windrow invitation link ada@example.org
windrow invitation rm ada@example.org
windrow project ls
windrow project add lab
windrow project use lab
windrow project delete lab
windrow project restore lab
windrow project offer lab --to ACME
windrow project offers
windrow project accept lab
windrow project withdraw lab
windrow service-account add ci --role renter
windrow service-account ls
windrow service-account rotate ci
windrow service-account rm ci
windrow share add lab --with ada@example.org
windrow share ls
windrow share rm 91f3d5b7
windrow channel ls
windrow channel add oncall --kind mail --to oncall@example.org --for operators --min-severity page
windrow channel add hook --kind webhook --to https://example.org/hook --rule 'job.*'
windrow channel set hook --quiet 22:00-07:00 --time-zone Europe/Berlin
windrow channel test hook
windrow channel rotate hook
windrow channel rm hook
windrow channel mail all
windrow delivery ls --state given_up
windrow delivery again 4f2a9c01
windrow limit ls
windrow limit set --max-monthly 100
windrow limit rm
windrow fair-share ls
windrow fair-share set org:acme --guarantee 25% --weight 4 --ceiling 50%
windrow fair-share set lab --no-borrowing
windrow fair-share rm lab
windrow quota ls
windrow quota set lab gpus --limit 8 --tier h100
windrow quota set org:acme memory --limit 64GiB
windrow quota set installation spend_per_hour --limit 12.50
windrow quota rm lab gpus --tier h100
windrow token add ci --max-total 50
windrow token add --join
windrow token ls
windrow token rm ci
windrow report --by model --period 2026-11
windrow report --measure cost,held --by project,day --csv
windrow report --html report.html
windrow report statement --period last-month
windrow report schedule add "Cost by model" --by model
windrow report schedule ls
windrow report schedule rm "Cost by model"
windrow ledger ls --since 7d
windrow ledger balances
windrow auth can-i rent
windrow can-i rent
windrow explain train --host rack-7
windrow explain no_capacity
windrow version
""".strip().splitlines()


def examples_of(path: str) -> list[str]:
    """The lines of a verb or a noun. path: its words, without `windrow`."""
    path = f"{path} ".replace("machine ", "cluster ", 1) if path.partition(" ")[0] == "machine" else f"{path} "
    return [line for line in LINES if f"{line} ".startswith(f"windrow {path}")]


def add_examples(command: Any, path: str) -> None:
    """Ends the help of a command, and of all beneath it, with its examples."""
    found = examples_of(path)[: SHOWN_MAX if hasattr(command, "commands") else None]
    if found and not command.epilog:
        own = [line.replace("windrow cluster", "windrow machine") for line in found]
        shown = own if path.partition(" ")[0] == "machine" else found
        command.epilog = "\n".join(("Examples:", *(f"  {line}" for line in shown)))
    for name, inner in getattr(command, "commands", {}).items():
        add_examples(inner, f"{path} {name}")
