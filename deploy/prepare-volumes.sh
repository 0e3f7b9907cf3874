#!/bin/bash
# Gives FoundationDB's user the volumes it writes to, and writes the cluster file unless there is one.
#
# Run as root by docker-compose.yml, before the server, which is not root; a new named volume belongs to root.
# Safe to run again: a cluster file that is there is kept, because FoundationDB rewrites it when coordinators move.
set -euo pipefail

: "${FDB_CLUSTER_FILE:?where the cluster file is kept}"
: "${FDB_COORDINATOR:?the ADDRESS:PORT of the coordinator}"
: "${FDB_OWNER:?the UID:GID that the server runs as}"
folder=$(dirname "$FDB_CLUSTER_FILE")

if [ ! -s "$FDB_CLUSTER_FILE" ]; then
    chown "$(id -u)" "$folder" # root without capabilities writes only to what is its own
    draft=$FDB_CLUSTER_FILE.draft
    echo "pqadmin:pqadmin@$FDB_COORDINATOR" >"$draft"
    chmod 0644 "$draft" # the site reads it as another user
    chown "$FDB_OWNER" "$draft"
    mv "$draft" "$FDB_CLUSTER_FILE"
    echo "Wrote $FDB_CLUSTER_FILE."
fi
chown "$FDB_OWNER" "$folder" "$@"
