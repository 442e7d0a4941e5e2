-- Tells, of one shard, where a member with a score stands or would stand, and the rows on either side of that place.
-- KEYS  shard
-- ARGV  high|low, score, member, rows before, rows from there on
-- Replies how many stand before it, how many are strictly better, how many there are, and the rows.
local high = ARGV[1] == 'high'
local score, member = ARGV[2], ARGV[3]
local function count(least, most)
  return redis.call('ZCOUNT', KEYS[1], least, most)
end
local better = high and count('(' .. score, '+inf') or count('-inf', '(' .. score)

-- Lua compares text as the server's locale has it; Redis orders members by their bytes.
local function comes_before(one, other)
  for at = 1, math.min(#one, #other) do
    local a, b = string.byte(one, at), string.byte(other, at)
    if a ~= b then
      return a < b
    end
  end
  return #one < #other
end
local function row(index)
  local range = {'ZRANGE', KEYS[1], index, index}
  if high then
    range[#range + 1] = 'REV'
  end
  return redis.call(unpack(range))[1]
end

local first, last = better, better + count(score, score)
if tonumber(redis.call('ZSCORE', KEYS[1], member) or 'nan') == tonumber(score) then
  first = redis.call(high and 'ZREVRANK' or 'ZRANK', KEYS[1], member)
  last = first
end
while first < last do
  local middle = math.floor((first + last) / 2)
  local found = row(middle)
  local before = comes_before(found, member)
  if high then
    before = comes_before(member, found)
  end
  if before then
    first = middle + 1
  else
    last = middle
  end
end

local from, to = math.max(0, first - tonumber(ARGV[4])), first + tonumber(ARGV[5]) - 1
local rows = {}
if to >= from then
  local range = {'ZRANGE', KEYS[1], from, to}
  if high then
    range[#range + 1] = 'REV'
  end
  range[#range + 1] = 'WITHSCORES'
  rows = redis.call(unpack(range))
end
return {first, better, redis.call('ZCARD', KEYS[1]), rows}
