-- Which band a score is in. Of bands as wide as W, the remainder is taken first, since it is exact and a quotient is not.
-- Returns a function of a score to its band, and one of a band to the score below which it ends.
local function bands(text)
  if string.sub(text, 1, 1) == 'w' then
    local width = tonumber(string.sub(text, 2))
    return function(score)
      local rest = math.fmod(score, width)
      if rest < 0 then
        rest = rest + width
      end
      local quotient = (score - rest) / width
      local below = math.floor(quotient)
      if quotient - below > 0.5 then
        below = below + 1
      end
      return below
    end, function(band)
      return (band + 1) * width
    end
  end
  local cuts = {}
  for cut in string.gmatch(string.sub(text, 2), '%S+') do
    cuts[#cuts + 1] = tonumber(cut)
  end
  return function(score)
    local low, high = 0, #cuts
    while low < high do
      local middle = math.floor((low + high) / 2)
      if cuts[middle + 1] <= score then
        low = middle + 1
      else
        high = middle
      end
    end
    return low
  end, function(band)
    return cuts[band + 1] or math.huge
  end
end
local function band_name(band)
  return string.format('%.0f', band)
end
