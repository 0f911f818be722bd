-- Makes every request of wrk create a new order, and prints the result as one line of JSON.
-- Environment: BENCH_RUN (unique to the run), BENCH_BODY (contains ORDER_ID), BENCH_CLIENT_ID, BENCH_CLIENT_SECRET.

local threads = 0

function setup(thread)
  thread:set("number", threads)
  threads = threads + 1
end

-- Builds the request once. All order_ids have the same length, so only their digits change.
function init()
  count = 0
  local digits = "000000000"
  local body = os.getenv("BENCH_BODY"):gsub("ORDER_ID", os.getenv("BENCH_RUN") .. "-" .. number .. "-" .. digits)
  local request = wrk.format("POST", "/order", {
    ["content-type"] = "application/json",
    ["x-client-id"] = os.getenv("BENCH_CLIENT_ID"),
    ["x-client-secret"] = os.getenv("BENCH_CLIENT_SECRET"),
  }, body)
  local first, last = request:find(digits, 1, true)
  before = request:sub(1, first - 1)
  after = request:sub(last + 1)
end

function request()
  count = count + 1
  return before .. string.format("%09d", count) .. after
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format('\n{"created":%d,"failed":%d,"seconds":%.3f,"p50Ms":%.3f,"p99Ms":%.3f}\n',
    summary.requests - errors.status, errors.status + errors.connect + errors.read + errors.write + errors.timeout,
    summary.duration / 1e6, latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
