-- Adds entries to a stream unless an entry after a mark has their first value already.
-- KEYS: the stream. ARGV: the mark, the most entries to look at, the number of fields, their names, then the values of
-- each entry. Replies "moved" where more entries follow the mark than may be looked at, else how many were added.
local mark, most, width = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local after = redis.call('XRANGE', KEYS[1], '(' .. mark, '+', 'COUNT', most)
if #after >= most then
  return 'moved'
end
local there = {}
for _, entry in ipairs(after) do
  for at = 1, #entry[2], 2 do
    if entry[2][at] == ARGV[4] then
      there[entry[2][at + 1]] = true
    end
  end
end
local added = 0
for first = 4 + width, #ARGV, width do
  if not there[ARGV[first]] then
    local entry = {}
    for field = 0, width - 1 do
      entry[#entry + 1] = ARGV[4 + field]
      entry[#entry + 1] = ARGV[first + field]
    end
    redis.call('XADD', KEYS[1], '*', unpack(entry))
    added = added + 1
  end
end
return added
