-- The account that several nodes share: what it allows, what is under way, and its circuit. The rules are those of
-- `account.py` and `circuit.py`, which say why; this file adds turns between nodes, and leases for those that die. One
-- key per script, so that a cluster can run it.
--
-- Keys (PREFIX is `sameas:limits:4:` and the name of the account)
--   PREFIX   string   MessagePack of a map, times in microseconds by this server's clock:
--              b   calls that ended, in buckets: bucket number as text -> {requests, tokens}
--              s   calls under way: id -> {until, tokens, epoch, began}; one whose node died has ended when its lease ends
--              w   nodes that wait: node -> {since, seen}
--              h   nobody is let through before this time
--              c   circuit: {e = epoch, f = failures, y = successes, l = last failure, o = opened, d = down since,
--                  p = probe, u = until when the probe is believed in}; times are 0 if there is none
--              p   pace: {a = apart, n = next, r = refusals, l = last refusal, t = counted since, k = answers}
--              n   nodes: node -> {until, parts, lease, standing}: one part in so many of the limits is what it may use
--                  alone when this server is away, 0 if none; standing is HERE, AWAY or IDLE
--              g   when the nodes were last brought together, a number that they show
--              t   when one of them was last heard of
--              f   since when this server remembers; m until when the parts of nodes are kept that it has forgotten
--
-- A call counts while it is under way, and then in the bucket of its end, which leaves a whole window later: it reached
-- the provider somewhere in between, so the limit holds for every window there, at the price of one bucket's width.
--
-- Nodes that heard nothing from this server for a window use their parts, which are never more than the whole together:
-- a part is given when the others have shown that they know theirs to be smaller. When nobody was heard of for a while,
-- every node was alone: its part is kept for it until it has reported what it spent, or is dead, and what it sent before
-- is not obeyed. A server that has lost its memory lets nobody through for a window, and keeps all parts for as long.
--
-- Replies: admit answers {0, parts, together}, {1, wait, reason, down for, parts, together}, where a wait of 0 depends on
-- the end of a call, or {2} to a node that must report first. finish answers 0, 1 if the circuit opened, 2 if it closed.
-- beat and report answer {0, parts, together}, or {2}.
--
-- `-- script: prelude` is put before every other script.

-- script: prelude
-- SKEW moves the clock in tests; it is left out otherwise.
local function now(skew)
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2] + (skew or 0)
end

local function closed(epoch)
  return {e = epoch, f = 0, y = 0, l = 0, o = 0, d = 0, p = '', u = 0}
end

local function load()
  local kept = redis.call('GET', KEYS[1])
  if kept then return cmsgpack.unpack(kept) end
  local pace = {a = 0, n = 0, r = 0, l = 0, t = 0, k = 0}
  return {b = {}, s = {}, w = {}, h = 0, c = closed(0), p = pace, n = {}, g = 0, t = 0, f = 0, m = 0}
end

-- A call has ended: count it until a window after this moment.
local function count(state, at, width, requests, tokens)
  local name = string.format('%.0f', math.floor(at / width))
  local bucket = state.b[name] or {0, 0}
  state.b[name] = {bucket[1] + requests, bucket[2] + tokens}
end

-- A circuit that has failures, or a server that was refused, is remembered for a day.
local function save(state, at, keep_for)
  local left = math.max(keep_for, state.h - at)
  if state.c.f > 0 or state.c.o > 0 or state.p.a > 0 then left = math.max(left, 86400000000) end
  -- Nodes that were alone for as long find each other again.
  if next(state.n) then left = math.max(left, 3600000000) end
  redis.call('SET', KEYS[1], cmsgpack.pack(state), 'PX', math.ceil(left / 1000))
end

local HERE, AWAY, IDLE = 0, 1, 2
local NEARLY = 1e-9

-- What has happened since a node was last heard of. One comes now that was told when they were brought together.
local function look_back(state, at, together, window, lease)
  if state.g == 0 then
    state.g, state.f = at, at
  elseif state.t + math.min(window, lease) / 2 < at then
    state.g = at
    for _, other in pairs(state.n) do
      if other[4] ~= IDLE then other[1], other[4] = math.max(other[1], at + other[3]), AWAY end
    end
  end
  state.t = at
  if together > 0 and together < state.f then
    state.h = math.max(state.h, state.f + 1.25 * window)
    state.m = math.max(state.m, state.f + math.max(lease, 1.25 * window))
  end
