#!/usr/bin/env bash
# Makes the base of the image on a machine that reaches a Debian mirror and no image registry: the Debian or Ubuntu
# release of this machine, small, with the packages that the Dockerfile wants, imported into the container engine.
#
#   deploy/base-image.sh [NAME]        NAME is mcsh-base:latest if it is not given
#
# The mirror is the one that apt uses here. It needs root, debootstrap and an engine that answers docker.
# Updates of the release that its mirror keeps apart (security) are not in it: use a published base where you can.
set -euo pipefail
cd "$(dirname "$0")"

readonly name=${1:-mcsh-base:latest}

fail() {
	printf 'base-image.sh: %s\n' "$1" >&2
	[ "$#" -lt 2 ] || printf '  %s\n' "$2" >&2
	exit 1
}

[ "$#" -le 1 ] || fail 'too many arguments' 'usage: deploy/base-image.sh [NAME]'
[ "$(id -u)" = 0 ] || fail 'debootstrap needs root' "run it with sudo: sudo $0 $name"
command -v debootstrap >/dev/null || fail 'debootstrap is not installed' 'apt-get install debootstrap'
command -v apt-get >/dev/null || fail 'this is no Debian or Ubuntu: apt is missing' 'use a base image from elsewhere'
command -v docker >/dev/null || fail 'the program docker is not installed' 'apt-get install docker.io (docker-cli where it is apart)'
docker version >/dev/null 2>&1 || fail 'no container engine answers' "start one, such as with dockerd, or set DOCKER_HOST; it says:
$(docker version 2>&1 >/dev/null | sed 's/^/    /')"

release=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
[ -n "$release" ] || fail '/etc/os-release names no VERSION_CODENAME' 'use a base image from elsewhere'

# The mirror and the components of this release, as apt knows them.
targets=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages')
mirror=$(awk -v r="$release" '$2 == r { print $1; exit }' <<<"$targets")
[ -n "$mirror" ] || fail "apt has no source for $release" 'look at /etc/apt/sources.list and /etc/apt/sources.list.d'
components=$(awk -v m="$mirror" -v r="$release" '$1 == m && $2 == r { print $3 }' <<<"$targets" | sort -u | paste -sd, -)
for scheme in http https; do
	variable=${scheme}_proxy
	proxy=$(apt-config dump --format '%v%n' "Acquire::$scheme::Proxy" | head -n 1)
	if [ -n "$proxy" ] && [ "$proxy" != DIRECT ] && [ -z "${!variable:-}" ]; then export "$variable=$proxy"; fi
done

packages=$(sed -n 's/^ARG PACKAGES="\(.*\)"$/\1/p' Dockerfile)
[ -n "$packages" ] || fail 'the Dockerfile has no line ARG PACKAGES="..."'

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
# For debootstrap the directory must be one that everybody may enter.
mkdir -m 755 "$root"
chmod 755 "$work"
printf 'making %s of %s (%s)\n' "$name" "$release" "$components"
if ! debootstrap --variant=minbase --components="$components" --include="${packages// /,}" "$release" "$root" "$mirror" >"$work/log" 2>&1; then
	[ ! -e "$root/debootstrap/debootstrap.log" ] || tail -n 20 "$root/debootstrap/debootstrap.log" >&2
	tail -n 20 "$work/log" >&2
	fail "debootstrap failed with the mirror $mirror" 'its last words are above'
fi
# What no program of the image reads.
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/var/log/* "$root"/usr/share/{doc,info,locale,man} "$root"/debootstrap
tar -C "$root" --numeric-owner -c . | docker import - "$name" >/dev/null
printf 'made %s\n' "$name"
