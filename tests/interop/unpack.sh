#!/bin/sh
# Unpacks a mail server of Debian into a cache folder, because its package conflicts with Postfix, and prints the folder.
# Usage: unpack.sh exim|opensmtpd
set -eu
name=$1
case $(id -u) in 0) cache=/var/cache ;; *) cache=${XDG_CACHE_HOME:-$HOME/.cache} ;; esac
folder=$cache/posthorn-tests/$name

# Runs apt-get with Debian's backports alone, from the mirror that this machine uses.
apt_backports() {
  release=$(. /etc/os-release && echo "$VERSION_CODENAME")
  mirror=$(apt-get indextargets --format '$(REPO_URI)' "Codename: $release" | sort -u | head -1)
  mkdir -p lists/partial
  echo "deb $mirror $release-backports main" >backports.list
  apt-get -o Dir::Etc::sourcelist="$PWD/backports.list" -o Dir::Etc::sourceparts=- \
    -o Dir::State::lists="$PWD/lists" "$@" >&2
}

case $name in
  exim) program=usr/sbin/exim4 ;;
  opensmtpd) program=usr/sbin/smtpd ;;
  *) exit 2 ;;
esac
if [ ! -x "$folder/$program" ]; then
  mkdir -p "$(dirname "$folder")"
  work=$(mktemp -d "$(dirname "$folder")/$name.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  cd "$work"
  if [ "$name" = exim ]; then
    # The machine may lack two libraries: libidn12, and nss_wrapper, which provides the user that Exim looks up.
    apt-get download exim4-daemon-light exim4-base exim4-config libidn12 libnss-wrapper >&2
  else
    # QUIRK: no TLS handshake of OpenSMTPD 6.8 succeeds with OpenSSL 3 (OpenSMTPD issue 1239).
    apt_backports update
    apt_backports download opensmtpd
    apt-get download libevent-2.1-7 >&2
  fi
  for package in *.deb; do dpkg -x "$package" root; done
  # The program must run as the user of the tests, never with other rights.
  chmod u-s,go+rx root "root/$program"
  mv -T root "$folder" 2>/dev/null || [ -x "$folder/$program" ]
fi
echo "$folder"
