-- The life of a record in Redis, as `sameas.once.protocol` tells it. One key per script, so that a cluster can run it.
--
-- Keys (PREFIX is `sameas:` unless the store was opened with another)
--   PREFIX <64 hex>   string   one record; the hex is the digest of tenant, scope and key. Its native expiry comes a
--                              second after expires_at, so that a claim still finds the fence of what just expired.
-- Channels
--   PREFIX <64 hex>            the record was completed, failed, released or forgotten; the message is empty
--   PREFIX forgotten           a record was forgotten; the message is its key
--
-- A record is one string, numbers big-endian, times in microseconds by this server's clock. Scripts write the numbers:
--   1 byte   version
--   4 bytes  check: `sum` of the others
--   1 byte   state: h(eld), d(one), f(ailed)
--   8 bytes  each: expires_at, fence, lease_until, created_at, completed_at (0 while held)
--   4 bytes  attempt
-- and put behind them, as they came, the names:
--   4 bytes  each: the sizes of attempt_id, fingerprint and said, and the CRC-32 of all that belongs to the names
--   then     attempt_id, fingerprint, said (JSON: identity and what people want to know)
-- and the outcome, once there is one:
--   4 bytes  each: the size of told, and its CRC-32
--   then     told (JSON: media type and meta), and to the end the outcome's bytes
--
-- A script costs by the strings that it makes, so it makes few: it checks the numbers, which it reckons with, and
-- whoever reads a record checks the rest.
--
-- Replies: a record that is replayed or read is its string; a write that is taken is {at, expires_at}, or `at` alone
-- where the record lasts from then for as long as asked, and one that is not taken is 0. A record that is damaged or of
-- another version is an error, never a miss. What happens most is one number: a list costs the server more to send.
--
-- LASTING is the native expiry of what is kept for as long as asked. SKEW moves the clock in tests; it is left out
-- otherwise. `-- script: prelude` is put before every other script.

-- script: prelude
local VERSION, HELD = 3, 104
local HEAD, NAMES, TOLD = 50, 66, 8
local GRACE = 1000

-- A prime, so that no change of one number goes unseen; factors, so that no exchange of two does.
local function sum(state, expires_at, fence, lease_until, created_at, completed_at, attempt)
  local prime = 4294967291
  return (state + attempt * 3 + expires_at % prime * 5 + fence % prime * 7 + lease_until % prime * 11 +
    created_at % prime * 13 + completed_at % prime * 17) % prime
end

local function head(state, expires_at, fence, lease_until, created_at, completed_at, attempt)
  return struct.pack('>BI4BI8I8I8I8I8I4', VERSION,
    sum(state, expires_at, fence, lease_until, created_at, completed_at, attempt),
    state, expires_at, fence, lease_until, created_at, completed_at, attempt)
end

local function open(value)
  if string.byte(value) ~= VERSION then error('SAMEAS-DAMAGED version ' .. tostring((string.byte(value)))) end
  if #value < NAMES then error('SAMEAS-DAMAGED short') end
  local check, state, expires_at, fence, lease_until, created_at, completed_at, attempt, id_size, print_size, said_size =
    struct.unpack('>I4BI8I8I8I8I8I4I4I4I4', value, 2)
  if check ~= sum(state, expires_at, fence, lease_until, created_at, completed_at, attempt) then
    error('SAMEAS-DAMAGED check')
  end
  return state, expires_at, fence, lease_until, created_at, completed_at, attempt, id_size, print_size, said_size
end

