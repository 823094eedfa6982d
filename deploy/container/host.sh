#!/bin/sh
# A GPU host's Agent in a container: joins at its first start, then serves containers of the host's own daemon.
# $1: the Master, https://host:port; $2: what to call this host.
set -eu
if [ ! -e /var/lib/windrow-agent/identity/identity.json ]; then
	windrow-agent join "$1" --data-dir /var/lib/windrow-agent --token-file /run/secrets/join_token --name "$2"
fi
exec windrow-agent run --data-dir /var/lib/windrow-agent --runtimes docker
