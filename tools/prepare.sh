#!/bin/sh
# Installs what a command needs before it runs. The commands of the gateway and the checkout pass `gateway`: in a new
# clone, they install a fifth of the packages, so that the first start is short. A command that needs more installs the
# rest, and a later `gateway` keeps it. The script reports on every step, because the first one can take a minute. It
# reports on standard error, because standard output is that of the command, such as JSON.
exec >&2
[ "${npm_execpath##*/}" = pnpm ] || exit 0
# A production install has no Node.js and no embedded PostgreSQL. The operator chose its contents.
case $(cat node_modules/.modules.yaml 2>/dev/null) in
  *'"optionalDependencies": false'*) exit ;;
esac
if [ "$1" != gateway ] || [ -e node_modules/.bin/vitest ]; then
  exec "$npm_execpath" install
fi
# `--trust-lockfile` omits pnpm's check of the age of every package in pnpm-lock.yaml, which asks the registry about
# each for 10 seconds and fails without a network. The install of all packages makes this check, and so does CI. The
# contents of each package must match its hash in pnpm-lock.yaml in any case.
exec "$npm_execpath" install --prod --frozen-lockfile --trust-lockfile --filter . --filter gateway... --filter checkout...
