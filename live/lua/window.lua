-- Reads consecutive rows of a board, and what their ranks follow from, from one version of the set.
-- KEYS  live key
-- ARGV  high|low, then first and last index, or rows before, rows after and the member between them
-- Replies the index of the first row, how many members stand strictly above it, and member, score, ...
-- Replies an empty list where there is no such row.
local high = ARGV[1] == 'high'
local first, last = tonumber(ARGV[2]), tonumber(ARGV[3])
if ARGV[4] then
  local index = redis.call(high and 'ZREVRANK' or 'ZRANK', KEYS[1], ARGV[4])
  if not index then
    return {}
  end
  first, last = math.max(0, index - first), index + last
end

local range = {'ZRANGE', KEYS[1], first, last}
if high then
  range[#range + 1] = 'REV'
end
range[#range + 1] = 'WITHSCORES'
local rows = redis.call(unpack(range))
if #rows == 0 then
  return {}
end
local above = high and {'(' .. rows[2], '+inf'} or {'-inf', '(' .. rows[2]}
return {first, redis.call('ZCOUNT', KEYS[1], above[1], above[2]), rows}
