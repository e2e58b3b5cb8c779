#!/usr/bin/env bash
# Makes the libraries of the console in the folder above, or in the folder that is given, from the packages of package-lock.json.
# The same packages and the same esbuild (tools.mod) make the same bytes.
set -euo pipefail
cd "$(dirname "$0")"
to=${1:-..}
npm ci --ignore-scripts --no-audit --no-fund --silent
bundle() {
	go tool -modfile=../../../tools.mod esbuild "$1" --bundle --minify --format=esm --target=es2022 --charset=utf8 --legal-comments=none --log-level=warning --outfile="$to/$2"
}
bundle editor.js editor.js
bundle plot.js plot.js
cp node_modules/htmx.org/dist/htmx.min.js "$to/htmx.min.js"
cp node_modules/uplot/dist/uPlot.min.css "$to/plot.css"
{
	printf 'The pages of mcsh contain these packages.\n'
	jq -r '.packages | to_entries[] | select(.key != "") | [.key, .value.version] | @tsv' package-lock.json | sort | while IFS=$'\t' read -r path version; do
		printf '\n%s %s\n\n' "${path#node_modules/}" "$version"
		cat "$path"/LICENSE*
	done
} >"$to/licences.txt"
