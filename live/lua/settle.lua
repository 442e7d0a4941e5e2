-- Forgets the marks of players who have been moved, where nobody has marked them again.
-- KEYS  hash of players who are moving
-- ARGV  the mark, then members
for at = 2, #ARGV do
  if redis.call('HGET', KEYS[1], ARGV[at]) == ARGV[1] then
    redis.call('HDEL', KEYS[1], ARGV[at])
  end
end
return #ARGV - 1
