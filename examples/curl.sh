#!/usr/bin/env bash
# Push, pop, lease, acknowledge and follow a queue with curl: bash examples/curl.sh QUEUE
set -euo pipefail

queue=$1 api=$PQADMIN_SERVER/api/v1

# A refusal ends the script; --retry sends a request again after a lost connection, 429 or 503.
call() {
  curl --silent --show-error --fail-with-body --retry 5 --retry-connrefused \
    --header "Authorization: Bearer $PQADMIN_TOKEN" --header "Content-Type: application/json" "$@"
  echo
}

# The first text behind a name in an answer; where there is jq: jq -r .items[0].lease
text_of() { sed -E "s/.*\"$1\": ?\"([^\"]*)\".*/\1/"; }

echo "push, and the same again under one key: one item"
key=$(date +%s)-$$
for _ in 1 2; do
  call --header "Idempotency-Key: $key" --data '{"value": "resize image 7", "priority": 5}' "$api/queues/$queue/items"
done

echo "pop: the item is gone with its answer, which the key gives again should it be lost"
call --request POST --header "Idempotency-Key: pop-$key" "$api/queues/$queue/pop?end=min&wait=10"

echo "lease and acknowledge: without the acknowledgement the item is ready again after 30 seconds"
call --data '{"value": "resize image 8", "priority": 5}' "$api/queues/$queue/items"
lease=$(call --request POST "$api/queues/$queue/lease?seconds=30&wait=10" | tee /dev/stderr | text_of lease)
call --data "{\"leases\": [\"$lease\"]}" "$api/queues/$queue/ack"

echo "events: the first state of the queue; changes would follow"
curl --silent --no-buffer --header "Authorization: Bearer $PQADMIN_TOKEN" "$api/events?queues=$queue" |
  sed '/^event: queue/,/^data: /!d; /^data: /q' || true # curl minds that the rest is not read
