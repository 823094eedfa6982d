#!/bin/sh
# Brings this machine into a Windrow fleet as a host, or takes the agent away again.
#
#   curl -fsSL -k --pinnedpubkey PIN URL/install.sh | WINDROW_JOIN_TOKEN=... sh -s -- --url URL --pin PIN
#   sh /opt/windrow-agent/install.sh uninstall
#
# Everything is inside main, which the last line calls: a download that was cut short runs nothing.

main() {
    set -eu
    umask 022
    ACTION=install URL= PIN= SIGNER= ACCESS= TOKEN_FILE= TOKEN=${WINDROW_JOIN_TOKEN:-} PYTHON=
    PREFIX=/opt/windrow-agent STATE=/var/lib/windrow-agent ACCOUNT=windrow-agent
    SEPARATE=1 DOCKER_WISHED=1 START=1 DRY_RUN=0 YES=0 PACKED=0 ADD_DOCKER=0 ADD_TOOLKIT=0
    UNIT=/etc/systemd/system/windrow-agent.service
    WORK= FRESH=0 FINISHED=0 STAGE=
    unset WINDROW_JOIN_TOKEN

    usage() {
        cat <<'TEXT'
usage: install.sh --url URL --pin sha256//KEY [options]     install, or upgrade what is installed
       install.sh uninstall [--prefix DIR] [--yes]          remove all that it made

  --url URL          https://host:port of the Master (default: the one that this script came from)
  --pin sha256//KEY  the Master's public key: nothing is taken from a server with another (default: likewise)
  --signer KEY       the key that the Master signs its releases with (default: the one that came with this script)
  --token-file FILE  a file that holds the join token; else WINDROW_JOIN_TOKEN, else it is asked for
  --access PLACE     where to look for an Access when none that is known answers: dns:DOMAIN or https://HOST; repeatable
  --dry-run          say what would be done, and do nothing
  --yes              do not ask
  --python PROGRAM   the Python to use; else the first that fits, else one that the Master packs with the agent
  --packed           use the packed one in any case
  --install-docker   install Docker first, from this system's own packages
  --install-toolkit  install the NVIDIA Container Toolkit first, where NVIDIA's package source is set up
  --no-docker        do not put the agent's user into the group docker
  --prefix DIR       programs (/opt/windrow-agent)
  --state DIR        keys and state (/var/lib/windrow-agent)
  --no-user          run as whoever calls this, without a user and service of its own
  --no-start         install and join only
TEXT
    }

    say() { printf '%s\n' "$*"; }
    fail() {
        printf 'windrow: %s\n' "$*" >&2
        exit 1
    }
    has() { command -v "$1" >/dev/null 2>&1; }

    read_arguments() {
        while [ $# -gt 0 ]; do
            case $1 in
            uninstall) ACTION=uninstall ;;
            --dry-run) DRY_RUN=1 ;;
            --yes) YES=1 ;;
            --no-user) SEPARATE=0 ;;
            --no-docker) DOCKER_WISHED=0 ;;
            --no-start) START=0 ;;
            --packed) PACKED=1 ;;
            --install-docker) ADD_DOCKER=1 ;;
            --install-toolkit) ADD_TOOLKIT=1 ;;
            --this-machine-only) say "This Master listens on 127.0.0.1: the line works on its own machine only." ;;
            --help | -h)
                usage
                exit 0
                ;;
            --url | --pin | --signer | --access | --token-file | --python | --prefix | --state)
                [ $# -ge 2 ] || { usage >&2 && exit 2; }
                case $1 in
                --url) URL=${2%/} ;;
                --pin) PIN=$2 ;;
                --signer) SIGNER=$2 ;;
                --access)
                    case $2 in
                    *[!A-Za-z0-9:/.%_~-]* | "") fail "--access $2 is neither dns:DOMAIN nor https://HOST." ;;
                    dns:* | https://*) ACCESS="$ACCESS $2" ;;
                    *) fail "--access $2 is neither dns:DOMAIN nor https://HOST." ;;
                    esac
                    ;;
                --token-file) TOKEN_FILE=$2 ;;
                --python) PYTHON=$2 ;;
                --prefix) PREFIX=${2%/} ;;
                --state) STATE=${2%/} ;;
                esac
                shift
                ;;
            *)
                printf 'windrow: %s is not known here\n' "$1" >&2
                usage >&2
                exit 2
                ;;
            esac
            shift
        done
        for folder in "$PREFIX" "$STATE"; do
            case $folder in
            */../* | */.. | *' '* | *'
