-- use bands
-- Counts the players of each band anew, by as many steps as there are bands, and tells or writes what it found.
-- KEYS  live key, hash of counts
-- ARGV  the bands, check|repair
-- Replies band, count, ... as counted and as they stood.
local band_of, end_of = bands(ARGV[1])
local counted, index, all = {}, 0, redis.call('ZCARD', KEYS[1])
while index < all do
  local band = band_of(tonumber(redis.call('ZRANGE', KEYS[1], index, index, 'WITHSCORES')[2]))
  local upto = end_of(band)
  local below = all
  if upto < math.huge then
    below = redis.call('ZCOUNT', KEYS[1], '-inf', '(' .. string.format('%.17g', upto))
  end
  counted[#counted + 1] = band_name(band)
  counted[#counted + 1] = string.format('%.0f', math.max(below - index, 1))
  index = math.max(below, index + 1)
end
local stood = redis.call('HGETALL', KEYS[2])
if ARGV[2] == 'repair' then
  redis.call('DEL', KEYS[2])
  for at = 1, #counted, 4000 do
    redis.call('HSET', KEYS[2], unpack(counted, at, math.min(at + 3999, #counted)))
  end
end
return {counted, stood}
