#!/bin/sh
# An Access in a container: joins at its first start, then relays. $1: its name on the network, $2: the port agents dial,
# $3: host:port that renters dial for tunnels. $4: the port that browsers use for services.
set -eu
if [ ! -e "$WINDROW_ACCESS_DIR/identity/identity.json" ]; then
	windrow-access join https://master:8443 --token-file "/var/lib/windrow-tokens/$1" --name "$1"
fi
exec windrow-access run --advertise "$1:$2" --tunnel-port 7643 --tunnel-advertise "$3" \
	--service-port 7743 --service-advertise "$4" --trunk master:7444 --trunk standby:7444
