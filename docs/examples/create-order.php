<?php
// Creates an order with a checksum and looks it up again. PHP 8.0 or newer with the curl extension.
// Usage: BASE_URL=http://localhost:8080 CLIENT_ID=app_... CLIENT_SECRET=sk_... ORDER_ID=web-1001 php create-order.php

declare(strict_types=1);

const FIELD_NAMES = [
    'order_id', 'order_amount', 'order_currency', 'order_note', 'service_type', 'customer_name', 'customer_email',
    'customer_phone', 'customer_address_line1', 'customer_address_line2', 'customer_address_city',
    'customer_address_state', 'customer_address_country', 'customer_address_postal_code', 'return_url',
];

/** Returns v1= and the HMAC of the fields in the API's order. The amount has two decimals, an absent field is empty. */
function checksum_of(array $order): string
{
    $escaped = fn (string $name): string => strtr($order[$name] ?? '', ['\\' => '\\\\', '|' => '\\|']);
    $values = array_map($escaped, FIELD_NAMES);
    return 'v1=' . hash_hmac('sha256', implode('|', $values), getenv('CLIENT_SECRET'));
}

/** Returns an order as JSON, with the digits of the amount: of a float, json_encode can write 19.989999999999998. */
function json_of(array $order): string
{
    $others = array_diff_key($order, ['order_amount' => '']);
    $json = json_encode($others, JSON_THROW_ON_ERROR | JSON_UNESCAPED_UNICODE);
    return "{\"order_amount\":{$order['order_amount']}," . substr($json, 1);
}

function call(string $path, ?string $body = null): string
{
    $request = curl_init(getenv('BASE_URL') . $path);
    curl_setopt_array($request, [
        CURLOPT_RETURNTRANSFER => true,
        CURLOPT_TIMEOUT => 10,
        CURLOPT_HTTPHEADER => [
            'content-type: application/json',
            'x-client-id: ' . getenv('CLIENT_ID'),
            'x-client-secret: ' . getenv('CLIENT_SECRET'),
        ],
    ]);
    if ($body !== null) {
        curl_setopt($request, CURLOPT_POSTFIELDS, $body);
    }
    $response = curl_exec($request);
    $status = curl_getinfo($request, CURLINFO_RESPONSE_CODE);
    if ($response === false || $status >= 400) {
        // Decide by the code. After 503, 504 or no response, send the same order again.
        fwrite(STDERR, "$status " . ($response === false ? curl_error($request) : $response) . "\n");
        exit(1);
    }
    return $response;
}

$order = [
    'order_id' => getenv('ORDER_ID'),
    'order_amount' => '19.99',
    'order_currency' => 'USD',
    'order_note' => 'Two tickets',
    'service_type' => 'DIGITAL',
    'customer_name' => 'Ada Lovelace',
    'customer_email' => 'ada@example.com',
    'customer_phone' => '+44 20 7946 0018',
    'customer_address_line1' => '12 St James Square',
    'customer_address_city' => 'London',
    'customer_address_state' => 'London',
    'customer_address_country' => 'United Kingdom',
    'customer_address_postal_code' => 'SW1Y 4JH',
    'return_url' => 'https://shop.example.com/thanks',
];

echo call('/order', json_of($order + ['order_checksum' => checksum_of($order)])), "\n";
echo call('/order/' . rawurlencode($order['order_id'])), "\n";
