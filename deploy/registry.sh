#!/bin/sh
# Writes the entry for ToolHive's registry as it is published: registry.sh DIRECTORY DIGEST, where DIGEST is that of the
# image that was pushed (sha256:…). Without one nothing is written: thv would pull whatever has the name.
set -eu
out=$1 digest=${2-}
if [ ${#digest} != 71 ] || ! printf '%s\n' "$digest" | grep -Eqx 'sha256:[0-9a-f]{64}'; then
	echo "registry.sh: \"$digest\" is not the digest of an image: give sha256: and 64 hexadecimal digits, as docker push prints them" >&2
	exit 1
fi
mkdir -p "$out"
for file in server.json registry.json; do
	sed "s/sha256:DIGEST/$digest/g" "$(dirname "$0")/toolhive/$file" >"$out/$file"
	if ! grep -q "$digest" "$out/$file" || grep -q DIGEST "$out/$file"; then
		echo "registry.sh: $file has no sha256:DIGEST to fill, or another placeholder" >&2
		rm -f "$out/server.json" "$out/registry.json"
		exit 1
	fi
done
