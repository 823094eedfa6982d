#!/bin/sh
# Makes deploy/secrets/ for compose.yaml: passwords nobody chose, in files and nowhere else. Never overwrites one.
set -eu
cd "$(dirname "$0")/.."
umask 077
mkdir -p secrets
# The folder keeps strangers out; the files are open inside, since each container reads them as a user of its own.
chmod 0700 secrets

password() { od -An -N 24 -t x1 /dev/urandom | tr -d ' \n'; }

put() {
	[ -e "secrets/$1" ] && return
	printf '%s\n' "$2" > "secrets/$1"
	chmod 0644 "secrets/$1"
}

if [ ! -e secrets/postgres_password ]; then
	found=$(password)
	put postgres_password "$found"
	rm -f secrets/database_url
	put database_url "postgresql+psycopg://windrow:$found@postgres:5432/windrow"
fi
if [ ! -e secrets/valkey_conf ]; then
	found=$(password)
	put valkey_conf "requirepass $found"
	rm -f secrets/redis_url
	put redis_url "redis://:$found@valkey:6379/0"
fi
