#!/bin/bash
# fetch.sh DIRECTORY: downloads the packages of packages.txt and unpacks them there. Installs nothing and starts nothing.
# `bin` then has all their programs, `lib` their libraries. apt verifies the packages; versions are the distribution's.
set -e -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$1"
mkdir debs

options=()
if [ -z "$(apt-cache madison containerd)" ]; then
  # A machine whose package lists were removed to save space, such as a container.
  mkdir -p lists/partial
  options+=(-o "Dir::State::lists=$PWD/lists")
  apt-get --quiet=2 "${options[@]}" -o APT::Update::Error-Mode=any update
fi

apt-cache "${options[@]}" pkgnames >names.txt
packages=()
while read -r names; do
  for name in ${names//|/ }; do
    grep -qxF "$name" names.txt || continue
    packages+=("$name")
    continue 2
  done
  echo "no package $names: is this Debian, or based on it?" >&2
  exit 1
done < <(grep -v '^#' "$here/packages.txt")

# As root, apt would give up its rights, and then find that the directory is not its own.
(cd debs && apt-get --quiet=2 "${options[@]}" -o APT::Sandbox::User=root download "${packages[@]}" >/dev/null)
for deb in debs/*.deb; do dpkg-deb --extract "$deb" .; done
rm -rf debs lists names.txt

# Older packages still have /bin, /sbin and /lib beside /usr.
for old in bin sbin lib; do
  [ -d "$old" ] || continue
  mkdir -p "usr/$old"
  cp -a "$old/." "usr/$old/"
  rm -r "$old"
done
mkdir bin
for program in usr/bin/* usr/sbin/*; do ln -sf "../$program" bin/; done
ln -s usr/lib/*-linux-gnu* lib
