"""Creates an order with a checksum and looks it up again. Python 3.8 or newer, nothing to install.

Usage: BASE_URL=http://localhost:8080 CLIENT_ID=app_... CLIENT_SECRET=sk_... ORDER_ID=web-1001 python3 create_order.py
"""

import hashlib
import hmac
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from decimal import Decimal

BASE_URL = os.environ["BASE_URL"]
CLIENT_ID = os.environ["CLIENT_ID"]
CLIENT_SECRET = os.environ["CLIENT_SECRET"]
ORDER_ID = os.environ["ORDER_ID"]

FIELD_NAMES = (
    "order_id order_amount order_currency order_note service_type customer_name customer_email customer_phone "
    "customer_address_line1 customer_address_line2 customer_address_city customer_address_state "
    "customer_address_country customer_address_postal_code return_url"
).split()


def checksum_of(order):
    """Returns v1= and the HMAC of the fields in the API's order: the amount with two decimals, an absent field empty."""
    values = [f"{order[name]:.2f}" if name == "order_amount" else order.get(name, "") for name in FIELD_NAMES]
    text = "|".join(value.replace("\\", "\\\\").replace("|", "\\|") for value in values)
    return "v1=" + hmac.new(CLIENT_SECRET.encode(), text.encode(), hashlib.sha256).hexdigest()


def call(path, body=None):
    request = urllib.request.Request(
        BASE_URL + path,
        # json writes the shortest digits of a float, which are those of any valid amount.
        data=None if body is None else json.dumps(body, default=float).encode(),
        headers={"content-type": "application/json", "x-client-id": CLIENT_ID, "x-client-secret": CLIENT_SECRET},
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        # Decide by the code. After 503 and 504, send the same order again.
        problem = json.load(error)
        raise SystemExit(f"{error.code} {problem['code']}: {problem['detail']}")


order = {
    "order_id": ORDER_ID,
    "order_amount": Decimal("19.99"),
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
    "return_url": "https://shop.example.com/thanks",
}

print(json.dumps(call("/order", {**order, "order_checksum": checksum_of(order)})))
print(json.dumps(call("/order/" + urllib.parse.quote(ORDER_ID, safe=""))))
