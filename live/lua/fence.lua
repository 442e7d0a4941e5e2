-- Raises the fence beside a live key; never lowers it.
-- KEYS  fence    ARGV  fence
-- Replies the fence that is stored now: the caller's own, or a higher one that refuses it.
local stored = redis.call('GET', KEYS[1])
if stored and (tonumber(stored) or math.huge) >= tonumber(ARGV[1]) then
  return stored
end
-- Removed first, for a server at maxmemory: it looks only at the first write of a script, and lets a removal pass.
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1])
return ARGV[1]
