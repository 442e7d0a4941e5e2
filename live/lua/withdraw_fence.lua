-- Removes a fence, if it is the caller's.
-- KEYS  fence    ARGV  fence
-- Replies how many were removed.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('DEL', KEYS[1])
