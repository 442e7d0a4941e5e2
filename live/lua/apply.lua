-- use bands
-- Writes one batch of a bucket's scores, once, for the holder of the bucket's lease.
-- KEYS  live key, hash of applied batches, hash of players who are moving, hash of players in each band
-- ARGV  bucket, fence, number, token, the mark of players who may be moving here, the bands (both empty where the board
--       has none), how many scores, then score, member, ... and then the members to remove
-- Replies "applied", "unclaimed" (stored fence), "fenced" (stored fence) or "number" (stored number).
local CHUNK = 4000 -- even, and below the 8,000 values that Lua can unpack

local bucket, fence, number, token = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local stored = redis.call('HMGET', KEYS[2], 'f' .. bucket, 'n' .. bucket, 't' .. bucket)
if not stored[1] or tonumber(stored[1]) < tonumber(fence) then
  return {'unclaimed', stored[1] or ''}
end
if stored[1] ~= fence then
  return {'fenced', stored[1]}
end
if stored[2] == number and stored[3] == token then
  return {'applied', number} -- the same call, sent again because its first answer was lost
end
if tonumber(stored[2] or '0') ~= tonumber(number) - 1 then
  return {'number', stored[2] or '0'}
end

local mark, scale = ARGV[5], ARGV[6]
local removed = 8 + 2 * tonumber(ARGV[7])
local function chunks(command, first, last)
  for from = first, last, CHUNK do
    redis.call(command, KEYS[1], unpack(ARGV, from, math.min(from + CHUNK - 1, last)))
  end
end

-- Before the scores, so that nobody sees a player twice and cannot tell which is the newer.
if mark ~= '' then
  for at = 8, removed - 1, 2 do
    redis.call('HSET', KEYS[3], ARGV[at + 1], mark)
  end
  for at = removed, #ARGV do
    redis.call('HDEL', KEYS[3], ARGV[at])
  end
end
if scale ~= '' then
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
  for at = 8, removed - 1, 2 do
    leaves(ARGV[at + 1])
    change(ARGV[at], 1)
    redis.call('ZADD', KEYS[1], ARGV[at], ARGV[at + 1])
  end
  for at = removed, #ARGV do
    leaves(ARGV[at])
    redis.call('ZREM', KEYS[1], ARGV[at])
  end
  for band, by in pairs(changes) do
    if by ~= 0 and redis.call('HINCRBY', KEYS[4], band, string.format('%.0f', by)) == 0 then
      redis.call('HDEL', KEYS[4], band)
    end
  end
else
  chunks('ZADD', 8, removed - 1)
  chunks('ZREM', removed, #ARGV)
end
-- Last, so that a right missing for one of these commands can leave scores without their number, never the reverse.
redis.call('HSET', KEYS[2], 'n' .. bucket, number, 't' .. bucket, token)
return {'applied', number}
