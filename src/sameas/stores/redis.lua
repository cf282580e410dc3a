-- The life of a record in Redis, as `sameas.once.protocol` tells it. One key per script, so that a cluster can run it.
--
-- Keys (PREFIX is `sameas:` unless the store was opened with another)
--   PREFIX <64 hex>   string   one record; the hex is the digest of tenant, scope and key. Its native expiry comes a
--                              second after expires_at, so that a claim still finds the fence of what just expired.
-- Channels
--   PREFIX <64 hex>            the record was completed, failed, released or forgotten; the message is empty
--   PREFIX forgotten           a record was forgotten; the message is its key
--
-- A record is one string, numbers big-endian, times in microseconds by this server's clock:
--   1 byte   version
--   8 bytes  check: the first hex digits of the SHA-1 of the numbers, which are
--   1 byte     state: h(eld), d(one), f(ailed)
--   8 bytes    each: expires_at, fence, lease_until, created_at, completed_at (0 while held)
--   4 bytes    each: attempt, the sizes of fingerprint, attempt_id, said, told, and the CRC-32 of the names
--   then     the names: fingerprint, attempt_id, said (JSON: identity and what people want to know)
--            told (CRC-32 and JSON: media type and meta of the outcome), and to the end the outcome's bytes
--
-- Lua hashes every byte of every string that it makes, so there is little of that here: scripts check the numbers, which
-- they reckon with, and whoever reads a record checks the rest.
--
-- Replies: a record that is replayed or read is its string; a write that is taken is {at, expires_at} and one that is
-- not is 0. A record that is damaged or of another version is an error, never a miss.
--
-- LASTING is the native expiry of what is kept for as long as asked. SKEW moves the clock in tests; it is left out
-- otherwise. `-- script: prelude` is put before every other script.

-- script: prelude
local VERSION, HELD = '\2', 104
local NUMBERS = '>BI8I8I8I8I8I4I4I4I4I4I4'
local HEAD = 74
local GRACE = 1000

local function open(value)
  if string.sub(value, 1, 1) ~= VERSION then error('SAMEAS-DAMAGED version ' .. tostring(string.byte(value))) end
  if #value < HEAD then error('SAMEAS-DAMAGED short') end
  if string.sub(value, 2, 9) ~= string.sub(redis.sha1hex(string.sub(value, 10, HEAD)), 1, 8) then
    error('SAMEAS-DAMAGED check')
  end
  return struct.unpack(NUMBERS, value, 10)
end

-- script: claim
-- ARGV: fingerprint, attempt_id, lease_for, retain_for, said, check of the names, LASTING, SKEW
-- Replies {0, fence, attempt} for acquired, {1, time_left, attempt} for busy, {2, the record without its outcome's
-- bytes} for a mismatch.
local value = redis.call('GET', KEYS[1])
local time = redis.call('TIME')
local at = time[1] * 1000000 + time[2] + (ARGV[8] or 0)
local fingerprint, attempt_id, said, check = ARGV[1], ARGV[2], ARGV[5], ARGV[6]
local fence, attempt, created_at, expires_at, lasting = at, 1, at, at + ARGV[4], ARGV[7]
if value then
  local state, its_expiry, its_fence, its_lease, its_birth, _, its_attempt, print_size, id_size, said_size, told_size,
    its_check = open(value)
  if its_expiry > at then
    local id_at = HEAD + print_size
    local said_at = id_at + id_size
    if string.sub(value, HEAD + 1, id_at) ~= fingerprint then
      return {2, string.sub(value, 1, said_at + said_size + told_size)}
    end
    if state ~= HELD then return value end
    attempt, created_at = its_attempt, its_birth
    if string.sub(value, id_at + 1, said_at) == attempt_id then
      fence, said, check = its_fence, string.sub(value, said_at + 1, said_at + said_size), its_check
      if its_expiry > expires_at then
        expires_at, lasting = its_expiry, math.ceil((its_expiry - at) / 1000) + GRACE
      end
    elseif its_lease > at then
      return {1, its_lease - at, attempt}
    else
      fence, attempt = math.max(its_fence + 1, at), attempt + 1
    end
  else
    fence = math.max(its_fence + 1, at)
  end
