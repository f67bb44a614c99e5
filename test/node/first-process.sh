#!/bin/bash
# The first process of a node, in namespaces of its own (mount, net, pid, uts, ipc): prepares these, says `up`, and then
# only reaps orphans. When it ends, so does everything in the node. Argument: a directory for files.
set -e
directory=$1
mount --make-rshared /

# The kubelet, containerd and the network plugins have fixed paths: these do not appear on the machine.
mount -t tmpfs tmpfs /run
for path in /var/lib /var/log; do
  mkdir -p "/run/upper$path" "/run/work$path"
  mount -t overlay overlay -o "lowerdir=$path,upperdir=/run/upper$path,workdir=/run/work$path" "$path"
done
mkdir -p /opt /run/lock

# The kubelet sets these for the whole machine: it is shown that they are as it wants.
sysctl() {
  mkdir -p "$directory/sysctl"
  echo "$2" >"$directory/sysctl/${1//\//-}"
  mount --bind "$directory/sysctl/${1//\//-}" "/proc/sys/$1"
}
sysctl vm/overcommit_memory 1
sysctl vm/panic_on_oom 0
sysctl kernel/panic 10
sysctl kernel/panic_on_oops 1
sysctl kernel/keys/root_maxkeys 1000000
sysctl kernel/keys/root_maxbytes 25000000

hostname node
ip link set lo up
ip link add node0 type bridge
ip address add 172.30.0.1/24 dev node0
ip address add fd00:172:30::1/64 dev node0 nodad
ip link set node0 up
# Nobody is there, but addresses of Services need a route.
ip route add default via 172.30.0.254
ip -6 route add default via fd00:172:30::fe dev node0
echo 1 >/proc/sys/net/ipv4/ip_forward
echo 1 >/proc/sys/net/ipv6/conf/all/forwarding

echo up
trap : TERM
while :; do
  sleep infinity &
  wait $! || true
done
