-- The limits of an account that several nodes share, and the state of its circuit. One key per script, so that a
-- cluster can run it.
--
-- Keys (PREFIX is `sameas:limits:` and the name of the account)
--   PREFIX           string   MessagePack of a map, times in microseconds by this server's clock:
--                      b   buckets of the window: bucket number as text -> {requests, tokens}
--                      s   calls under way: id -> {until, bucket number}; one whose node died goes when its lease ends
--                      w   nodes that wait: node -> {since, seen}
--                      h   nobody is let through before this time
--   PREFIX :circuit  string   the circuit's state as its nodes wrote it; absent: closed, and no failures
--
-- A call is counted in the bucket of its time, and a bucket leaves the window a whole window after its end: so the
-- limit holds for every window, at the price of one bucket's width.
--
-- Replies: admit answers {0, bucket}, or {1, wait, reason}; the others 1 for done and 0 for nothing to do.
--
-- `-- script: prelude` is put before every other script.

-- script: prelude
-- SKEW moves the clock in tests; it is left out otherwise.
local function now(skew)
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2] + (skew or 0)
end

local function load()
  local kept = redis.call('GET', KEYS[1])
  if not kept then return {b = {}, s = {}, w = {}, h = 0} end
  return cmsgpack.unpack(kept)
end

local function save(state, at, keep_for)
  local left = math.max(keep_for, state.h - at)
  redis.call('SET', KEYS[1], cmsgpack.pack(state), 'PX', math.ceil(left / 1000))
end

-- script: admit
-- ARGV: id, node, tokens, requests_per_window, tokens_per_window, max_concurrent, window, buckets, lease, SKEW
local id, node, tokens = ARGV[1], ARGV[2], tonumber(ARGV[3])
local most_requests, most_tokens, most_calls = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local window, lease = tonumber(ARGV[7]), tonumber(ARGV[9])
local width = window / tonumber(ARGV[8])
-- A node that has waited for so long goes before those that came after it; one not seen for so long has gone away.
local PATIENCE, AWAY = 1000000, 3000000
local at = now(ARGV[10])
local state = load()

-- The call was let through and the reply got lost.
if state.s[id] then return {0, state.s[id][2]} end

local requests, used, numbers = 0, 0, {}
for name, bucket in pairs(state.b) do
  local number = tonumber(name)
  if (number + 1) * width + window <= at then
    state.b[name] = nil
  else
    requests, used = requests + bucket[1], used + bucket[2]
    numbers[#numbers + 1] = number
  end
end
local calls = 0
for name, call in pairs(state.s) do
  if call[1] <= at then state.s[name] = nil else calls = calls + 1 end
end
local mine = state.w[node] or {at, at}
local is_overtaking = false
for name, other in pairs(state.w) do
  if other[2] + AWAY <= at then
    state.w[name] = nil
  elseif name ~= node and other[1] < mine[1] and other[1] + PATIENCE <= at then
    is_overtaking = true
  end
end

local wait, reason = 0, nil
if state.h > at then
  wait, reason = state.h - at, 'held'
elseif is_overtaking then
  reason = 'turn'
elseif calls >= most_calls then
  reason = 'concurrent'
elseif requests >= most_requests or used + tokens > most_tokens then
  reason = requests >= most_requests and 'requests' or 'tokens'
  table.sort(numbers)
  for _, number in ipairs(numbers) do
    local bucket = state.b[string.format('%.0f', number)]
    requests, used = requests - bucket[1], used - bucket[2]
    wait = (number + 1) * width + window - at
    if requests < most_requests and used + tokens <= most_tokens then break end
  end
end
if reason then
  state.w[node] = {mine[1], at}
  save(state, at, window * 2 + lease)
  return {1, math.ceil(wait), reason}
end

local number = math.floor(at / width)
local name = string.format('%.0f', number)
local bucket = state.b[name] or {0, 0}
state.b[name] = {bucket[1] + 1, bucket[2] + tokens}
state.s[id] = {at + lease, number}
state.w[node] = nil
save(state, at, window * 2 + lease)
return {0, number}

-- script: finish
-- The call has ended, or was never made. ARGV: id, requests to take back, tokens to add, window, lease, SKEW
local state = load()
local call = state.s[ARGV[1]]
if not call then return 0 end
state.s[ARGV[1]] = nil
local bucket = state.b[string.format('%.0f', call[2])]
if bucket then
  bucket[1] = bucket[1] - tonumber(ARGV[2])
  bucket[2] = bucket[2] + tonumber(ARGV[3])
end
save(state, now(ARGV[6]), tonumber(ARGV[4]) * 2 + tonumber(ARGV[5]))
return 1

-- script: renew
-- The calls are still under way. ARGV: window, lease, SKEW or 0, ids
local at = now(ARGV[3])
local state, found = load(), 0
for number = 4, #ARGV do
  local call = state.s[ARGV[number]]
  if call then
    call[1] = at + ARGV[2]
    found = 1
  end
end
if found == 1 then save(state, at, ARGV[1] * 2 + ARGV[2]) end
return found

-- script: hold
-- Nobody is let through for so long. ARGV: microseconds, window, lease, SKEW
local at = now(ARGV[4])
local state = load()
if state.h >= at + ARGV[1] then return 0 end
state.h = at + ARGV[1]
save(state, at, ARGV[2] * 2 + ARGV[3])
return 1

-- script: look
-- The circuit: its state and the time. ARGV: SKEW
return {redis.call('GET', KEYS[1]) or '', now(ARGV[1])}

-- script: swap
-- Change the circuit if it is still as it was. ARGV: old, new, milliseconds to keep it
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
end
return 1
