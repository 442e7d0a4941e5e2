-- Tells where a member stands, from one version of the set.
-- KEYS  live key
-- ARGV  high|low, member, and anything more where the member's bytes settle ties
-- Replies how many stand ahead of it (strictly better ones, or all before it), how many there are, and its score.
-- Replies an empty list for one who is not there.
local high = ARGV[1] == 'high'
local score = redis.call('ZSCORE', KEYS[1], ARGV[2])
if not score then
  return {}
end
local ahead
if ARGV[3] then
  ahead = redis.call(high and 'ZREVRANK' or 'ZRANK', KEYS[1], ARGV[2])
elseif high then
  ahead = redis.call('ZCOUNT', KEYS[1], '(' .. score, '+inf')
else
  ahead = redis.call('ZCOUNT', KEYS[1], '-inf', '(' .. score)
end
return {ahead, redis.call('ZCARD', KEYS[1]), score}
