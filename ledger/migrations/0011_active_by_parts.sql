-- Players active since the watermark are looked at a part at a time: the last one, and the watermark that is due at the end.
alter table finale.live_check add column active_cursor bytea, add column active_horizon timestamptz;
