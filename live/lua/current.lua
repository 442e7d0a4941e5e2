-- Names the open season's live key, if the key still says what the caller saw there.
-- KEYS  current key    ARGV  live key, and what was seen before, if anything was
-- Replies "same", "set", or "changed" and what is stored.
local stored = redis.call('GET', KEYS[1])
if stored == ARGV[1] then
  return {'same'}
end
if (stored or nil) ~= ARGV[2] then
  return {'changed', stored or ''}
end
redis.call('SET', KEYS[1], ARGV[1])
return {'set'}
