#!/bin/sh
# Checks what Node.js 26 needs, before an install and before each command for operators. It is a shell script, because at that
# moment no Node.js of the right version may run on this machine.
PATH=$PATH:/usr/sbin:/sbin
# Where ldconfig is missing, as on macOS, the dynamic linker of the system decides.
case $(ldconfig -p 2>/dev/null) in
  '' | *libatomic.so.1*) ;;
  *)
    echo 'Node.js 26 needs the library libatomic.so.1. On Debian and Ubuntu, install it with: apt-get install libatomic1' >&2
    exit 1
    ;;
esac
# An install brings Node.js 26. A production install omits it, and the commands use that of the machine.
[ "$npm_lifecycle_event" = pnpm:devPreinstall ] && exit
version=$(node --version)
major=${version#v}
if [ "${major%%.*}" -lt 26 ]; then
  echo "This command needs Node.js 26, but the first node in the PATH is $version: put Node.js 26 before it." >&2
  exit 1
fi