'*) fail "$folder: give a plain path without spaces." ;;
            /*/*) ;;
            *) fail "$folder: give a path from the root, two folders deep at least." ;;
            esac
        done
    }

    check_arguments() {
        case $URL in
        https://?*) ;;
        *)
            usage >&2
            exit 2
            ;;
        esac
        case $PIN in
        sha256//?*) ;;
        *) fail "--pin is the Master's key as sha256//...; copy the whole line again." ;;
        esac
        if [ "$SEPARATE" = 1 ] && has dpkg-query && dpkg-query --listfiles windrow-agent >/dev/null 2>&1; then
            fail "the package windrow-agent is installed here: join with it, or first dpkg --purge windrow-agent."
        fi
        case $SIGNER in
        *[!A-Za-z0-9+/=]*) fail "--signer is a key in base64; copy the whole line again." ;;
        esac
        has curl || fail "curl is missing: install it (on Debian: apt-get install curl), then again."
    }

    # --- rights ---------------------------------------------------------------------------------------------------

    # Without root: fetch this very script again (it came through a pipe) and let sudo run it. The token goes by file.
    become_root() {
        has sudo || fail "This needs root: it makes a user and a service. Run the line as root (or see --no-user)."
        say "This needs root: asking sudo."
        work
        get /install.sh "$WORK/install.sh"
        if [ -n "$TOKEN" ]; then
            (umask 077 && printf '%s\n' "$TOKEN" >"$WORK/token")
            set -- "$@" --token-file "$WORK/token"
        fi
        status=0
        sudo sh "$WORK/install.sh" "$@" || status=$?
        FINISHED=1
        exit "$status"
    }

    work() {
        [ -n "$WORK" ] || WORK=$(mktemp -d "${TMPDIR:-/tmp}/windrow-install.XXXXXX")
    }

    leave() {
        status=$?
        trap - EXIT
        if [ -n "$STAGE" ] && [ "$FINISHED" = 0 ]; then
            rm -rf "$STAGE"
        fi
        if [ "$FRESH" = 1 ] && [ "$FINISHED" = 0 ]; then
            say "Nothing was installed; what was begun is taken away again."
            (remove_all) >/dev/null 2>&1 || true
        fi
        [ -z "$WORK" ] || rm -rf "$WORK"
        exit "$status"
    }

    # Becomes the account and the program; for a subshell, which nothing then has to wait beside.
    become() {
        cd /
        HOME=$STATE
        export HOME
        if [ "$SEPARATE" = 0 ]; then
            exec "$@"
        elif has setpriv; then
            exec setpriv --reuid="$ACCOUNT" --regid="$(id -g "$ACCOUNT")" --init-groups -- "$@"
        elif has runuser; then
            exec runuser -u "$ACCOUNT" -- "$@"
        else
            exec su -s /bin/sh "$ACCOUNT" -c 'exec "$@"' sh "$@"
        fi
    }

    as_account() { (become "$@"); }

    # --- the Master -----------------------------------------------------------------------------------------------

    # get PATH FILE: HTTP_STATUS says what was answered; no answer is the end.
    get() {
        code=0
        HTTP_STATUS=$(curl --silent --show-error --insecure --pinnedpubkey "$PIN" --proto '=https' \
            --connect-timeout 15 --max-time 600 --write-out '%{http_code}' --output "$2" "$URL$1" 2>"$WORK/said") || code=$?
        case $code in
        0) ;;
        90) fail "$URL does not hold the key of the join line. Somebody may be in between, or the Master was set up anew: ask for a new line." ;;
        *) fail "$URL could not be reached: $(tail -n 1 "$WORK/said")" ;;
        esac
    }

    # Why the Master did not answer with a file; where there is no Python yet, without the finer points of JSON.
    problem() {
        if [ -z "$PYTHON" ]; then
            sed -n 's/.*"detail" *: *"\([^"\\]*\).*/\1/p' "$1" | tr -cd '[:print:]' | cut -c 1-600
            return
        fi
        "$PYTHON" -I -c '
import json, sys
try:
    found = json.load(open(sys.argv[1], encoding="utf-8"))
    print("".join(c if c.isprintable() else " " for c in str(found.get("detail") or found["title"]))[:600])
except Exception:
    print("it gave no reason")' "$1"
    }

    # get_prepared PATH FILE: the same, once the Master has prepared it.
    get_prepared() {
        tries=0
        said=
        while :; do
            get "$1" "$2"
            case $HTTP_STATUS in
            503) ;;
            *) return ;;
            esac
            now=$(problem "$2")
            [ "$now" = "$said" ] || say "Waiting: $now"
            said=$now
            tries=$((tries + 1))
            [ "$tries" -lt 300 ] || fail "the Master did not get ready in ten minutes: $now"
            sleep 2
        done
    }

    # Ed25519 as RFC 8032 defines it (5.1.7, in the extended coordinates of 5.1.4), for a Python without libraries.
    # KEY DOMAIN FILE SIGNATURE, or KEY DOMAIN LIST where the signature is a member of what it covers.
    VERIFY='
