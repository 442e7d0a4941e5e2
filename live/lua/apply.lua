-- use bands
-- Writes a batch of scores of each of some buckets, once, for the holders of the buckets' leases.
-- KEYS  live key, hash of applied batches, hash of players who are moving, hash of players in each band
-- ARGV  the mark of players who may be moving here, the bands (both empty where the board has none); then for each batch:
--       bucket, fence, number, token, how many scores, how many to remove, score, member, ... and the members to remove
-- Replies of each batch "applied", "unclaimed" (stored fence), "fenced" (stored fence) or "number" (stored number). A
-- batch that is refused changes nothing, and keeps no other from being written.
local CHUNK = 4000 -- even, and below the 8,000 values that Lua can unpack
local mark, scale = ARGV[1], ARGV[2]

local function each_chunk(command, first, last)
  for from = first, last, CHUNK do
    redis.call(command, KEYS[1], unpack(ARGV, from, math.min(from + CHUNK - 1, last)))
  end
end

local function refusal(bucket, fence, number, token)
  local stored = redis.call('HMGET', KEYS[2], 'f' .. bucket, 'n' .. bucket, 't' .. bucket)
  if not stored[1] or tonumber(stored[1]) < tonumber(fence) then
    return 'unclaimed', stored[1] or ''
  end
  if stored[1] ~= fence then
    return 'fenced', stored[1]
  end
  if stored[2] == number and stored[3] == token then
    return 'applied', number -- the same call, sent again because its first answer was lost
  end
  if tonumber(stored[2] or '0') ~= tonumber(number) - 1 then
    return 'number', stored[2] or '0'
  end
end

-- Before the scores, so that nobody sees a player twice and cannot tell which is the newer.
local function note_moving(first, removed, last)
  for at = first, removed - 1, 2 do
    redis.call('HSET', KEYS[3], ARGV[at + 1], mark)
  end
  for at = removed, last do
    redis.call('HDEL', KEYS[3], ARGV[at])
  end
end

local function write_counted(first, removed, last)
  local band_of, changes = bands(scale), {}
  local function change(score, by)
    local band = band_name(band_of(tonumber(score)))
    changes[band] = (changes[band] or 0) + by
  end
  local function leaves(member)
    local score = redis.call('ZSCORE', KEYS[1], member)
    if score then
      change(score, -1)
    end
  end
  for at = first, removed - 1, 2 do
    leaves(ARGV[at + 1])
    change(ARGV[at], 1)
    redis.call('ZADD', KEYS[1], ARGV[at], ARGV[at + 1])
  end
  for at = removed, last do
    leaves(ARGV[at])
    redis.call('ZREM', KEYS[1], ARGV[at])
  end
  for band, by in pairs(changes) do
    if by ~= 0 and redis.call('HINCRBY', KEYS[4], band, string.format('%.0f', by)) == 0 then
      redis.call('HDEL', KEYS[4], band)
    end
  end
end

local reply, at = {}, 3
while at <= #ARGV do
  local bucket, fence, number, token = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local first = at + 6
  local removed = first + 2 * tonumber(ARGV[at + 4])
  local last = removed + tonumber(ARGV[at + 5]) - 1
  local status, stored = refusal(bucket, fence, number, token)
  if not status then
    if mark ~= '' then
      note_moving(first, removed, last)
    end
    if scale ~= '' then
      write_counted(first, removed, last)
    else
      each_chunk('ZADD', first, removed - 1)
      each_chunk('ZREM', removed, last)
    end
    -- Last, so that a right missing for one of these commands can leave scores without their number, never the reverse.
    redis.call('HSET', KEYS[2], 'n' .. bucket, number, 't' .. bucket, token)
    status, stored = 'applied', number
  end
  reply[#reply + 1] = status
  reply[#reply + 1] = stored
  at = last + 1
end
return reply
