#!/bin/bash
# Creates the database of a new cluster (`configure new single ssd`) and waits until it is available.
#
# Ends with 0 when the database is available, whoever created it and whatever was configured since: safe to run at
# every start. Ends with 1 when it is not within CONFIGURE_WITHIN seconds (default 120). A database that is there is
# never changed: FoundationDB itself refuses `new` for one, even while it is down.
set -euo pipefail

: "${FDB_CLUSTER_FILE:?the cluster file of the cluster to configure}"
within=${CONFIGURE_WITHIN:-120}
deadline=$((SECONDS + within))

# What fdbcli says to one command within so many seconds; it ends with 0 even where the database is unavailable.
ask() {
    fdbcli -C "$FDB_CLUSTER_FILE" --timeout "$1" --exec "$2" 2>&1 || true
}

while :; do
    status=$(ask 10 "status minimal")
    if [[ $status == *"The database is available"* ]]; then
        echo "The database is available."
        exit 0
    fi
    if ((SECONDS >= deadline)); then
        echo "The database is not available after $within s. FoundationDB says: ${status:-nothing}" >&2
        exit 1
    fi
    answer=$(ask 20 "configure new single ssd")
    case $answer in
        *"Database created"*) echo "Created the database." ;;
        *"Database already exists"*) echo "The database exists and is not available yet." ;;
        *) echo "The cluster does not answer yet: ${answer:-nothing}" ;;
    esac
    sleep 1
done
