-- Stores the fence of each bucket's lease, all or none, and replies the running number of each.
-- KEYS  hash of applied batches
-- ARGV  bucket, fence, bucket, fence, ...
-- Replies "claimed" and the numbers, or "fenced", the bucket and its stored fence.
for at = 1, #ARGV, 2 do
  local stored = redis.call('HGET', KEYS[1], 'f' .. ARGV[at])
  if stored and tonumber(stored) > tonumber(ARGV[at + 1]) then
    return {'fenced', ARGV[at], stored}
  end
end
local reply = {'claimed'}
for at = 1, #ARGV, 2 do
  redis.call('HSET', KEYS[1], 'f' .. ARGV[at], ARGV[at + 1])
  reply[#reply + 1] = redis.call('HGET', KEYS[1], 'n' .. ARGV[at]) or '0'
end
return reply