end
local numbers = struct.pack(NUMBERS, HELD, expires_at, fence, at + ARGV[3], created_at, 0, attempt,
  #fingerprint, #attempt_id, #said, 0, check)
redis.call('SET', KEYS[1],
  VERSION .. string.sub(redis.sha1hex(numbers), 1, 8) .. numbers .. fingerprint .. attempt_id .. said, 'PX', lasting)
return {0, fence, attempt}

-- script: renew
-- ARGV: fence, attempt_id, lease_for, retain_for, SKEW
local value = redis.call('GET', KEYS[1])
if not value then return 0 end
local time = redis.call('TIME')
local at = time[1] * 1000000 + time[2] + (ARGV[5] or 0)
local state, expires_at, fence, _, created_at, _, attempt, print_size, id_size, said_size, _, check = open(value)
local id_at = HEAD + print_size
if expires_at <= at or state ~= HELD or fence ~= tonumber(ARGV[1]) then return 0 end
if string.sub(value, id_at + 1, id_at + id_size) ~= ARGV[2] then return 0 end
expires_at = math.max(expires_at, at + ARGV[4])
local numbers = struct.pack(NUMBERS, HELD, expires_at, fence, at + ARGV[3], created_at, 0, attempt,
  print_size, id_size, said_size, 0, check)
redis.call('SET', KEYS[1],
  VERSION .. string.sub(redis.sha1hex(numbers), 1, 8) .. numbers .. string.sub(value, HEAD + 1),
  'PX', math.ceil((expires_at - at) / 1000) + GRACE)
return {at, expires_at}

-- script: settle
-- ARGV: fence, attempt_id, retain_for, state, told, data, LASTING, SKEW
local value = redis.call('GET', KEYS[1])
if not value then return 0 end
local time = redis.call('TIME')
local at = time[1] * 1000000 + time[2] + (ARGV[8] or 0)
local settled = string.byte(ARGV[4])
local state, expires_at, fence, lease_until, created_at, completed_at, attempt, print_size, id_size, said_size, _,
  check = open(value)
local id_at = HEAD + print_size
if expires_at <= at or fence ~= tonumber(ARGV[1]) then return 0 end
if string.sub(value, id_at + 1, id_at + id_size) ~= ARGV[2] then return 0 end
if state == settled then
  -- A write, if an idle one: WAIT on this connection then waits for the replicas to have the record too.
  redis.call('PEXPIRE', KEYS[1], math.ceil((expires_at - at) / 1000) + GRACE)
  return {completed_at, expires_at}
end
if state ~= HELD then return 0 end
expires_at = at + ARGV[3]
local numbers = struct.pack(NUMBERS, settled, expires_at, fence, lease_until, created_at, at, attempt,
  print_size, id_size, said_size, #ARGV[5], check)
redis.call('SET', KEYS[1],
  VERSION .. string.sub(redis.sha1hex(numbers), 1, 8) .. numbers .. string.sub(value, HEAD + 1) .. ARGV[5] .. ARGV[6],
  'PX', ARGV[7])
-- A user without the right to publish still has a store; waiters then poll.
redis.pcall('PUBLISH', KEYS[1], '')
return {at, expires_at}

-- script: release
-- ARGV: fence, attempt_id, SKEW
local value = redis.call('GET', KEYS[1])
if not value then return 0 end
local time = redis.call('TIME')
local at = time[1] * 1000000 + time[2] + (ARGV[3] or 0)
local state, expires_at, fence, _, _, _, _, print_size, id_size = open(value)
if expires_at <= at or state ~= HELD or fence ~= tonumber(ARGV[1]) then return 0 end
if string.sub(value, HEAD + print_size + 1, HEAD + print_size + id_size) ~= ARGV[2] then return 0 end
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
local live = type(value) == 'table' or #value < HEAD or string.sub(value, 1, 1) ~= VERSION
if not live then
  local _, expires_at = struct.unpack(NUMBERS, value, 10)
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