end

-- A node is here: which part it may believe in from now on, and the share that is kept for others.
local function meet(state, at, node, believed, lease, standing)
  local taken, kept, count = believed > 0 and 1 / believed or 0, 0, 1
  local others = 0
  for name, other in pairs(state.n) do
    if name ~= node then
      if other[1] <= at then
        state.n[name] = nil
      else
        count = count + 1
        if other[2] > 0 then
          others = others + 1 / other[2]
          if other[4] == AWAY then kept = kept + 1 / other[2] end
        end
      end
    end
  end
  local forgotten = state.m > at and math.max(0, 1 - others - taken) or 0
  local free, parts = 1 - others - forgotten + NEARLY, 0
  if 1 / count <= free then
    parts = count
  elseif believed > 0 and taken <= free then
    parts = believed
  end
  -- Until it shows that it knows its part to be smaller, it may use the larger.
  local most = (parts == 0 or (believed > 0 and believed < parts)) and believed or parts
  state.n[node] = {at + lease, most, lease, standing}
  return parts, kept + forgotten
end

-- script: admit
-- ARGV: id, node, tokens, requests_per_window, tokens_per_window, max_concurrent, window, buckets, lease, recover_after,
-- believed, together, SKEW
local id, node, tokens = ARGV[1], ARGV[2], tonumber(ARGV[3])
local most_requests, most_tokens, most_calls = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local window, lease, recover_after = tonumber(ARGV[7]), tonumber(ARGV[9]), tonumber(ARGV[10])
local width = window / tonumber(ARGV[8])
-- A node that has waited for so long goes before those that came after it; one not seen for so long has gone away.
local PATIENCE, AWAY = 1000000, 3000000
local believed, together = tonumber(ARGV[11]), tonumber(ARGV[12])
local at = now(ARGV[13])
local state = load()
local circuit, pace = state.c, state.p

look_back(state, at, together, window, lease)
if together > 0 and together ~= state.g then
  save(state, at, window * 2 + lease)
  return {2}
end
local parts, kept = meet(state, at, node, believed, lease, HERE)
local function but_kept(most) return most - math.floor(most * kept + NEARLY) end
most_requests, most_tokens, most_calls = but_kept(most_requests), but_kept(most_tokens), but_kept(most_calls)

-- The call was let through and the reply got lost.
if state.s[id] then
  save(state, at, window * 2 + lease)
  return {0, parts, state.g}
end

local requests, used, calls, numbers = 0, 0, 0, {}
for name, call in pairs(state.s) do
  if call[1] <= at then
    state.s[name] = nil
    count(state, at, width, 1, call[2])
  else
    requests, used, calls = requests + 1, used + call[2], calls + 1
  end
end
for name, bucket in pairs(state.b) do
  local number = tonumber(name)
  if (number + 1) * width + window <= at then
    state.b[name] = nil
  else
    requests, used = requests + bucket[1], used + bucket[2]
    numbers[#numbers + 1] = number
  end
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

local wait, reason, down_for = 0, nil, 0
if pace.n > at then
  wait, reason = pace.n - at, 'held'
elseif pace.r > 0 and calls > 0 then
  reason = 'held'
elseif circuit.o > 0 and circuit.o + recover_after > at then
  wait, reason, down_for = circuit.o + recover_after - at, 'server', at - circuit.d
elseif circuit.o > 0 and circuit.p ~= '' and circuit.u > at then
  reason = 'probe'
elseif state.h > at then
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
    if requests < most_requests and used + tokens <= most_tokens then
      wait = (number + 1) * width + window - at
      break
    end
  end
end
if reason then
  state.w[node] = {mine[1], at}
  save(state, at, window * 2 + lease)
  return {1, math.ceil(wait), reason, down_for, parts, state.g}
end

if circuit.o > 0 then circuit.p, circuit.u = id, at + recover_after end
if pace.a > 0 then pace.n = at + pace.a end
state.s[id] = {at + lease, tokens, circuit.e, at}
state.w[node] = nil
save(state, at, window * 2 + lease)
return {0, parts, state.g}

-- script: finish
-- ARGV: id, verdict, tokens, pause, stretch, window, buckets, lease, failures_to_open, successes_to_close,
-- together_within, a node that has no other call under way and believes in no part any more, SKEW
local FIRST_PAUSE, LONGEST_PAUSE, CLOSER, NEARLY_NOTHING = 1000000, 30000000, 0.95, 1000
local state, verdict = load(), ARGV[2]
local node = state.n[ARGV[12]]
if node and node[4] == HERE then node[4] = IDLE end
local call = state.s[ARGV[1]]
if not call then
  if node then save(state, now(ARGV[13]), tonumber(ARGV[6]) * 2 + tonumber(ARGV[8])) end
  return 0
end
state.s[ARGV[1]] = nil
local at, window, pause = now(ARGV[13]), tonumber(ARGV[6]), tonumber(ARGV[4])
local circuit, pace, changed = state.c, state.p, 0
local is_told = call[3] == circuit.e
local is_probe = is_told and circuit.p == ARGV[1]
if verdict ~= 'withdrawn' then count(state, at, window / tonumber(ARGV[7]), 1, tonumber(ARGV[3])) end

if verdict == 'refused' and pause == 0 then
  if call[4] > pace.l then
    pace.r, pace.l = math.min(pace.r + 1, 16), at
    if pace.t > 0 and pace.k > 0 then pace.a = math.min(LONGEST_PAUSE, math.max(2 * pace.a, (at - pace.t) / pace.k)) end
    if pace.t == 0 or pace.k > 0 then pace.t, pace.k = at, 0 end
  end
  pause = math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ^ math.max(0, pace.r - 1)) * tonumber(ARGV[5])
