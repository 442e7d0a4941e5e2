-- name: lock_board
select pg_advisory_xact_lock(hashtextextended('finale.chain:' || %(board)s, 0));

-- name: last
select number, sha256 from finale.seal where board = %(board)s order by number desc limit 1;

-- name: find
select number, previous, sha256, body, committed_at from finale.seal where season_id = %(key)s and kind = %(kind)s;

-- name: commit
insert into finale.seal (season_id, kind, board, number, previous, sha256, body, fence)
values (%(key)s, %(kind)s, %(board)s, %(number)s, %(previous)s, %(sha256)s, %(body)s, %(fence)s);

-- name: numbered
select season_id, kind from finale.seal where board = %(board)s and number = %(number)s;

-- name: adopt
update finale.seal
set number = %(number)s, previous = %(previous)s, sha256 = %(sha256)s, body = %(body)s, fence = %(fence)s
where season_id = %(key)s and kind = %(kind)s;

-- name: kinds
select s.season, seal.kind from finale.seal join finale.season s using (season_id) where seal.board = %(board)s;

-- name: withdraw
delete from finale.seal where season_id = %(key)s and kind = %(kind)s and sha256 = %(sha256)s;

-- name: newest_put
-- A step records its season's state, a correction its delivery, only after the seal was put.
select s.season_id as key, s.season, c.kind, c.board, c.number, c.sha256
from finale.seal c join finale.season s using (season_id)
where c.kind = 'standings' and s.state in ('sealed', 'rewarded', 'delivered', 'cleaned')
   or c.kind = 'grants' and s.state in ('rewarded', 'delivered', 'cleaned')
   or c.kind like 'correction-%%' and exists (
     select from finale.delivery d
     where d.season_id = c.season_id and d.correction = substring(c.kind from 12)::int
   )
order by c.board = %(board)s desc, case when c.board = %(board)s then c.number end desc nulls last, c.committed_at desc
limit 1;
