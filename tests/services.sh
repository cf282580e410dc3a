#!/usr/bin/env bash
# Debian's servers for the integration tests: MariaDB, PgBouncer, RabbitMQ, Redis, Chromium, and Prometheus for its promtool; and wrk, with which benchmarks
# ask. Tests start their own copies on free ports, so nothing is started or enabled here. Quick when all is there; SAMEAS_SKIP_SERVICES=1 skips it.
# Where it cannot install it says so, and fails only where CI=true.
set -euo pipefail
exec </dev/null

policy=/usr/sbin/policy-rc.d
saved=$policy.before-sameas
absent=$policy.absent-before-sameas

cannot() {
  echo "services: $1" >&2
  echo "services: install ${missing[*]} yourself, or the tests and benchmarks that need them are skipped" >&2
  [ "${CI:-}" = true ] && exit 1
  exit 0
}

# Also repairs what an interrupted run left behind.
put_policy_back() {
  if [ -e "$saved" ]; then
    mv -f "$saved" "$policy"
  elif [ -e "$absent" ]; then
    rm -f "$policy" "$absent"
  fi
}

forbid_starting_services() {
  put_policy_back
  if [ -e "$policy" ]; then cp -p "$policy" "$saved"; else : >"$absent"; fi
  trap put_policy_back EXIT
  trap 'exit 130' INT TERM HUP
  # Written whole and renamed: another package manager may read it at any moment.
  printf '#!/bin/sh\nexit 101\n' >"$policy.new"
  chmod 755 "$policy.new"
  mv -f "$policy.new" "$policy"
}

# Debian keeps daemons in /usr/sbin, which is not on everybody's path.
PATH=$PATH:/usr/sbin:/usr/local/sbin:/sbin

find_missing() {
  missing=()
  command -v mariadbd >/dev/null || missing+=(mariadb-server)
  command -v pgbouncer >/dev/null || missing+=(pgbouncer)
  command -v rabbitmq-server >/dev/null || missing+=(rabbitmq-server)
  command -v redis-server >/dev/null || missing+=(redis-server)
  command -v chromium >/dev/null || missing+=(chromium)
  command -v promtool >/dev/null || missing+=(prometheus)
  command -v wrk >/dev/null || missing+=(wrk)
}

if [ "${SAMEAS_SKIP_SERVICES:-}" = 1 ]; then
  echo "services: skipped (SAMEAS_SKIP_SERVICES=1)"
  exit 0
fi
find_missing
if [ ${#missing[@]} -eq 0 ]; then
  echo "services: MariaDB, PgBouncer, RabbitMQ, Redis, Chromium, promtool and wrk are installed"
  exit 0
fi
command -v apt-get >/dev/null || cannot "this is not Debian or Ubuntu: there is no apt-get"
[ "$(id -u)" -eq 0 ] || cannot "installing needs root: run it again with sudo"

# One installer at a time: two would each save the other's policy as the original.
if command -v flock >/dev/null; then
  exec 9>/run/lock/sameas-services.lock
  flock -w 600 9 || cannot "another run has been installing for ten minutes"
  find_missing
fi
[ ${#missing[@]} -eq 0 ] && exit 0

forbid_starting_services
export DEBIAN_FRONTEND=noninteractive
apt=(apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confold)
log=$(mktemp)
wanted=("${missing[@]}")
echo "services: installing ${wanted[*]}"
if ! { "${apt[@]}" update && "${apt[@]}" install --no-install-recommends "${wanted[@]}"; } >"$log" 2>&1 9>&-; then
  tail -n 40 "$log" >&2
  rm -f "$log"
  cannot "apt-get failed; its last lines are above"
fi
rm -f "$log"
# A package enables its unit even when it may not start it; these are for tests only.
if command -v systemctl >/dev/null; then
  for package in "${wanted[@]}"; do
    systemctl disable "${package/mariadb-server/mariadb}" >/dev/null 2>&1 || true
  done
fi
find_missing
[ ${#missing[@]} -eq 0 ] || cannot "apt-get succeeded, but ${missing[*]} did not bring its program"
echo "services: installed ${wanted[*]}; none was started"
