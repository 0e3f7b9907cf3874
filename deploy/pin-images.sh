#!/bin/sh
# Pin the base images of Dockerfile and docker-compose.yml by digest, as the registry tells it now.
#
#     deploy/pin-images.sh
#
# Changes nothing unless every image has an answer that is a digest.
set -eu
cd "$(dirname "$0")/.."
files="Dockerfile docker-compose.yml"
script=$(mktemp)
trap 'rm -f "$script"' EXIT

# shellcheck disable=SC2086 # two names
images=$(sed -nE 's/^FROM ([^ @]+:[^ @]+).*/\1/p; s/^ *image: ([^ @]+:[^ @]+).*/\1/p' $files | sort -u)
for image in $images; do
    digest=$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$image")
    if ! printf '%s\n' "$digest" | grep -qxE 'sha256:[0-9a-f]{64}'; then
        echo "no digest for $image: $digest" >&2
        exit 1
    fi
    name=$(printf '%s' "$image" | sed 's/[.]/\\./g')
    printf 's#^(FROM |  *image: )%s(@sha256:[0-9a-f]{64})?( |$)#\\1%s@%s\\3#\n' "$name" "$image" "$digest" >>"$script"
    echo "$image@$digest"
done
for file in $files; do
    sed -E -i.unpinned -f "$script" "$file"
    rm "$file.unpinned"
done
