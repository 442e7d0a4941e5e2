-- Removes a bucket's claim, if it is the caller's and no batch was ever applied in that bucket.
-- KEYS  hash of applied batches
-- ARGV  bucket, fence
-- Replies how many claims were removed.
local claim, number = 'f' .. ARGV[1], 'n' .. ARGV[1]
if redis.call('HGET', KEYS[1], claim) ~= ARGV[2] or redis.call('HEXISTS', KEYS[1], number) == 1 then
  return 0
end
return redis.call('HDEL', KEYS[1], claim)
