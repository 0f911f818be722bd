#!/bin/sh
# Checks the requirements of Node.js 26 before an install and before each command of the gateway. It is a shell script
# because the machine may not be able to run Node.js 26 yet.
PATH=$PATH:/usr/sbin:/sbin
# Without ldconfig, as on macOS, this is not checked, and Node.js does not start if the library is missing.
case $(ldconfig -p 2>/dev/null) in
  '' | *libatomic.so.1*) ;;
  *)
    echo 'Node.js 26 needs the library libatomic.so.1. On Debian and Ubuntu, install it with: apt-get install libatomic1' >&2
    exit 1
    ;;
esac
# A development install includes Node.js 26. A production install does not, and commands use the machine's Node.js.
[ "$npm_lifecycle_event" = pnpm:devPreinstall ] && exit
version=$(node --version)
major=${version#v}
if [ "${major%%.*}" -lt 26 ]; then
  echo "This command needs Node.js 26, but the first node in the PATH is $version: put Node.js 26 before it." >&2
  exit 1
fi
