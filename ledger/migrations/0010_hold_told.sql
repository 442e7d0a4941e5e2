-- Of which hold the webhook was told, so that of several daemons, and after a restart, nobody tells it again.
alter table finale.season add column hold_told_at timestamptz;
-- A lease that was given back runs until the epoch from now on; so that none of these looks taken over.
update finale.lease set expires_at = 'epoch' where expires_at <= clock_timestamp();
