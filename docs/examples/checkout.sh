#!/bin/sh
# Takes the payment of an order as a checkout system does, with curl 7.76 or newer, over Connect's JSON.
# ORDER_TOKEN is the last part of the payment link. Set PAID_AMOUNT to see how a payment of another amount is refused.
# Usage: BASE_URL=http://localhost:8080 CLIENT_ID=chk_... CLIENT_SECRET=sk_... ORDER_TOKEN=... PAYMENT_ID=pay-1 sh checkout.sh
set -eu

# Prints the response, even if it is an error. Repeats the call while its outcome is unknown, which is safe for every
# method.
call() {
  curl --silent --show-error --max-time 10 --retry 4 --retry-connrefused \
    "$BASE_URL/gateway.v1.CheckoutService/$1" -d "$2" \
    -H 'content-type: application/json' -H "x-client-id: $CLIENT_ID" -H "x-client-secret: $CLIENT_SECRET"
}

# Prints the error code of a response, or nothing if the response is a success.
error_code() {
  printf '%s' "$1" | sed -n 's/.*"metadata":{"code":"\([a-z_]*\)"}.*/\1/p'
}

# Prints a member of a response. Use a JSON parser in your own system.
member() {
  printf '%s' "$2" | sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p"
}

fail() {
  echo "$1" >&2
  exit 1
}

order=$(call ResolvePaymentLink "{ \"order_token\": \"$ORDER_TOKEN\" }")
code=$(error_code "$order")
[ -z "$code" ] || fail "There is nothing to pay: $code"

# Claim the order before you take money. Until the claim ends, other attempts and cancellations get payment_in_progress.
started=$(call StartPayment "{ \"order_token\": \"$ORDER_TOKEN\", \"attempt_id\": \"$PAYMENT_ID\" }")
code=$(error_code "$started")
case $code in
  '') ;;
  payment_in_progress) fail 'Another payment of the order is in progress. Try again later.' ;;
  *) fail "The order can't be paid: $code" ;;
esac

# Here your system takes the money. If the customer declines or leaves, call EndPayment with the attempt_id instead.
recorded=$(call RecordPayment "{
  \"order_token\": \"$ORDER_TOKEN\",
  \"attempt_id\": \"$PAYMENT_ID\",
  \"payment_id\": \"$PAYMENT_ID\",
  \"paid_at\": \"$(date -u +%Y-%m-%dT%H:%M:%SZ)\",
  \"order_amount\": ${PAID_AMOUNT:-$(member order_amount "$order")},
  \"order_currency\": \"$(member order_currency "$order")\"
}")
code=$(error_code "$recorded")
case $code in
  '') echo "Paid. The customer returns to $(member return_url "$recorded")" ;;
  order_already_paid | order_cancelled | order_expired | payment_mismatch) fail "Refund the payment: $code" ;;
  *) fail "Keep the money, and find out why: $code" ;;
esac
