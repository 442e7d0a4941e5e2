-- Stores the fence of each bucket's lease, all or none, and replies how far each was written.
-- KEYS  hash of applied batches
-- ARGV  bucket, fence, bucket, fence, ...
-- Replies "claimed" and the number and token of each bucket's last batch, or "fenced", the bucket and its stored fence.
for at = 1, #ARGV, 2 do
  local stored = redis.call('HGET', KEYS[1], 'f' .. ARGV[at])
  if stored and tonumber(stored) > tonumber(ARGV[at + 1]) then
    return {'fenced', ARGV[at], stored}
  end
end
local reply = {'claimed'}
for at = 1, #ARGV, 2 do
  redis.call('HSET', KEYS[1], 'f' .. ARGV[at], ARGV[at + 1])
  local found = redis.call('HMGET', KEYS[1], 'n' .. ARGV[at], 't' .. ARGV[at])
  reply[#reply + 1] = found[1] or '0'
  reply[#reply + 1] = found[2] or ''
end
return reply
