-- Makes every request of wrk a new order, and tells the result as one line of JSON.
-- Read from the environment: BENCH_RUN (unique to the run), BENCH_CLIENT_ID, BENCH_CLIENT_SECRET.

local threads = 0
local run = os.getenv("BENCH_RUN")

function setup(thread)
  thread:set("number", threads)
  threads = threads + 1
end

-- The request is put together once, as an order's number always has as many digits: the sender is not what is measured.
function init()
  count = 0
  wrk.method = "POST"
  wrk.headers["content-type"] = "application/json"
  wrk.headers["x-client-id"] = os.getenv("BENCH_CLIENT_ID")
  wrk.headers["x-client-secret"] = os.getenv("BENCH_CLIENT_SECRET")
  local body = '{"order_id":"' .. run .. "-" .. number .. "-000000000"
    .. '","order_amount":1249.50,"order_currency":"EUR","order_note":"Two walnut shelves and one reading lamp",'
    .. '"service_type":"PHYSICAL_GOODS","customer_name":"Noor van der Linden",'
    .. '"customer_email":"noor.vanderlinden@example.com","customer_phone":"+31 20 555 0142",'
    .. '"customer_address_line1":"Lindengracht 88","customer_address_line2":"Second floor",'
    .. '"customer_address_city":"Amsterdam","customer_address_state":"Noord-Holland",'
    .. '"customer_address_country":"Netherlands","customer_address_postal_code":"1015 KK",'
    .. '"order_checksum":"made-by-the-shop-7d1c","return_url":"https://shop.example.com/checkout/return?cart=5521"}'
  local whole = wrk.format(nil, "/order", nil, body)
  local first, last = whole:find("000000000", 1, true)
  before = whole:sub(1, first - 1)
  after = whole:sub(last + 1)
end

function request()
  count = count + 1
  return before .. string.format("%09d", count) .. after
end

-- wrk counts what it got an answer to, late ones among them, and no connection that broke.
function done(summary, latency)
  local failed = summary.errors.status + summary.errors.connect + summary.errors.read
    + summary.errors.write + summary.errors.timeout
  io.write(string.format('\n{"answers":%d,"failed":%d,"durationMs":%.3f,"p50Ms":%.3f,"p99Ms":%.3f}\n',
    summary.requests - summary.errors.status, failed, summary.duration / 1000, latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
