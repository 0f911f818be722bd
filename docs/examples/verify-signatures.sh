#!/bin/sh
# Verifies a webhook, or the return of a customer if SIGNATURE is set, with openssl. Only for experiments: other users
# of the machine can see the arguments of openssl, including the key, and the comparison does not take constant time.
# Usage: SIGNING_SECRET=whsec_... WEBHOOK_ID=evt_... WEBHOOK_TIMESTAMP=... WEBHOOK_SIGNATURE=v1,... sh verify-signatures.sh < body
#        SIGNING_SECRET=whsec_... ORDER_ID=... SERVICE_ORDER_ID=... ORDER_STATUS=... SIGNED_AT=... SIGNATURE=v1=... \
#          sh verify-signatures.sh            with the values of the query, percent-decoded
set -eu

key=$(printf '%s' "${SIGNING_SECRET#whsec_}" | openssl base64 -d -A | od -An -v -tx1 | tr -d ' \n')

# Prints the HMAC-SHA256 of the standard input as bytes.
hmac() {
  openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary
}

# Ends the program if a time in Unix seconds ($1) differs from the current time by more than $2 seconds.
check_time() {
  case "$1" in '' | *[!0-9]*) fail ;; esac
  seconds=$(($(date +%s) - $1))
  [ "${seconds#-}" -le "$2" ] || fail
}

fail() {
  echo 'not verified' >&2
  exit 1
}

if [ -n "${SIGNATURE:-}" ]; then
  check_time "$SIGNED_AT" 3600
  # Escapes the order_id as for the order checksum. The other values contain nothing to escape.
  id=$(printf '%s' "$ORDER_ID" | sed 's/[\\|]/\\&/g')
  expected=$(printf '%s' "$id|$SERVICE_ORDER_ID|$ORDER_STATUS|$SIGNED_AT" | hmac | od -An -v -tx1 | tr -d ' \n')
  [ "$SIGNATURE" = "v1=$expected" ] || fail
  printf '%s %s\n' "$ORDER_ID" "$ORDER_STATUS"
else
  check_time "$WEBHOOK_TIMESTAMP" 300
  body=$(mktemp)
  trap 'rm -f "$body"' EXIT
  cat > "$body"
  expected=$({ printf '%s.%s.' "$WEBHOOK_ID" "$WEBHOOK_TIMESTAMP"; cat "$body"; } | hmac | openssl base64 -A)
  # There may be several signatures, separated by spaces.
  case " $WEBHOOK_SIGNATURE " in
    *" v1,$expected "*) cat "$body" ;;
    *) fail ;;
  esac
fi
