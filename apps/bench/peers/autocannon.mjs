import autocannon from 'autocannon';

// Makes every request a new order, and tells the result as one line of JSON, as order.lua does for wrk.

const { port, concurrency, seconds, run, credentials } = JSON.parse(process.argv[2]);
const order = {
  order_amount: 1249.5,
  order_currency: 'EUR',
  order_note: 'Two walnut shelves and one reading lamp',
  service_type: 'PHYSICAL_GOODS',
  customer_name: 'Noor van der Linden',
  customer_email: 'noor.vanderlinden@example.com',
  customer_phone: '+31 20 555 0142',
  customer_address_line1: 'Lindengracht 88',
  customer_address_line2: 'Second floor',
  customer_address_city: 'Amsterdam',
  customer_address_state: 'Noord-Holland',
  customer_address_country: 'Netherlands',
  customer_address_postal_code: '1015 KK',
  order_checksum: 'made-by-the-shop-7d1c',
  return_url: 'https://shop.example.com/checkout/return?cart=5521',
};
let count = 0;
const result = await autocannon({
  url: `http://127.0.0.1:${port}/order`,
  connections: concurrency,
  duration: seconds,
  method: 'POST',
  headers: {
    'content-type': 'application/json',
    'x-client-id': credentials.clientId,
    'x-client-secret': credentials.clientSecret,
  },
  requests: [
    {
      setupRequest(request) {
        count += 1;
        return { ...request, body: JSON.stringify({ order_id: `${run}-${count}`, ...order }) };
      },
    },
  ],
});
process.stdout.write(
  `${JSON.stringify({
    answers: result['2xx'],
    failed: result.non2xx + result.errors,
    durationMs: result.duration * 1_000,
    p50Ms: result.latency.p50,
    p99Ms: result.latency.p99,
  })}\n`,
);