-- script: claim
-- ARGV: names, lease_for, retain_for, LASTING, SKEW
-- Replies the fence for a first attempt, {0, fence, attempt} for another, {1, time_left, attempt} for busy, {2, the
-- record without its outcome's bytes} for a mismatch.
local value = redis.call('GET', KEYS[1])
local time = redis.call('TIME')
local at = time[1] * 1000000 + time[2] + (ARGV[5] or 0)
local names, expires_at, lasting = ARGV[1], at + ARGV[3], ARGV[4]
local fence, attempt, created_at = at, 1, at
if value then
  local state, its_expiry, its_fence, its_lease, its_birth, _, its_attempt, its_id, its_print, its_said = open(value)
  fence = math.max(its_fence + 1, at)
  if its_expiry > at then
    local id_size, print_size = struct.unpack('>I4I4', names)
    if string.sub(value, NAMES + its_id + 1, NAMES + its_id + its_print) ~=
      string.sub(names, NAMES - HEAD + id_size + 1, NAMES - HEAD + id_size + print_size) then
      local told_at = NAMES + its_id + its_print + its_said
      local told_size = #value >= told_at + TOLD and struct.unpack('>I4', value, told_at + 1) or 0
      return {2, string.sub(value, 1, told_at + TOLD + told_size)}
    end
    if state ~= HELD then return value end
    attempt, created_at = its_attempt, its_birth
    if string.sub(value, NAMES + 1, NAMES + its_id) == string.sub(names, NAMES - HEAD + 1, NAMES - HEAD + id_size) then
      fence, names = its_fence, string.sub(value, HEAD + 1)
      if its_expiry > expires_at then
        expires_at, lasting = its_expiry, math.ceil((its_expiry - at) / 1000) + GRACE
      end
    elseif its_lease > at then
      return {1, its_lease - at, attempt}
    else
      attempt = attempt + 1
    end
  end
end
redis.call('SET', KEYS[1], head(HELD, expires_at, fence, at + ARGV[2], created_at, 0, attempt) .. names, 'PX', lasting)
return attempt == 1 and fence or {0, fence, attempt}

-- script: renew
-- ARGV: fence, attempt_id, lease_for, retain_for, SKEW
local value = redis.call('GET', KEYS[1])
if not value then return 0 end
local time = redis.call('TIME')
local at = time[1] * 1000000 + time[2] + (ARGV[5] or 0)
local state, expires_at, fence, _, created_at, _, attempt, id_size = open(value)
if expires_at <= at or state ~= HELD or fence ~= tonumber(ARGV[1]) then return 0 end
if string.sub(value, NAMES + 1, NAMES + id_size) ~= ARGV[2] then return 0 end
expires_at = math.max(expires_at, at + ARGV[4])
redis.call('SET', KEYS[1],
  head(HELD, expires_at, fence, at + ARGV[3], created_at, 0, attempt) .. string.sub(value, HEAD + 1),
  'PX', math.ceil((expires_at - at) / 1000) + GRACE)
return {at, expires_at}

-- script: settle
-- ARGV: fence, attempt_id, retain_for, state, outcome, LASTING, SKEW
local value = redis.call('GET', KEYS[1])
if not value then return 0 end
local time = redis.call('TIME')
local at = time[1] * 1000000 + time[2] + (ARGV[7] or 0)
local settled = string.byte(ARGV[4])
local state, expires_at, fence, lease_until, created_at, completed_at, attempt, id_size = open(value)
if expires_at <= at or fence ~= tonumber(ARGV[1]) then return 0 end
if string.sub(value, NAMES + 1, NAMES + id_size) ~= ARGV[2] then return 0 end
if state == settled then
  -- A write, if an idle one: WAIT on this connection then waits for the replicas to have the record too.
  redis.call('PEXPIRE', KEYS[1], math.ceil((expires_at - at) / 1000) + GRACE)
  return {completed_at, expires_at}
end
if state ~= HELD then return 0 end
expires_at = at + ARGV[3]
redis.call('SET', KEYS[1],
  head(settled, expires_at, fence, lease_until, created_at, at, attempt) .. string.sub(value, HEAD + 1) .. ARGV[5],
  'PX', ARGV[6])
-- A user without the right to publish still has a store; waiters then poll.
redis.pcall('PUBLISH', KEYS[1], '')
return at

-- script: release
-- ARGV: fence, attempt_id, SKEW
local value = redis.call('GET', KEYS[1])
if not value then return 0 end
local time = redis.call('TIME')
local at = time[1] * 1000000 + time[2] + (ARGV[3] or 0)
local state, expires_at, fence, _, _, _, _, id_size = open(value)
if expires_at <= at or state ~= HELD or fence ~= tonumber(ARGV[1]) then return 0 end
if string.sub(value, NAMES + 1, NAMES + id_size) ~= ARGV[2] then return 0 end
redis.call('DEL', KEYS[1])
redis.pcall('PUBLISH', KEYS[1], '')
return {at, at}

-- script: forget
-- ARGV: the channel of forgotten records, SKEW
-- A damaged record, or a key of another type, can be forgotten: that is how one gets rid of it.
local value = redis.pcall('GET', KEYS[1])
if not value then return 0 end
local time = redis.call('TIME')
local at = time[1] * 1000000 + time[2] + (ARGV[2] or 0)
local live = type(value) == 'table' or #value < NAMES or string.byte(value) ~= VERSION
if not live then
  local expires_at = struct.unpack('>I8', value, 7)
  live = expires_at > at
end
redis.call('DEL', KEYS[1])
redis.pcall('PUBLISH', KEYS[1], '')
redis.pcall('PUBLISH', ARGV[1], KEYS[1])
return live and {at, at} or 0

-- script: read
-- ARGV: SKEW
local value = redis.call('GET', KEYS[1])
if not value then return false end
local _, expires_at = open(value)
local time = redis.call('TIME')
return expires_at > time[1] * 1000000 + time[2] + (ARGV[1] or 0) and value
