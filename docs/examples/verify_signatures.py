"""Verifies a webhook, or the return of a customer if RETURN_URL is set. Python 3.8 or newer, nothing to install.

In a server, take the headers, the raw body and the query from the request. Usage:
SIGNING_SECRET=whsec_... WEBHOOK_ID=evt_... WEBHOOK_TIMESTAMP=... WEBHOOK_SIGNATURE=v1,... python3 verify_signatures.py < body
SIGNING_SECRET=whsec_... RETURN_URL='https://shop.example.com/thanks?order_id=...' python3 verify_signatures.py
"""

import base64
import hashlib
import hmac
import json
import os
import sys
import time
import urllib.parse

RETURN_NAMES = ["order_id", "service_order_id", "order_status", "signed_at"]


def is_recent(unix_seconds, tolerance_seconds):
    return unix_seconds.isdecimal() and abs(time.time() - int(unix_seconds)) <= tolerance_seconds


def hmac_of(secret, data):
    key = base64.b64decode(secret[len("whsec_"):])
    return hmac.new(key, data, hashlib.sha256).digest()


def is_signed_webhook(headers, body, secret):
    """Standard Webhooks: each of the signatures is the base64 HMAC of id.timestamp.body, where body is the raw body."""
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = b"v1," + base64.b64encode(hmac_of(secret, signed))
    signatures = headers["webhook-signature"].encode().split(b" ")
    # Compares all signatures, each in constant time.
    matches = [hmac.compare_digest(signature, expected) for signature in signatures]
    return is_recent(headers["webhook-timestamp"], 300) and any(matches)


def is_signed_return(query, secret):
    """The signature is the hex HMAC of the parameters, escaped and joined as for the checksum. Each must occur once.

    For a day after another secret begins to sign, there is a signature with the previous secret too.
    """
    if any(len(query.get(name, [])) != 1 for name in [*RETURN_NAMES, "signature"]):
        return False
    values = [query[name][0].replace("\\", "\\\\").replace("|", "\\|") for name in RETURN_NAMES]
    expected = "v1=" + hmac_of(secret, "|".join(values).encode()).hex()
    signatures = [query["signature"][0], *query.get("previous_signature", [])]
    matches = [hmac.compare_digest(signature.encode(), expected.encode()) for signature in signatures]
    return is_recent(query["signed_at"][0], 3_600) and any(matches)


secret = os.environ["SIGNING_SECRET"]
if "RETURN_URL" in os.environ:
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(os.environ["RETURN_URL"]).query)
    if not is_signed_return(query, secret):
        raise SystemExit("not verified")
    print(query["order_id"][0], query["order_status"][0])
else:
    headers = {f"webhook-{name}": os.environ[f"WEBHOOK_{name.upper()}"] for name in ["id", "timestamp", "signature"]}
    body = sys.stdin.buffer.read()
    if not is_signed_webhook(headers, body, secret):
        raise SystemExit("not verified")
    event = json.loads(body)
    print(event["id"], event["type"])