import base64, hashlib, json, sys

P, ORDER = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)

def point(raw):
    number = int.from_bytes(raw, "little")
    sign, y = number >> 255, number % 2**255
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    if len(raw) != 32 or y >= P or (x * x - square) % P or sign and not x:
        raise ValueError
    x = x if x % 2 == sign else P - x
    return x, y, 1, x * y % P

def add(one, two):
    a, b = (one[1] - one[0]) * (two[1] - two[0]), (one[1] + one[0]) * (two[1] + two[0])
    c, d = 2 * D * one[3] * two[3], 2 * one[2] * two[2]
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P

def times(count, one):
    found = 0, 1, 1, 0
    while count:
        found, count, one = add(found, one) if count % 2 else found, count // 2, add(one, one)
    return found

def holds(key, data, signature):
    r, s = signature[:32], int.from_bytes(signature[32:], "little")
    if len(signature) != 64 or s >= ORDER:
        return False
    k = int.from_bytes(hashlib.sha512(r + key + data).digest(), "little") % ORDER
    left = times(s, point((4 * pow(5, P - 2, P) % P).to_bytes(32, "little")))
    right = add(point(r), times(k, point(key)))
    return all((left[at] * right[2] - right[at] * left[2]) % P == 0 for at in (0, 1))

try:
    key, domain, covered = base64.b64decode(sys.argv[1])[-32:], sys.argv[2], open(sys.argv[3], "rb").read()
    if len(sys.argv) > 4:
        signature = open(sys.argv[4], "rb").read()
    else:
        record = json.loads(covered.decode())
        signature = base64.b64decode(record.pop("signature"))
        covered = json.dumps(record, sort_keys=True, separators=(",", ":")).encode()
    good = holds(key, domain.encode() + bytes(1) + covered, signature)
except Exception:
    good = False
sys.exit(0 if good else 1)'

    # check_master PYTHON DOMAIN FILE [SIGNATURE]: before a first install, since nothing here knows the Master yet; later
    # the agent that is installed looks (check_signed). PYTHON empty: by openssl.
    check_master() {
        [ "$JOINED" = 0 ] || return 0
        [ -n "$SIGNER" ] || fail "this script came without the key that the Master signs with: fetch it from $URL/install.sh, or give --signer."
        if [ -n "$1" ]; then
            set -- "$1" -I -c "$VERIFY" "$SIGNER" "$2" "$3" ${4:+"$4"}
            "$@" && return
        else
            printf -- '-----BEGIN PUBLIC KEY-----\n%s\n-----END PUBLIC KEY-----\n' "$SIGNER" >"$WORK/signer.pem"
            { printf '%s\0' "$2" && cat "$3"; } >"$WORK/covered"
            openssl pkeyutl -verify -pubin -inkey "$WORK/signer.pem" -rawin -in "$WORK/covered" -sigfile "$4" \
                >/dev/null 2>&1 && return
        fi
        fail "what $URL lists is not signed by the Master whose key came with this script. Nothing of it was run."
    }

    # The list of files.
    get_manifest() {
        get_prepared /dl/manifest.json "$WORK/manifest.json"
        [ "$HTTP_STATUS" = 200 ] || fail "the Master has nothing to install from: $(problem "$WORK/manifest.json")"
        check_master "$PYTHON" windrow-manifest-1 "$WORK/manifest.json"
        "$PYTHON" -I -c '
import json, re, sys
found = json.load(open(sys.argv[1], encoding="utf-8"))
files = found["files"]
total = sum(f["size_bytes"] for f in files)
plain = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,199}")
assert found["manifest"] == 1 and 0 < len(files) <= 200 and 0 < total < 500_000_000
assert re.fullmatch(r"[0-9a-f]{12}", found["release"]) and re.fullmatch(r"3[.][0-9]{1,2}", found["python"])
assert plain.fullmatch(found["platform"])
for f in files:
    assert plain.fullmatch(f["name"]) and re.fullmatch(r"[0-9a-f]{64}", f["sha256"])
with open(sys.argv[2], "w", encoding="utf-8") as out:
    for f in files:
        print(f["sha256"], f["size_bytes"], f["name"], file=out)
