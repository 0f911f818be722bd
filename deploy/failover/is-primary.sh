#!/bin/sh
# HAProxy passes its own address and port, followed by those of the server. The role `haproxy` may only log in. The file
# below contains its password.
export PGPASSFILE=/etc/haproxy/pgpass
exec psql -X -h "$3" -p "$4" -U haproxy -d postgres -Atc 'select 1 / (not pg_is_in_recovery())::int' > /dev/null 2>&1
