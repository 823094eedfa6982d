#!/bin/sh
# An Agent in a container: joins at its first start, then serves. $1: what to call this host.
set -eu
if [ ! -e /var/lib/windrow-agent/identity/identity.json ]; then
	windrow-agent join https://master:8443 --data-dir /var/lib/windrow-agent \
		--token-file "/var/lib/windrow-tokens/$1" --name "$1"
fi
exec windrow-agent run --data-dir /var/lib/windrow-agent --runtimes process