print(found["release"], found["python"], found["platform"], len(files), f"{total / 1e6:.1f}")' \
            "$WORK/manifest.json" "$WORK/files" >"$WORK/release" 2>/dev/null ||
            fail "what $URL lists is not a release of Windrow."
        read -r RELEASE MINOR PLATFORM COUNT MEGABYTES <"$WORK/release"
    }

    get_files() {
        while read -r _ _ name; do
            get "/dl/$name" "$1/$name"
            [ "$HTTP_STATUS" = 200 ] || fail "$name could not be fetched: the Master answered $HTTP_STATUS."
        done <"$WORK/files"
        "$PYTHON" -I -c '
import hashlib, pathlib, sys
for line in open(sys.argv[1], encoding="utf-8"):
    digest, size, name = line.split()
    content = pathlib.Path(sys.argv[2], name).read_bytes()
    if len(content) != int(size) or hashlib.sha256(content).hexdigest() != digest:
        sys.exit(name)' "$WORK/files" "$1" 2>"$WORK/said" ||
            fail "$(cat "$WORK/said") is not the file that the Master listed (its SHA-256 differs). Nothing of it was run."
    }

    # --- the packed agent -----------------------------------------------------------------------------------------

    # Whether the Master has the agent with a Python of its own for this machine; RELEASE is named after its bytes.
    find_packed() {
        for tool in tar gzip sha256sum; do
            has "$tool" || return 1
        done
        BUNDLE=windrow-agent-linux-$(uname -m).tar.gz
        get_prepared /dl/SHA256SUMS "$WORK/sums"
        if [ "$HTTP_STATUS" != 200 ]; then
            WHY="$WHY The Master has none with a Python of its own either: $(problem "$WORK/sums")"
            return 1
        fi
        get /dl/SHA256SUMS.sig "$WORK/sums.sig"
        [ "$HTTP_STATUS" = 200 ] || fail "the Master has signed nothing: it answered $HTTP_STATUS for SHA256SUMS.sig."
        any_python=$(command -v python3) || any_python=
        [ "$JOINED" = 1 ] || [ -n "$any_python" ] || has openssl ||
            fail "nothing here can check the Master's signature: install openssl (on Debian: apt-get install openssl), then again."
        check_master "$any_python" windrow-sums-1 "$WORK/sums" "$WORK/sums.sig"
        BUNDLE_SHA256=$(sed -n "s/^\\([0-9a-f]\\{64\\}\\)  $BUNDLE\$/\\1/p" "$WORK/sums")
        [ "${#BUNDLE_SHA256}" = 64 ] || return 1
        RELEASE=$(printf '%.12s' "$BUNDLE_SHA256")
    }

    get_packed() {
        get "/dl/$BUNDLE" "$WORK/bundle"
        [ "$HTTP_STATUS" = 200 ] || fail "$BUNDLE could not be fetched: the Master answered $HTTP_STATUS."
        [ "$(sha256sum <"$WORK/bundle")" = "$BUNDLE_SHA256  -" ] ||
            fail "$BUNDLE is not the file that the Master listed (its SHA-256 differs). Nothing of it was run."
    }

    # --- Python ---------------------------------------------------------------------------------------------------

    # fits PROGRAM MINOR: at least 3.11 (or exactly MINOR), with venv, and readable for the account that will run it.
    fits() {
        "$1" -I -c '
import os, sys, sysconfig
minor, separate = sys.argv[1], sys.argv[2] == "1"
mine = f"{sys.version_info.major}.{sys.version_info.minor}"
if sys.version_info < (3, 11) or (minor and mine != minor) or sys.implementation.name != "cpython":
    sys.exit(1)
try:
    import ensurepip, venv
except ImportError:
    sys.exit(2)
def is_open(path):
    while path != "/":
        if not os.stat(path).st_mode & 1:
            return False
        path = os.path.dirname(path)
    return True
needed = (os.path.realpath(sys.executable), os.path.realpath(sysconfig.get_path("stdlib")))
sys.exit(3 if separate and not all(map(is_open, needed)) else 0)' "$2" "$SEPARATE" >/dev/null 2>&1
    }

    # Sets PYTHON, or WHY there is none.
    find_python() {
        wanted=$1
        reasons=
        PYTHON=
        if [ -n "$GIVEN" ]; then
            candidates=$GIVEN
        else
            candidates=
            for name in python3.11 python3.12 python3.13 python3.14 python3; do
                for folder in $(printf '%s' "$PATH" | tr ':' ' ') /usr/local/bin /usr/bin; do
                    [ ! -x "$folder/$name" ] || candidates="$candidates $folder/$name"
                done
            done
        fi
        for candidate in $candidates; do
            code=0
            fits "$candidate" "$wanted" || code=$?
            case $code in
            0)
                PYTHON=$candidate
                return
                ;;
            2) reasons=" $candidate lacks venv: install it (on Debian: apt-get install python3-venv)." ;;
            3) reasons=" $candidate cannot be read by the user $ACCOUNT: install the Python of the system." ;;
            esac
        done
        WHY="This Master serves wheels for CPython $wanted; no such Python with venv was found here.$reasons"
        if [ -z "$wanted" ]; then
            WHY="The agent needs Python 3.11 or newer with its venv module (on Debian: apt-get install python3 python3-venv).$reasons"
        fi
        return 1
    }

    # Wheels for a Python of this machine, else the agent with a Python of its own.
    choose_release() {
        if [ "$PACKED" = 0 ]; then
            WHY=
            if find_python ""; then
                get_manifest
                if find_python "$MINOR"; then
                    here=$("$PYTHON" -I -c 'import sysconfig; print(sysconfig.get_platform())')
                    [ "$here" != "$PLATFORM" ] || return 0
                    WHY="This Master serves wheels for $PLATFORM; this machine is $here."
                fi
            fi
            [ -z "$GIVEN" ] || fail "$WHY"
        fi
        PACKED=1 PYTHON=
        find_packed || fail "${WHY:-The Master has no agent with a Python of its own for this machine.}"
    }

    # --- the plan -------------------------------------------------------------------------------------------------

    look_around() {
        HAS_SYSTEMD=0
        if [ "$SEPARATE" = 1 ] && [ -d /run/systemd/system ] && has systemctl; then
            HAS_SYSTEMD=1
        fi
        JOINED=0
        [ ! -f "$STATE/identity/identity.json" ] || JOINED=1
        DOCKER=$DOCKER_WISHED
        if ! { has getent && getent group docker || grep '^docker:' /etc/group; } >/dev/null 2>&1; then
            DOCKER=0
        fi
        [ "$SEPARATE" = 1 ] || DOCKER=0
        GROUPS_WANTED=
        [ "$DOCKER" = 0 ] || GROUPS_WANTED=docker
        # Those that own /dev/kfd and /dev/dri, for cards of AMD and Intel.
        for group in render video; do
            if [ "$SEPARATE" = 1 ] && [ -d /dev/dri ] && grep -q "^$group:" /etc/group; then
                GROUPS_WANTED="$GROUPS_WANTED $group"
            fi
        done
        HAS_ACCOUNT=0
        if id "$ACCOUNT" >/dev/null 2>&1; then
            HAS_ACCOUNT=1
        fi
    }

    show_plan() {
        say "The Windrow agent on this machine:"
        if [ "$PACKED" = 1 ]; then
            say "  from     $URL, release $RELEASE: one archive"
            say "  python   one that comes with it; nothing of this machine's"
        else
            say "  from     $URL, release $RELEASE: $COUNT files, $MEGABYTES MB"
            say "  python   $PYTHON ($MINOR)"
        fi
        [ -z "$ADDITIONS" ] || say "  apt      installs $ADDITIONS; uninstalling leaves that"
        say "  into     $PREFIX (programs), $STATE (keys and state, for the agent alone)"
        if [ "$SEPARATE" = 0 ]; then
            say "  as       $(id -un), without a user of its own"
        elif [ "$HAS_ACCOUNT" = 1 ]; then
            say "  as       system user $ACCOUNT (there already)"
        else
            say "  as       system user $ACCOUNT (new)"
        fi
        if [ "$DOCKER" = 1 ]; then
            say "  docker   $ACCOUNT joins the group docker, to run rented containers; that is as much as root (--no-docker: not)"
        else
            say "  docker   no rights are given"
        fi
        case $GROUPS_WANTED in
        *render* | *video*) say "  GPUs     $ACCOUNT joins render and video, which own /dev/dri" ;;
        esac
        if [ "$START" = 0 ]; then
            say "  service  not started"
        elif [ "$HAS_SYSTEMD" = 1 ]; then
            say "  service  $UNIT, started now and at boot"
        else
            say "  service  no systemd for it here: started now under a small supervisor, and NOT at boot"
        fi
        if [ "$JOINED" = 1 ]; then
            say "  join     it has joined before and keeps its identity; no token is used"
        else
            say "  join     once, with the join token; the keys are made here and stay here"
        fi
        say "Nothing else is changed. To remove it all: sh $PREFIX/install.sh uninstall"
    }

    ask() {
        if [ "$YES" = 0 ] && [ -t 1 ] && (: </dev/tty) 2>/dev/null; then
            printf '%s [Y/n] ' "$1"
            read -r answer </dev/tty || answer=n
            case $answer in
            '' | y | Y | yes) ;;
            *)
                FINISHED=1
                say "Nothing was done."
                exit 1
                ;;
            esac
        fi
    }

    read_token() {
        if [ -n "$TOKEN_FILE" ]; then
            [ -r "$TOKEN_FILE" ] || fail "$TOKEN_FILE cannot be read."
            TOKEN=$(head -n 1 "$TOKEN_FILE")
        elif [ -z "$TOKEN" ] && (: </dev/tty) 2>/dev/null; then
            printf 'Join token (it is not shown): '
            stty -echo </dev/tty 2>/dev/null || true
            read -r TOKEN </dev/tty || TOKEN=
            stty echo </dev/tty 2>/dev/null || true
            printf '\n'
        fi
        [ -n "$TOKEN" ] || fail "A join token is needed: WINDROW_JOIN_TOKEN or --token-file. Make one in the console or with windrow token add --join."
    }

    # --- what containers need -------------------------------------------------------------------------------------

    # Which packages are asked for and not there yet.
    find_additions() {
        ADDITIONS=
        [ "$ADD_DOCKER$ADD_TOOLKIT" != 00 ] || return 0
        has apt-get || fail "Docker and the NVIDIA toolkit are installed by apt only; install them by hand, then again without the option."
        [ "$ADD_DOCKER" = 0 ] || has dockerd || ADDITIONS=docker.io
        if [ "$ADD_TOOLKIT" = 1 ] && ! has nvidia-ctk; then
            apt-cache policy nvidia-container-toolkit 2>/dev/null | grep -q 'Candidate: [0-9]' ||
                fail "apt knows no nvidia-container-toolkit: set NVIDIA's package source up first (docs.nvidia.com, Installing the NVIDIA Container Toolkit)."
            ADDITIONS="$ADDITIONS nvidia-container-toolkit"
        fi
    }

    add_packages() {
        if [ -n "$ADDITIONS" ]; then
            # shellcheck disable=SC2086 # a list of names
            DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends $ADDITIONS ||
                fail "apt could not install $ADDITIONS."
        fi
        if [ "$ADD_TOOLKIT" = 1 ] && has dockerd; then
            nvidia-ctk runtime configure --runtime=docker || fail "the NVIDIA toolkit could not be made known to Docker."
            [ "$HAS_SYSTEMD" = 0 ] || systemctl restart docker.service
        fi
        look_around
    }

    # --- making ---------------------------------------------------------------------------------------------------

    made() { printf '%s\n' "$1" >>"$PREFIX/made"; }

    make_folders() {
        if [ ! -f "$PREFIX/made" ]; then
            if [ -d "$PREFIX" ] && [ -n "$(ls -A "$PREFIX")" ]; then
                fail "$PREFIX holds something else. Move it away or give --prefix."
            fi
            if [ -d "$STATE" ] && [ "$JOINED" = 0 ] && [ -n "$(ls -A "$STATE")" ]; then
                fail "$STATE holds something else. Move it away or give --state."
            fi
            FRESH=1
            mkdir -p "$PREFIX"
            : >"$PREFIX/made"
        fi
        mkdir -p "$PREFIX/releases"
    }

    make_account() {
        [ "$SEPARATE" = 1 ] || return 0
        if [ "$HAS_ACCOUNT" = 0 ]; then
            if has useradd; then
                useradd --system --user-group --no-create-home --home-dir "$STATE" --shell /usr/sbin/nologin "$ACCOUNT"
            else
                adduser -S -D -H -h "$STATE" -s /sbin/nologin "$ACCOUNT"
            fi
            made "account $ACCOUNT"
        fi
        for group in $GROUPS_WANTED; do
            usermod --append --groups "$group" "$ACCOUNT"
        done
    }

    make_state() {
        if [ ! -d "$STATE" ]; then
            mkdir -p "$STATE"
            made "state $STATE"
        fi
        chmod 0700 "$STATE"
        [ "$SEPARATE" = 0 ] || chown "$ACCOUNT:" "$STATE"
    }

    # One folder per release; what runs meanwhile is not touched.
    make_release() {
        HOME_OF_RELEASE=$PREFIX/releases/$RELEASE
        if [ -f "$HOME_OF_RELEASE/complete" ]; then
            say "Release $RELEASE is installed already."
            return
        fi
        rm -rf "$HOME_OF_RELEASE"
        STAGE=$HOME_OF_RELEASE
        if [ "$PACKED" = 1 ]; then
            say "Fetching $BUNDLE"
            mkdir "$STAGE"
            get_packed
            get /dl/packages.json "$WORK/manifest.json"
            check_signed "$BUNDLE" "$WORK/bundle"
            say "Installing"
            tar -xzf "$WORK/bundle" -C "$STAGE"
        else
            say "Fetching $COUNT files"
            mkdir "$STAGE" "$STAGE/files"
            get_files "$STAGE/files"
            check_signed
            say "Installing"
            make_environment
        fi
        "$STAGE/bin/windrow-agent" --help >/dev/null || fail "the agent of release $RELEASE does not start here."
        : >"$STAGE/complete"
        STAGE=
    }

    # The agent that is here knows the key of its Master, and looks at the list before another release takes its place.
    check_signed() {
        if [ -x "$PREFIX/current/bin/python" ] && [ "$JOINED" = 1 ]; then
            "$PREFIX/current/bin/python" -I -m windrow_agent.release "$WORK/manifest.json" "$STATE" "$@" >&2 ||
                fail "the release is refused; what was installed goes on."
        fi
    }

    make_environment() {
        "$PYTHON" -m venv "$STAGE"
        PIP_CONFIG_FILE=/dev/null "$STAGE/bin/python" -I -m pip --isolated --disable-pip-version-check install --quiet \
            --no-index --no-deps --no-cache-dir "$STAGE/files/"*.whl
        PIP_CONFIG_FILE=/dev/null "$STAGE/bin/python" -I -m pip --isolated --disable-pip-version-check check >/dev/null ||
            fail "the release lacks something that the agent needs."
        rm -f "$STAGE/files/"*.whl
    }

    use_release() {
        ln -sfn "releases/$RELEASE" "$PREFIX/current"
        cp "$HOME_OF_RELEASE/files/install.sh" "$PREFIX/install.sh"
    }

    sweep() {
        for old in "$PREFIX/releases/"*; do
            [ "$old" = "$HOME_OF_RELEASE" ] || rm -rf "$old"
        done
    }

    join() {
        if [ "$JOINED" = 1 ]; then
            [ -z "$ACCESS" ] || say "This machine has joined before: --access counts only then, nothing of it was changed."
            return 0
        fi
        token=$STATE/join-token
        (umask 077 && printf '%s\n' "$TOKEN" >"$token")
        [ "$SEPARATE" = 0 ] || chown "$ACCOUNT:" "$token"
        TOKEN=
        status=0
        set --
        for place in $ACCESS; do
            set -- "$@" --access "$place"
        done
        as_account "$HOME_OF_RELEASE/bin/windrow-agent" join "$URL" --token-file "$token" --data-dir "$STATE" "$@" || status=$?
        rm -f "$token"
        [ "$status" = 0 ] || fail "this machine could not join $URL."
    }

    # --- running --------------------------------------------------------------------------------------------------

    # CAP_SYSLOG is number 34; a service that asks for what its machine lacks does not start.
    may_read_kernel_log() {
        bounding=$(sed -n 's/^CapBnd:[[:space:]]*//p' /proc/self/status 2>/dev/null)
        [ -n "$bounding" ] && [ $((0x$bounding >> 34 & 1)) = 1 ]
    }

    keeper() {
        KEEPER=
        [ -f "$STATE/keep.pid" ] || return 1
        KEEPER=$(cat "$STATE/keep.pid")
        case $KEEPER in
        '' | *[!0-9]*) return 1 ;;
        esac
        tr '\0' ' ' <"/proc/$KEEPER/cmdline" 2>/dev/null | grep -q windrow-agent-keep
    }

    start() {
        [ "$START" = 1 ] || return 0
        if [ "$HAS_SYSTEMD" = 1 ]; then
            rights=
            may_read_kernel_log || rights='s|=CAP_SYSLOG$|=|'
            sed -e "s|@PREFIX@|$PREFIX|g" -e "s|@STATE@|$STATE|g" -e "s|@ACCOUNT@|$ACCOUNT|g" \
                -e "s|@GROUP@|$(id -gn "$ACCOUNT")|g" -e "$rights" \
                "$HOME_OF_RELEASE/files/windrow-agent.service" >"$UNIT"
            grep -qx "unit $UNIT" "$PREFIX/made" || made "unit $UNIT"
            systemctl daemon-reload
            systemctl enable --quiet windrow-agent.service
            systemctl restart windrow-agent.service
            return
        fi
        stop_keeper
        [ "$(id -u)" != 0 ] || "$PREFIX/current/bin/windrow-agent" fence ||
            say "Strangers get no containers here until that is mended: sudo $PREFIX/current/bin/windrow-agent fence"
        keep=$HOME_OF_RELEASE/files/windrow-agent-keep
        (become setsid sh "$keep" "$PREFIX/current/bin/windrow-agent" "$STATE") </dev/null >/dev/null 2>&1 &
        tries=0
        until keeper; do
            tries=$((tries + 1))
            [ "$tries" -lt 100 ] || fail "the agent's supervisor did not start; see $STATE/agent.log"
            sleep 0.1
        done
        say "There is no systemd for it here: the agent runs under a small supervisor (process $KEEPER), not at boot."
        say "To start it at boot, run this there: sh $PREFIX/current/files/windrow-agent-keep $PREFIX/current/bin/windrow-agent $STATE"
    }

    # Not gone and not a zombie: in a container nobody may ever collect those.
    lives() { grep -q '^State:[[:space:]]*[RSDTtIWPK]' "/proc/$1/status" 2>/dev/null; }

    gone() {
        tries=0
        while [ "$tries" -lt "$2" ]; do
            lives "$1" || return 0
            tries=$((tries + 1))
            sleep 0.1
        done
        return 1
    }

    stop_keeper() {
        keeper || return 0
        kill -TERM "$KEEPER" 2>/dev/null || return 0
        gone "$KEEPER" 300 || kill -KILL "$KEEPER" 2>/dev/null || true
        rm -f "$STATE/keep.pid"
    }

    # --- taking away ----------------------------------------------------------------------------------------------

    # Every process of an account that exists for the agent alone.
    end_processes() {
        number=$(id -u "$1") || return 0
        for signal in TERM KILL; do
            tries=0
            while [ "$tries" -lt 50 ]; do
                left=
                for folder in /proc/[0-9]*; do
                    if [ "$(stat -c %u "$folder" 2>/dev/null)" = "$number" ] && lives "${folder#/proc/}"; then
                        left=1
                        [ "$tries" != 0 ] || kill -"$signal" "${folder#/proc/}" 2>/dev/null || true
                    fi
                done
                [ -n "$left" ] || return 0
                tries=$((tries + 1))
                sleep 0.1
            done
        done
    }

    remove_all() {
        [ -f "$PREFIX/made" ] || fail "Nothing of Windrow is installed in $PREFIX."
        state=$(sed -n 's/^state //p' "$PREFIX/made")
        unit=$(sed -n 's/^unit //p' "$PREFIX/made")
        account=$(sed -n 's/^account //p' "$PREFIX/made")
        STATE=${state:-$STATE}
        [ -n "$account" ] || { [ "$(id -u)" = 0 ] && id "$ACCOUNT" >/dev/null 2>&1; } || SEPARATE=0
        if [ -n "$unit" ]; then
            systemctl disable --now --quiet windrow-agent.service || true
            rm -f "$unit"
            systemctl daemon-reload || true
        fi
        stop_keeper
        if [ -d "$STATE/identity" ] && [ -x "$PREFIX/current/bin/windrow-agent" ]; then
            as_account "$PREFIX/current/bin/windrow-agent" end --data-dir "$STATE" ||
                say "Some workloads could not be ended in order."
        fi
        [ "$(id -u)" != 0 ] || [ ! -x "$PREFIX/current/bin/windrow-agent" ] ||
            "$PREFIX/current/bin/windrow-agent" fence --remove || true
        if [ -n "$account" ]; then
            end_processes "$account"
            userdel "$account" 2>/dev/null || deluser "$account" || say "The user $account could not be removed."
        fi
        [ -z "$state" ] || rm -rf "$state"
        rm -rf "$PREFIX"
    }

    uninstall() {
        [ -f "$PREFIX/made" ] || fail "Nothing of Windrow is installed in $PREFIX."
        say "This ends the agent and every workload it runs, and removes $PREFIX and:"
        sed 's/^/  /' "$PREFIX/made"
        if [ "$DRY_RUN" = 1 ]; then
            say "Dry run: nothing was done."
            return
        fi
        ask "Go on?"
        remove_all
        say "The agent is gone. What stays: Docker images it pulled, and the Master's record of this host"
        say "(retire it there: windrow host retire NAME)."
    }

    install() {
        look_around
        GIVEN=$PYTHON
        work
        find_additions
        choose_release
        show_plan
        if [ "$DRY_RUN" = 1 ]; then
            say "Dry run: nothing was done."
            return
        fi
        ask "Go on?"
        [ "$JOINED" = 1 ] || read_token
        add_packages
        make_folders
        make_release
        make_account
        make_state
        join
        use_release
        start
        sweep
        FINISHED=1
        say ""
        as_account "$PREFIX/current/bin/windrow-agent" doctor --data-dir "$STATE" || true
        say ""
        say "Done: release $RELEASE of the Windrow agent is installed."
    }

    read_arguments "$@"
    trap leave EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    [ "$ACTION" = uninstall ] || check_arguments
    if [ "$SEPARATE" = 1 ] && [ "$(id -u)" != 0 ] && [ "$DRY_RUN" = 0 ]; then
        if [ "$ACTION" = install ]; then
            become_root "$@"
        fi
        if [ -f "$PREFIX/made" ] && grep -q '^account ' "$PREFIX/made"; then
            fail "Run this as root: sudo sh $PREFIX/install.sh uninstall"
        fi
        SEPARATE=0
    fi
    "$ACTION"
    FINISHED=1
}

main "$@"
