#!/bin/sh
# Installs what the system tests need (Debian, Ubuntu) and keeps every service off on this
# machine: nothing that a package brings is started, now or at the next boot. Run as root.
#   sudo tests/system/enable.sh
set -eu

packages="user-mode-linux kmod e2fsprogs iproute2 util-linux nfs-kernel-server nfs-common"

if [ "$(id -u)" != 0 ]; then
  echo "enable.sh: run it as root: sudo $0" >&2
  exit 1
fi
if ! command -v apt-get >/dev/null; then
  echo "enable.sh: knows Debian and Ubuntu only; install by hand: $packages" >&2
  exit 1
fi

missing=""
for package in $packages; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' \
    || missing="$missing $package"
done
[ -z "$missing" ] && { echo "enable.sh: everything is there"; exit 0; }

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
before=$(ls /etc/systemd/system/*.wants /etc/rc2.d 2>/dev/null | sort || true)
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
# shellcheck disable=SC2086 - a list of words
apt-get install -q -y --no-install-recommends $missing
ls /etc/systemd/system/*.wants /etc/rc2.d 2>/dev/null | sort | while read -r entry; do
  printf '%s\n' "$before" | grep -qxF "$entry" && continue
  case $entry in
    *.service | *.socket) systemctl disable "$entry" >/dev/null 2>&1 || true ;;
    S[0-9][0-9]*) update-rc.d "${entry#S??}" disable >/dev/null 2>&1 || true ;;
  esac
done
echo "enable.sh: installed$missing; no service was started or left to start at boot"
