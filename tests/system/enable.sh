#!/bin/sh
# Installs what the system tests need (Debian, Ubuntu) and keeps every service off on this
# machine: nothing that a package brings is started, now or at the next boot. Also fetches the
# packages that bare guests install for themselves, who have no network. Run as root.
#   sudo tests/system/enable.sh
set -eu

# Guests with a kernel of their own and NFS; sshd, which tests start for themselves; a compiler
# for the library that stands in for a GPU driver; a Slurm cluster, whose daemons tests start; a
# browser for the web page, and a web server that stands before it.
packages="user-mode-linux kmod e2fsprogs iproute2 util-linux nfs-kernel-server nfs-common
  openssh-server openssh-client openssh-sftp-server bubblewrap gcc libc6-dev
  slurmctld slurmd slurm-client munge chromium chromium-driver nginx"
# What a bare guest lacks; what else they depend on, it has as this machine has it.
fetched="nfs-kernel-server nfs-common rpcbind keyutils libnfsidmap1"
repository=/var/cache/bequeath-tests/debs

if [ "$(id -u)" != 0 ]; then
  echo "enable.sh: run it as root: sudo $0" >&2
  exit 1
fi
if ! command -v apt-get >/dev/null; then
  echo "enable.sh: knows Debian and Ubuntu only; install by hand:" $packages >&2
  exit 1
fi

version() {
  dpkg-query -W -f '${db:Status-Status} ${Version}' "$1" 2>/dev/null | sed -n 's/^installed //p'
}

missing=""
for package in $packages; do
  [ -n "$(version "$package")" ] || missing="$missing $package"
done
stale=""
for package in $fetched; do
  grep -qxF "$package $(version "$package")" "$repository/fetched" 2>/dev/null || stale=yes
done

# The control plane of Kubernetes, which no distribution has: built once, in minutes, of Debian's own
# source package. Tests that need it are left out, and say so, where it cannot be built.
build_kubernetes() {
  "${0%/*}/../support/kubernetes/rig/kube-bins" /var/cache/bequeath-tests/kubernetes \
    || echo "enable.sh: no control plane of Kubernetes could be built; its tests are left out" >&2
}
if [ -z "$missing$stale" ]; then
  build_kubernetes
  echo "enable.sh: everything is there; no service was started"
  exit 0
fi

# Debian asks this file whether a package may start its service. Ours says no to all, only
# while we install, and one that was there before comes back afterwards.
policy=/usr/sbin/policy-rc.d
kept=""
if [ -e "$policy" ]; then
  kept=$(mktemp "$policy.XXXXXX")
  mv "$policy" "$kept"
fi
restore() {
  rm -f "$policy"
  [ -z "$kept" ] || mv "$kept" "$policy"
}
trap restore EXIT INT TERM
printf '#!/bin/sh\nexit 101\n' >"$policy"
chmod 755 "$policy"

# What would be started at boot is told apart by what was there before.
at_boot() {
  for entry in /etc/systemd/system/*.wants/* /etc/rc[2S].d/S*; do
    [ -L "$entry" ] && echo "$entry"
  done
  return 0
}

export DEBIAN_FRONTEND=noninteractive
apt-get update -q
if [ -n "$missing" ]; then
  before=$(at_boot)
  # shellcheck disable=SC2086 - a list of words
  apt-get install -q -y --no-install-recommends $missing
  at_boot | while read -r entry; do
    printf '%s\n' "$before" | grep -qxF "$entry" && continue
    name=${entry##*/}
    case $name in
      S[0-9][0-9]*) update-rc.d "${name#S??}" disable >/dev/null 2>&1 || true ;;
      *) systemctl disable "$name" >/dev/null 2>&1 || rm -f "$entry" ;;
    esac
    [ ! -L "$entry" ] || { echo "enable.sh: cannot keep $entry from starting at boot" >&2; exit 1; }
  done
  echo "enable.sh: installed$missing; no service was started or left to start at boot"
fi

# A repository of real packages, with a plain index, as apt reads it from a folder.
mkdir -p "$repository"
rm -f "$repository"/*
chmod 755 "${repository%/*}" "$repository"
(
  cd "$repository"
  for package in $fetched; do
    # As it is here, so that it fits the rest; a newer one if the archive has no other any more.
    # Nobody but root may write there.
    apt-get download -q -o APT::Sandbox::User=root "$package=$(version "$package")" \
      || apt-get download -q -o APT::Sandbox::User=root "$package"
  done
  for deb in *.deb; do
    dpkg-deb -f "$deb"
    printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' \
      "$deb" "$(stat -c %s "$deb")" "$(sha256sum "$deb" | cut -d' ' -f1)"
  done >Packages
  for package in $fetched; do
    echo "$package $(version "$package")"
  done >fetched
)
echo "enable.sh: $(ls "$repository" | grep -c '\.deb$') packages for bare guests are in $repository"
build_kubernetes