end
if pause > 0 then state.h = math.max(state.h, at + pause) end

if verdict == 'answered' then
  pace.r, pace.k = 0, pace.k + 1
  pace.a = pace.a > NEARLY_NOTHING and pace.a * CLOSER or 0
  if is_told and circuit.o == 0 then
    circuit.f, circuit.l = 0, 0
  elseif is_probe then
    circuit.y, circuit.p = circuit.y + 1, ''
    if circuit.y >= tonumber(ARGV[10]) then state.c, changed = closed(circuit.e + 1), 2 end
  end
elseif verdict == 'failed' then
  local opens = is_probe
  if is_told and circuit.o == 0 and (circuit.l == 0 or call[4] >= circuit.l + ARGV[11]) then
    circuit.f, circuit.l = circuit.f + 1, at
    opens = circuit.f >= tonumber(ARGV[9])
  end
  if opens then
    state.c, changed = closed(circuit.e + 1), 1
    state.c.o, state.c.d = at, circuit.d > 0 and circuit.d or at
  end
elseif is_probe then
  circuit.p = ''
end
save(state, at, window * 2 + tonumber(ARGV[8]))
return changed

-- script: beat
-- A node is there, and its calls are still under way. ARGV: node, believed, together, window, lease, SKEW or 0, ids
local believed, together, window, lease = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local at = now(ARGV[6])
local state, parts = load(), nil
for number = 7, #ARGV do
  local call = state.s[ARGV[number]]
  if call then call[1] = at + lease end
end
look_back(state, at, together, window, lease)
if together == state.g then parts = meet(state, at, ARGV[1], believed, lease, HERE) end
save(state, at, window * 2 + lease)
return parts and {0, parts, state.g} or {2}

-- script: report
-- A node was alone: what ended meanwhile, and what is under way. Its part is kept until it shows that it was heard. ARGV:
-- node, believed, together, requests, tokens, window, buckets, lease, SKEW or 0, and for each call id and tokens
local requests, tokens, window, lease = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[8])
local at = now(ARGV[9])
local state = load()
look_back(state, at, tonumber(ARGV[3]), window, lease)
local parts = meet(state, at, ARGV[1], tonumber(ARGV[2]), lease, AWAY)
if requests > 0 then count(state, at, window / tonumber(ARGV[7]), requests, tokens) end
for number = 10, #ARGV, 2 do
  local call = state.s[ARGV[number]] or {0, tonumber(ARGV[number + 1]), state.c.e, at}
  call[1] = at + lease
  state.s[ARGV[number]] = call
end
save(state, at, window * 2 + lease)
return {0, parts, state.g}

-- script: phase
-- 0 if the circuit is closed, 1 if it is open, 2 if it is half open. ARGV: recover_after, SKEW
local circuit = load().c
if circuit.o == 0 then return 0 end
return now(ARGV[2]) < circuit.o + ARGV[1] and 1 or 2
