#!/bin/bash
# programs.sh DIRECTORY PROGRAM...: copies programs of Debian's packages, for an image that begins with cc of distroless:
# with the libraries which that does not have, and with the status and the copyright of their packages, so that scanners
# and an SBOM know of them.
set -euo pipefail
directory=$1
shift

# Packages name their files with or without /usr; on disk, /lib leads to /usr/lib.
package_of() {
  local path=${1#/usr}
  { dpkg-query --search "/usr$path" || dpkg-query --search "$path"; } 2>/dev/null | sed '1!d; s/[:,].*//'
}

packages=()
for program in "$@"; do
  path=$(command -v "$program")
  install -D "$path" "$directory/usr/local/bin/$program"
  packages+=("$(package_of "$(readlink -f "$path")")")
  for library in $(ldd "$path" | awk '$2 == "=>" { print $3 }'); do
    package=$(package_of "$library")
    case $package in
    libc6 | libgcc-s1 | libstdc++6) ;;
    *)
      real=$(readlink -f "$library")
      install -D --mode=644 "$real" "$directory/${real%/*}/${library##*/}"
      packages+=("$package")
      ;;
    esac
  done
done

for package in $(printf '%s\n' "${packages[@]}" | sort -u); do
  mkdir -p "$directory/var/lib/dpkg/status.d"
  dpkg-query --status "$package" >"$directory/var/lib/dpkg/status.d/$package"
  copyright=usr/share/doc/$package/copyright
  [ ! -e "/$copyright" ] || install -D --mode=644 "/$copyright" "$directory/$copyright"
done
