#!/bin/sh
# Programs that some tests need and pip cannot bring: installed from Debian where this may be done, otherwise named.
# Never fails: a test that misses its program is left out and says so.
set -u

PATH="$PATH:/usr/sbin:/sbin"
missing=""
browser=chromium-headless-shell
need() { # need PACKAGE WHAT-FOR PROGRAM…: any one of the programs is enough
    package=$1 use=$2
    shift 2
    for program in "$@"; do
        command -v "$program" >/dev/null 2>&1 && return
    done
    missing="$missing $package"
    uses="${uses:-}  $package: $use
"
}

look() {
    missing="" uses=""
    need "$browser" "the control panel in a browser (tests/panel)" chromium-headless-shell chromium chromium-browser google-chrome
    need mumble-server "the Mumble bot against a real server (tests/mumble)" mumble-server murmurd
    need flite "speech for the Mumble bot to hear (tests/mumble)" flite
    need systemd "the unit files of the docs (tests/project)" systemd-analyze
    need nodejs "the TypeScript client (tests/server)" node
    need pgbouncer "PostgreSQL behind a pooler (tests/store, tests/upkeep)" pgbouncer
    need openssl "certificates for the Mumble bot (tests/mumble)" openssl
}

look
[ -z "$missing" ] && exit 0

if [ "$(id -u)" -ne 0 ]; then
    why="only root may install packages; as root: apt-get install$missing"
elif ! command -v apt-get >/dev/null 2>&1; then
    why="there is no apt-get here; install them in this system's own way"
else
    echo "Installing from Debian:$missing"
    log=$(mktemp)
    export DEBIAN_FRONTEND=noninteractive
    apt-get update >"$log" 2>&1 || { echo "apt-get failed:"; tail -n 5 "$log"; }
    # Only Debian has the browser without a window as a package of its own.
    apt-cache show $browser >/dev/null 2>&1 || { browser=chromium; look; }
    # shellcheck disable=SC2086 # one word for each package
    apt-get install --yes --no-install-recommends $missing >"$log" 2>&1 || { echo "apt-get failed:"; tail -n 5 "$log"; }
    rm -f "$log"
    look
    [ -z "$missing" ] && exit 0
    why="they could not be installed"
fi
printf 'Left out of the tests, because %s:\n%s' "$why" "$uses"
