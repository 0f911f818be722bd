<?php
// Verifies a webhook, or the return of a customer if RETURN_URL is set. PHP 8.0 or newer, nothing to install.
// In a server, use $_SERVER['HTTP_WEBHOOK_ID'] and so on, file_get_contents('php://input'), $_SERVER['QUERY_STRING'].
// Usage: SIGNING_SECRET=whsec_... WEBHOOK_ID=evt_... WEBHOOK_TIMESTAMP=... WEBHOOK_SIGNATURE=v1,... php verify-signatures.php < body
//        SIGNING_SECRET=whsec_... RETURN_URL='https://shop.example.com/thanks?order_id=...' php verify-signatures.php

declare(strict_types=1);

const RETURN_NAMES = ['order_id', 'service_order_id', 'order_status', 'signed_at'];

function is_recent(string $unix_seconds, int $tolerance_seconds): bool
{
    return ctype_digit($unix_seconds) && abs(time() - (int) $unix_seconds) <= $tolerance_seconds;
}

function hmac_of(string $secret, string $data): string
{
    return hash_hmac('sha256', $data, base64_decode(substr($secret, strlen('whsec_'))), true);
}

/** Standard Webhooks: each of the signatures is the base64 HMAC of id.timestamp.body, where body is the raw body. */
function is_signed_webhook(string $id, string $timestamp, string $signatures, string $body, string $secret): bool
{
    $expected = 'v1,' . base64_encode(hmac_of($secret, "$id.$timestamp.$body"));
    // Compares all signatures, each in constant time.
    $matches = array_map(fn (string $signature): bool => hash_equals($expected, $signature), explode(' ', $signatures));
    return is_recent($timestamp, 300) && in_array(true, $matches, true);
}

/**
 * The signature is the hex HMAC of the four parameters, escaped and joined as for the order checksum. For a day after
 * another secret begins to sign, there is a signature with the previous secret too. If a parameter is repeated, PHP keeps
 * the last value.
 */
function is_signed_return(array $query, string $secret): bool
{
    foreach ([...RETURN_NAMES, 'signature'] as $name) {
        if (!is_string($query[$name] ?? null)) {
            return false;
        }
    }
    $values = array_map(fn (string $name): string => strtr($query[$name], ['\\' => '\\\\', '|' => '\\|']), RETURN_NAMES);
    $expected = 'v1=' . bin2hex(hmac_of($secret, implode('|', $values)));
    $previous = $query['previous_signature'] ?? '';
    $matches = [hash_equals($expected, $query['signature']), is_string($previous) && hash_equals($expected, $previous)];
    return is_recent($query['signed_at'], 3600) && in_array(true, $matches, true);
}

$secret = getenv('SIGNING_SECRET');
if (getenv('RETURN_URL') !== false) {
    parse_str((string) parse_url(getenv('RETURN_URL'), PHP_URL_QUERY), $query);
    $verified = is_signed_return($query, $secret);
    $line = $verified ? "{$query['order_id']} {$query['order_status']}" : '';
} else {
    $body = file_get_contents('php://stdin');
    $verified = is_signed_webhook(
        getenv('WEBHOOK_ID'),
        getenv('WEBHOOK_TIMESTAMP'),
        getenv('WEBHOOK_SIGNATURE'),
        $body,
        $secret,
    );
    $event = $verified ? json_decode($body, true, 512, JSON_THROW_ON_ERROR) : [];
    $line = $verified ? "{$event['id']} {$event['type']}" : '';
}
if (!$verified) {
    fwrite(STDERR, "not verified\n");
    exit(1);
}
echo $line, "\n";
