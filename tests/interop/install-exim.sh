#!/bin/sh
# Unpacks Debian's Exim into a cache folder, because its package conflicts with Postfix, and prints the folder. Adds two
# libraries that the machine may lack: libidn12, and nss_wrapper, which provides the user that Exim looks up.
set -eu
case $(id -u) in 0) cache=/var/cache ;; *) cache=${XDG_CACHE_HOME:-$HOME/.cache} ;; esac
folder=${POSTHORN_EXIM:-$cache/posthorn-tests/exim}
if [ ! -x "$folder/usr/sbin/exim4" ]; then
  mkdir -p "$(dirname "$folder")"
  work=$(mktemp -d "$(dirname "$folder")/exim.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  cd "$work"
  apt-get download exim4-daemon-light exim4-base exim4-config libidn12 libnss-wrapper >&2
  for package in *.deb; do dpkg -x "$package" root; done
  # Exim must run as the user of the tests, never with other rights.
  chmod u-s,go+rx root root/usr/sbin/exim4
  mv -T root "$folder" 2>/dev/null || [ -x "$folder/usr/sbin/exim4" ]
fi
echo "$folder"
