"""Creates an order and looks it up again over gRPC. README.md shows how to generate the folder gen from the contract.

Usage: PYTHONPATH=gen GRPC_ADDRESS=127.0.0.1:9090 CLIENT_ID=app_... CLIENT_SECRET=sk_... ORDER_ID=web-1001 \\
         python3 grpc_client.py
"""

import json
import os

import grpc
from gateway.v1 import order_pb2, order_service_pb2, order_service_pb2_grpc
from google.protobuf.json_format import MessageToDict

CREDENTIALS = (("x-client-id", os.environ["CLIENT_ID"]), ("x-client-secret", os.environ["CLIENT_SECRET"]))
ORDER_ID = os.environ["ORDER_ID"]

order = order_service_pb2.CreateOrderRequest(
    order_id=ORDER_ID,
    order_amount=10.00,
    order_currency="USD",
    order_note="Two tickets",
    service_type=order_pb2.DIGITAL,
    customer_name="Ada Lovelace",
    customer_email="ada@example.com",
    customer_phone="+44 20 7946 0018",
    customer_address_line1="12 St James Square",
    customer_address_city="London",
    customer_address_state="London",
    customer_address_country="United Kingdom",
    customer_address_postal_code="SW1Y 4JH",
    order_checksum="none",
    return_url="https://shop.example.com/thanks",
)

with grpc.insecure_channel(os.environ["GRPC_ADDRESS"]) as channel:
    orders = order_service_pb2_grpc.OrderServiceStub(channel)
    try:
        created = orders.CreateOrder(order, metadata=CREDENTIALS, timeout=5)
        print(f"The customer pays at {created.payment_link}")
        request = order_service_pb2.GetOrderRequest(order_id=ORDER_ID)
        found = orders.GetOrder(request, metadata=CREDENTIALS, timeout=5).order
    except grpc.RpcError as error:
        raise SystemExit(f"{error.code().name}: {error.details()}")
print(json.dumps(MessageToDict(found)))
