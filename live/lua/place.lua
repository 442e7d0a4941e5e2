-- Tells where a member stands, from one version of the set.
-- KEYS  live key
-- ARGV  high|low, member
-- Replies its index, how many members stand strictly above it, how many there are, and its score.
-- Replies an empty list for one who is not there.
local high = ARGV[1] == 'high'
local score = redis.call('ZSCORE', KEYS[1], ARGV[2])
if not score then
  return {}
end
local above = high and {'(' .. score, '+inf'} or {'-inf', '(' .. score}
return {
  redis.call(high and 'ZREVRANK' or 'ZRANK', KEYS[1], ARGV[2]),
  redis.call('ZCOUNT', KEYS[1], above[1], above[2]),
  redis.call('ZCARD', KEYS[1]),
  score,
}
