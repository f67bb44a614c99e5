#!/bin/bash
# with-libraries.sh PACKAGES FILE COMMAND...: runs a command that finds the programs and libraries of unpacked packages,
# also where it starts others without its environment. For a mount namespace of its own. FILE becomes the loader's cache.
set -e
packages=$1 cache=$2
shift 2
PATH=$packages/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
{
  readlink -f "$packages/lib"
  grep -h '^/' /etc/ld.so.conf.d/*.conf
} >"$cache.conf"
ldconfig -X -f "$cache.conf" -C "$cache"
mount --bind "$cache" /etc/ld.so.cache
exec "$@"
