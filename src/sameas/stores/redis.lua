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
--   8 bytes  check: the first hex digits of the SHA-1 of what follows it up to `told`
--   1 byte   state: h(eld), d(one), f(ailed)
--   8 bytes  each: expires_at, fence, lease_until, created_at, completed_at (0 while held)
--   4 bytes  each: attempt, and the sizes of fingerprint, attempt_id, said, told
--   then     fingerprint, attempt_id, said (JSON: identity and what people want to know), told (CRC-32 and JSON: media
--            type and meta of the outcome), and to the end the outcome's bytes
--
-- Replies: a record that is replayed or read is its string; a write that is taken is {at, expires_at} and one that is
-- not is 0. A record that is damaged or of another version is an error, never a miss.
--
-- `-- script: prelude` is put before every other script.

-- script: prelude
local VERSION, HELD = 1, 104
local NUMBERS = '>BI8I8I8I8I8I4I4I4I4I4'
local CHECKED = 10
local HEAD = 70
local GRACE = 1000

-- SKEW moves the clock in tests; it is left out otherwise.
local function now(skew)
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2] + (skew or 0)
end

local function open(value)
  local version = string.byte(value)
  if version ~= VERSION then error('SAMEAS-DAMAGED version ' .. tostring(version)) end
  if #value < HEAD then error('SAMEAS-DAMAGED short') end
  local state, expires_at, fence, lease_until, created_at, completed_at, attempt, print_size, id_size, said_size =
    struct.unpack(NUMBERS, value, CHECKED)
  local check = string.sub(redis.sha1hex(string.sub(value, CHECKED, HEAD + print_size + id_size + said_size)), 1, 8)
  if string.sub(value, 2, 9) ~= check then error('SAMEAS-DAMAGED check') end
  return state, expires_at, fence, lease_until, created_at, completed_at, attempt, print_size, id_size, said_size
end

local function keep(at, told, data, expires_at, names, state, ...)
  local checked = struct.pack(NUMBERS, state, expires_at, ...) .. names
  local value = string.char(VERSION) .. string.sub(redis.sha1hex(checked), 1, 8) .. checked .. told .. data
  redis.call('SET', KEYS[1], value, 'PX', math.ceil((expires_at - at) / 1000) + GRACE)
end

-- A user without the right to publish still has a store; waiters then poll.
local function tell(channel, message)
  redis.pcall('PUBLISH', channel, message)
end

-- script: claim
-- ARGV: fingerprint, attempt_id, lease_for, retain_for, said, SKEW
-- Replies {0, fence, attempt} for acquired, {1, time_left, attempt} for busy, {2, fingerprint} for a mismatch.
local at = now(ARGV[6])
local lease_until, expires_at = at + ARGV[3], at + ARGV[4]
local fence, attempt, created_at = at, 1, at
local fingerprint, attempt_id, said = ARGV[1], ARGV[2], ARGV[5]
local value = redis.call('GET', KEYS[1])
if value then
  local state, its_expiry, its_fence, its_lease, its_birth, _, its_attempt, print_size, id_size, said_size = open(value)
  if its_expiry > at then
    local its_print = string.sub(value, HEAD + 1, HEAD + print_size)
    if its_print ~= fingerprint then return {2, its_print} end
    if state ~= HELD then return value end
    attempt, created_at = its_attempt, its_birth
    local behind = HEAD + print_size + id_size
    if string.sub(value, HEAD + print_size + 1, behind) == attempt_id then
      fence, expires_at = its_fence, math.max(its_expiry, expires_at)
      said = string.sub(value, behind + 1, behind + said_size)
    elseif its_lease > at then
      return {1, its_lease - at, attempt}
    else
      fence, attempt = math.max(its_fence + 1, at), attempt + 1
    end
  else
    fence = math.max(its_fence + 1, at)
  end
end
keep(at, '', '', expires_at, fingerprint .. attempt_id .. said, HELD,
  fence, lease_until, created_at, 0, attempt, #fingerprint, #attempt_id, #said, 0)
return {0, fence, attempt}

-- script: renew
-- ARGV: fence, attempt_id, lease_for, retain_for, SKEW
local value = redis.call('GET', KEYS[1])
if not value then return 0 end
local at = now(ARGV[5])
local state, expires_at, fence, _, created_at, _, attempt, print_size, id_size, said_size = open(value)
if expires_at <= at or state ~= HELD or fence ~= tonumber(ARGV[1]) then return 0 end
if string.sub(value, HEAD + print_size + 1, HEAD + print_size + id_size) ~= ARGV[2] then return 0 end
expires_at = math.max(expires_at, at + ARGV[4])
keep(at, '', '', expires_at, string.sub(value, HEAD + 1), HELD,
  fence, at + ARGV[3], created_at, 0, attempt, print_size, id_size, said_size, 0)
return {at, expires_at}

-- script: settle
-- ARGV: fence, attempt_id, retain_for, state, told, data, SKEW
local value = redis.call('GET', KEYS[1])
if not value then return 0 end
local at, settled = now(ARGV[7]), string.byte(ARGV[4])
local state, expires_at, fence, lease_until, created_at, completed_at, attempt, print_size, id_size, said_size =
  open(value)
if expires_at <= at or fence ~= tonumber(ARGV[1]) then return 0 end
if string.sub(value, HEAD + print_size + 1, HEAD + print_size + id_size) ~= ARGV[2] then return 0 end
if state == settled then
  -- A write, if an idle one: WAIT on this connection then waits for the replicas to have the record too.
  redis.call('PEXPIRE', KEYS[1], math.ceil((expires_at - at) / 1000) + GRACE)
  return {completed_at, expires_at}
end
if state ~= HELD then return 0 end
expires_at = at + ARGV[3]
keep(at, ARGV[5], ARGV[6], expires_at, string.sub(value, HEAD + 1), settled,
  fence, lease_until, created_at, at, attempt, print_size, id_size, said_size, #ARGV[5])
tell(KEYS[1], '')
return {at, expires_at}

-- script: release
-- ARGV: fence, attempt_id, SKEW
local value = redis.call('GET', KEYS[1])
if not value then return 0 end
local at = now(ARGV[3])
local state, expires_at, fence, _, _, _, _, print_size, id_size = open(value)
if expires_at <= at or state ~= HELD or fence ~= tonumber(ARGV[1]) then return 0 end
if string.sub(value, HEAD + print_size + 1, HEAD + print_size + id_size) ~= ARGV[2] then return 0 end
redis.call('DEL', KEYS[1])
tell(KEYS[1], '')
return {at, at}

-- script: forget
-- ARGV: the channel of forgotten records, SKEW
-- A damaged record, or a key of another type, can be forgotten: that is how one gets rid of it.
local at = now(ARGV[2])
local value = redis.pcall('GET', KEYS[1])
if not value then return 0 end
local live = type(value) == 'table' or #value < HEAD or string.byte(value) ~= VERSION
if not live then
  local _, expires_at = struct.unpack(NUMBERS, value, CHECKED)
  live = expires_at > at
end
redis.call('DEL', KEYS[1])
tell(KEYS[1], '')
tell(ARGV[1], KEYS[1])
return live and {at, at} or 0

-- script: read
-- ARGV: SKEW
local value = redis.call('GET', KEYS[1])
if not value then return false end
local _, expires_at = open(value)
return expires_at > now(ARGV[1]) and value
