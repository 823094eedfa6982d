#!/bin/sh
# The same image without a registry, from Debian's packages alone: as root, with debootstrap and docker (or podman).
#   sh deploy/images/box/build.sh [NAME [SUITE [MIRROR]]]
set -eu
name=${1:-box}
suite=${2:-bookworm}
engine=$(command -v docker || command -v podman)
packages=openssh-server,openssh-sftp-server,jupyter-notebook,python3-ipykernel,python3-venv,ca-certificates,git
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
debootstrap --variant=minbase --include="$packages" "$suite" "$root" ${3:+"$3"}
rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/archives/*.deb "$root"/etc/ssh/ssh_host_*
chroot "$root" useradd --uid 1000 --home-dir /workspace --shell /bin/bash box
mkdir -p "$root/workspace"
chown 1000:1000 "$root/workspace"
chmod 1777 "$root/tmp"
tar -C "$root" --exclude=./proc/* --exclude=./sys/* --exclude=./dev/* -c . |
  "$engine" import -c "USER box" -c "WORKDIR /workspace" -c "ENV LANG=C.UTF-8" - "$name"
