#!/bin/sh
# Installs the peers of the benchmarks: Postfix, its milters and pgbench from Debian, and Haraka from npm into a cache
# outside the project.
set -eu
haraka_version=3.3.4
cache=${XDG_CACHE_HOME:-$HOME/.cache}/posthorn-bench
project=$(dirname -- "$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")")
PATH=$project/node_modules/.bin:$PATH

install_debian() { # PACKAGE FILE: installs PACKAGE if FILE is missing
  [ -e "$2" ] && return 0
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "missing: $1 (as root on Debian: apt-get install --no-install-recommends $1)" >&2
    return 0
  fi
  DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "$1"
}

install_debian postfix /usr/sbin/smtp-source
install_debian opendkim /usr/sbin/opendkim
install_debian opendmarc /usr/sbin/opendmarc
install_debian postfix-policyd-spf-python /usr/bin/policyd-spf
install_debian postgresql-contrib /usr/bin/pgbench

installed=$(node -p 'require(process.argv[1]).version' "$cache/haraka/node_modules/Haraka/package.json" 2>/dev/null || true)
if [ "$installed" != "$haraka_version" ]; then
  mkdir -p "$cache/haraka"
  # The newest libmime needs releases that some registries lack. No benchmark uses libmime.
  cat >"$cache/haraka/package.json" <<JSON
{
  "private": true,
  "dependencies": { "Haraka": "$haraka_version" },
  "overrides": { "libmime": "5.4.1" }
}
JSON
  npm install --prefix "$cache/haraka" --ignore-scripts --omit=dev
fi
# An optional dependency of Haraka, which signs its outgoing mail.
if [ ! -e "$cache/haraka/node_modules/haraka-plugin-dkim/package.json" ]; then
  echo "missing: haraka-plugin-dkim, without which no Haraka signs" >&2
fi
echo "peers are installed; Haraka $haraka_version lies in $cache/haraka"
