#!/bin/sh
# Installs the command `windrow` for this user, from the Master that this script came from, or takes it away again.
#
#   curl -fsSL -k --pinnedpubkey PIN URL/install-cli.sh | sh
#   curl -fsSL -k --pinnedpubkey PIN URL/install-cli.sh | WINDROW_LINK=... sh      and sign in by this link
#   sh ~/.local/share/windrow/install-cli.sh --uninstall
#
# Everything is inside main, which the last line calls: a download that was cut short runs nothing.

main() {
    set -eu
    umask 022
    ACTION=install URL= PIN= WITH_PIP=0 LINK=${WINDROW_LINK:-}
    WORK= STAGE= FRESH=0 FINISHED=0
    unset WINDROW_LINK

    usage() {
        cat <<'TEXT'
usage: install-cli.sh [options]      install the command windrow for this user, or upgrade what is installed
       install-cli.sh --uninstall    sign out and remove all that it made, the login included

  --url URL          https://host:port of the Master (default: the one that this script came from)
  --pin sha256//KEY  the Master's public key: nothing is taken from a server with another (default: likewise)
  --with-pip         for a Python or a machine that the Master has no wheels for: pip takes them from its package index

WINDROW_LINK holds a sign-in link or an invitation to sign in by.
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
            --uninstall) ACTION=uninstall ;;
            --with-pip) WITH_PIP=1 ;;
            --help | -h)
                usage
                exit 0
                ;;
            --url | --pin)
                [ $# -ge 2 ] || { usage >&2 && exit 2; }
                case $1 in
                --url) URL=${2%/} ;;
                --pin) PIN=$2 ;;
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
    }

    find_folders() {
        case ${HOME:-} in
        /*) ;;
        *) fail "this user has no home folder: set HOME to a folder that can be written." ;;
        esac
        BIN=$HOME/.local/bin
        DATA=${XDG_DATA_HOME:-$HOME/.local/share}/windrow
        CONFIG=${XDG_CONFIG_HOME:-$HOME/.config}/windrow
        STATE=${XDG_STATE_HOME:-$HOME/.local/state}/windrow
    }

    leave() {
        status=$?
        trap - EXIT
        [ -z "$STAGE" ] || rm -rf "$STAGE"
        if [ "$FRESH" = 1 ] && [ "$FINISHED" = 0 ]; then
            remove_folders
            say "Nothing was installed; what was begun is taken away again."
        fi
        [ -z "$WORK" ] || rm -rf "$WORK"
        exit "$status"
    }

    # --- the Master -----------------------------------------------------------------------------------------------

    # get PATH FILE: HTTP_STATUS says what was answered; no answer is the end.
    get() {
        code=0
        HTTP_STATUS=$(curl --silent --show-error --insecure --pinnedpubkey "$PIN" --proto '=https' \
            --connect-timeout 15 --max-time 600 --write-out '%{http_code}' --output "$2" "$URL$1" 2>"$WORK/said") || code=$?
        case $code in
        0) ;;
        90) fail "$URL does not hold the key of this line. Somebody may be in between, or the Master has a new key: take the line from its page again." ;;
        *) fail "$URL could not be reached: $(tail -n 1 "$WORK/said")" ;;
        esac
    }

    problem() { sed -n 's/.*"detail" *: *"\([^"\\]*\).*/\1/p' "$1" | tr -cd '[:print:]' | cut -c 1-600; }

    # The list of wheels, once the Master has prepared it.
    get_list() {
        tries=0 said=
        while get /cli/files.txt "$WORK/files" && [ "$HTTP_STATUS" = 503 ]; do
            now=$(problem "$WORK/files")
            [ "$now" = "$said" ] || say "Waiting: $now"
            said=$now
            tries=$((tries + 1))
            [ "$tries" -lt 300 ] || fail "the Master did not get ready in ten minutes: $now"
            sleep 2
        done
        [ "$HTTP_STATUS" = 200 ] || fail "the Master has nothing to install from: $(problem "$WORK/files")"
        read -r RELEASE PLATFORM MINORS <"$WORK/files" || true
        case $RELEASE in
        '' | *[!0-9a-f]*) fail "what $URL lists is not a release of Windrow." ;;
        esac
    }

    # --- Python ---------------------------------------------------------------------------------------------------

    # facts PROGRAM: its version and platform, as the Master names them; 1: another Python, 2: a part of it is missing.
    facts() {
        "$1" -I -c '
import platform, sys, sysconfig
if sys.version_info < (3, 11) or sys.implementation.name != "cpython":
    sys.exit(1)
try:
    import ssl, venv, zlib
except ImportError:
    sys.exit(2)
is_other = sys.platform == "linux" and platform.libc_ver()[0] != "glibc"
print(f"3.{sys.version_info.minor}{sys.abiflags}", sysconfig.get_platform() + ("-other-libc" if is_other else ""))' 2>/dev/null
    }

    # Sets PYTHON, MINOR and HERE: a Python that the wheels fit, else with --with-pip any that is new enough.
    find_python() {
        PYTHON= OTHER= WHY=
        for name in python3 python3.14 python3.13 python3.12 python3.11; do
            has "$name" || continue
            code=0
            found=$(facts "$name") || code=$?
            [ "$code" != 2 ] || WHY=" $name lacks its module venv, ssl or zlib (on Debian: apt-get install python3-venv)."
            [ "$code" = 0 ] || continue
            MINOR=${found%% *} HERE=${found#* } OTHER=$name
            [ "$HERE" = "$PLATFORM" ] || [ "$WITH_PIP" = 1 ] || continue
            case ",$MINORS," in
            *",$MINOR,"*) PYTHON=$(command -v "$name") && return ;;
            esac
        done
        [ -n "$OTHER" ] || fail "windrow needs Python 3.11 or newer: install it (on Debian: apt-get install python3), then run the line again.$WHY"
        [ "$WITH_PIP" = 1 ] ||
            fail "this Master has wheels for CPython $MINORS on $PLATFORM, and here is CPython $MINOR on $HERE. Where pip reaches a package index, run the line again with \`sh -s -- --with-pip\` in place of \`sh\`: pip installs the packages then, checked by the same SHA-256 sums."
        PYTHON=$(command -v "$OTHER")
    }

    # --- making ---------------------------------------------------------------------------------------------------

    # Folders are written down before they are made, the innermost first, so that uninstalling knows what was here.
    make_folders() {
        if [ -e "$BIN/windrow" ] || [ -h "$BIN/windrow" ]; then
            is_ours || fail "$BIN/windrow is there already and is not of this script: move it away, then run the line again."
        fi
        [ ! -f "$DATA/made" ] || return 0
        [ -z "$(ls -A "$DATA" 2>/dev/null)" ] || fail "$DATA holds something else: move it away, then run the line again."
        for folder in "$BIN" "$CONFIG" "$STATE" "$DATA"; do
            while [ ! -d "$folder" ]; do
                printf '%s\n' "$folder" >>"$WORK/made"
                folder=$(dirname "$folder")
            done
        done
        FRESH=1
        mkdir -p "$BIN" "$DATA"
        cp "$WORK/made" "$DATA/made"
    }

    is_ours() {
        case $(readlink "$BIN/windrow") in
        "$DATA"/*) ;;
        *) return 1 ;;
        esac
    }

    # Beside what is in use, and in its place only when it has started.
    make_release() {
        TARGET=$DATA/$RELEASE-$MINOR
        [ ! -d "$TARGET" ] || {
            say "Release $RELEASE is installed already."
            return 0
        }
        STAGE=$(mktemp -d "$DATA/.new-XXXXXX")
        "$PYTHON" -I -m venv --without-pip "$STAGE" >"$WORK/said" 2>&1 || fail "$PYTHON made no environment: $(tail -n 1 "$WORK/said")"
        SITE=$("$STAGE/bin/python" -I -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
        mkdir "$WORK/wheels"
        say "Fetching release $RELEASE for CPython $MINOR from $URL"
        if [ "$WITH_PIP" = 1 ]; then
            get /cli/requirements.txt "$WORK/requirements.txt"
            "$PYTHON" -m pip --disable-pip-version-check install --quiet --require-hashes --no-deps --only-binary=:all: \
                --target "$SITE" -r "$WORK/requirements.txt" ||
                fail "pip could not install the packages (on Debian it is the package python3-pip)."
        fi
        get_wheels
        unpack
        "$PYTHON" -I -c '
import shlex, sys
print("#!/bin/sh\nexec " + shlex.quote(sys.argv[1]) + " -I -m windrow \"$@\"")' "$TARGET/bin/python" >"$STAGE/bin/windrow"
        chmod 755 "$STAGE/bin/windrow"
        "$STAGE/bin/python" -I -m windrow --version >/dev/null 2>"$WORK/said" ||
            fail "windrow of release $RELEASE does not start here: $(tail -n 1 "$WORK/said")"
        "$PYTHON" -I -c 'import os, sys; os.rename(*sys.argv[1:])' "$STAGE" "$TARGET" 2>/dev/null || [ -d "$TARGET" ]
    }

    get_wheels() {
        {
            read -r _
            while read -r minors sum name; do
                case $name in
                */* | *' '*) fail "what $URL lists is not a release of Windrow." ;;
                windrow*) ;;
                *) [ "$WITH_PIP" = 0 ] || continue ;;
                esac
                case ",$minors," in
                *",$MINOR,"*) ;;
                *) [ "$WITH_PIP" = 1 ] || continue ;;
                esac
                get "/cli/$name" "$WORK/wheels/$name"
                [ "$HTTP_STATUS" = 200 ] || fail "$name could not be fetched: the Master answered $HTTP_STATUS."
                printf '%s %s\n' "$sum" "$name" >>"$WORK/wanted"
            done
        } <"$WORK/files"
    }

    # A wheel is a zip file: no pip is needed, which Debian leaves out.
    unpack() {
        "$PYTHON" -I -c '
import hashlib, pathlib, sys, zipfile
for line in open(sys.argv[1], encoding="utf-8"):
    digest, name = line.split()
    path = pathlib.Path(sys.argv[2], name)
    if hashlib.sha256(path.read_bytes()).hexdigest() != digest:
        sys.exit(name)
    with zipfile.ZipFile(path) as packed:
        packed.extractall(sys.argv[3], [one for one in packed.namelist() if ".data/" not in one])' \
            "$WORK/wanted" "$WORK/wheels" "$SITE" 2>"$WORK/said" ||
            fail "$(tail -n 1 "$WORK/said") is not the file that the Master listed (its SHA-256 differs). Nothing of it was run."
    }

    use_release() {
        ln -s "$TARGET/bin/windrow" "$BIN/.windrow.$$"
        mv -f "$BIN/.windrow.$$" "$BIN/windrow"
        FINISHED=1 STAGE=
        get /api/v1/ca "$WORK/ca.pem"
        [ "$HTTP_STATUS" != 200 ] || mv -f "$WORK/ca.pem" "$DATA/ca.pem"
        printf '%s\n' "$URL" >"$DATA/url" # whose authority that is, for `windrow login`
        get /install-cli.sh "$WORK/script"
        [ "$HTTP_STATUS" != 200 ] || mv -f "$WORK/script" "$DATA/install-cli.sh"
        for old in "$DATA"/*-3.*; do
            [ "$old" = "$TARGET" ] || rm -rf "$old"
        done
        find "$DATA" -maxdepth 1 -name '.new-*' -mmin +60 -exec rm -rf {} +
        say "windrow is installed: $BIN/windrow. To remove it: sh $DATA/install-cli.sh --uninstall"
        case ":$PATH:" in
        *":$BIN:"*) ;;
        *) say "$BIN is not in your PATH. Add it, now and in ~/.profile: export PATH=\"$BIN:\$PATH\"" ;;
        esac
    }

    sign_in() {
        if [ -n "$LINK" ]; then
            terminal=/dev/null
            (: </dev/tty) 2>/dev/null && terminal=/dev/tty
            WINDROW_LINK=$LINK "$BIN/windrow" login <"$terminal" ||
                fail "windrow is installed, but you are not signed in. Try again: windrow login 'LINK'"
        elif [ ! -e "$CONFIG/config.json" ]; then
            say "Sign in: windrow login $URL"
        fi
    }

    # --- taking away ----------------------------------------------------------------------------------------------

    remove_folders() {
        folders=$(cat "$DATA/made" "$WORK/made" 2>/dev/null) || true
        rm -rf "$DATA"
        printf '%s\n' "$folders" | while read -r folder; do
            rmdir "$folder" 2>/dev/null || true
        done
    }

    uninstall() {
        [ -f "$DATA/made" ] || fail "Nothing of Windrow is installed in $DATA."
        if is_ours; then
            [ -h "$CONFIG/config.json" ] || [ ! -e "$CONFIG/config.json" ] || "$BIN/windrow" logout || true
            rm -f "$BIN/windrow"
        fi
        # A link there leads to a market of this machine, which another `windrow` uses.
        [ -h "$CONFIG/config.json" ] || rm -rf "$CONFIG" "$STATE"
        remove_folders
        say "windrow is gone."
    }

    install() {
        case $URL in
        https://?*) ;;
        *) fail "this script does not know its Master: give --url https://HOST:8443 and --pin sha256//KEY." ;;
        esac
        case $PIN in
        sha256//?*) ;;
        *) fail "--pin is the Master's key as sha256//...; copy the whole line again." ;;
        esac
        has curl || fail "curl is missing: install it (on Debian: apt-get install curl), then run the line again."
        WORK=$(mktemp -d "${TMPDIR:-/tmp}/windrow-cli.XXXXXX")
        get_list
        find_python
        make_folders
        make_release
        use_release
        sign_in
    }

    read_arguments "$@"
    find_folders
    trap leave EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    "$ACTION"
}

main "$@"
