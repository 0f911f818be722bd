#!/bin/sh
# Creates an order and looks it up again, with curl 7.76 or newer.
# Usage: BASE_URL=http://localhost:8080 CLIENT_ID=app_... CLIENT_SECRET=sk_... ORDER_ID=web-1001 sh create-order.sh
set -eu

curl --fail-with-body --silent --show-error --max-time 10 "$BASE_URL/order" \
  -H 'content-type: application/json' \
  -H "x-client-id: $CLIENT_ID" \
  -H "x-client-secret: $CLIENT_SECRET" \
  -d @- <<ORDER
{
  "order_id": "$ORDER_ID",
  "order_amount": 10.00,
  "order_currency": "USD",
  "order_note": "Two tickets",
  "service_type": "DIGITAL",
  "customer_name": "Ada Lovelace",
  "customer_email": "ada@example.com",
  "customer_phone": "+44 20 7946 0018",
  "customer_address_line1": "12 St James Square",
  "customer_address_city": "London",
  "customer_address_state": "London",
  "customer_address_country": "United Kingdom",
  "customer_address_postal_code": "SW1Y 4JH",
  "order_checksum": "none",
  "return_url": "https://shop.example.com/thanks"
}
ORDER
echo

# Percent-encode an order_id in a path. This one contains nothing to encode.
curl --fail-with-body --silent --show-error --max-time 10 "$BASE_URL/order/$ORDER_ID" \
  -H "x-client-id: $CLIENT_ID" \
  -H "x-client-secret: $CLIENT_SECRET"
echo
