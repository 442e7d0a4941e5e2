-- Lets a board that was built beside the live key take its place, if nobody has taken over and nothing of it is missing.
-- KEYS  live key, what was built, its counts of bands, a name for the old one; fence, applied, bands, moving
-- ARGV  fence, rows built, then bucket, fence, number and new token of every bucket
-- Replies "swapped", or "fenced", "unclaimed" (bucket) or "rows" (how many there are).
local live, built, built_bands, old = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
if redis.call('GET', KEYS[5]) ~= ARGV[1] then
  return {'fenced'}
end
for at = 3, #ARGV, 4 do
  local stored = redis.call('HMGET', KEYS[6], 'f' .. ARGV[at], 'n' .. ARGV[at])
  if stored[1] ~= ARGV[at + 1] or (stored[2] or '0') ~= ARGV[at + 2] then
    return {'unclaimed', ARGV[at]}
  end
end
local rows = redis.call('ZCARD', built)
if string.format('%.0f', rows) ~= ARGV[2] then
  return {'rows', rows}
end

-- A rename onto a key frees that key at once, however big it is; moved aside first, it is freed in the background.
if redis.call('EXISTS', live) == 1 then
  redis.call('RENAME', live, old)
end
if rows > 0 then
  redis.call('RENAME', built, live)
end
redis.call('UNLINK', old, KEYS[7], KEYS[8])
if redis.call('EXISTS', built_bands) == 1 then
  redis.call('RENAME', built_bands, KEYS[7])
end
-- The swap counts as a batch of every bucket: if a failover loses it, the numbers say so.
for at = 3, #ARGV, 4 do
  local number = string.format('%.0f', tonumber(ARGV[at + 2]) + 1)
  redis.call('HSET', KEYS[6], 'n' .. ARGV[at], number, 't' .. ARGV[at], ARGV[at + 3])
end
return {'swapped'}
