-- Writes one batch of a bucket's scores, once, for the holder of the bucket's lease.
-- KEYS  live key, hash of applied batches
-- ARGV  bucket, fence, number, token, how many scores, then score, member, ... and then the members to remove
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

local function chunks(command, first, last)
  for from = first, last, CHUNK do
    redis.call(command, KEYS[1], unpack(ARGV, from, math.min(from + CHUNK - 1, last)))
  end
end
local removed = 6 + 2 * tonumber(ARGV[5])
chunks('ZADD', 6, removed - 1)
chunks('ZREM', removed, #ARGV)
-- Last, so that a right missing for one of these commands can leave scores without their number, never the reverse.
redis.call('HSET', KEYS[2], 'n' .. bucket, number, 't' .. bucket, token)
return {'applied', number}
