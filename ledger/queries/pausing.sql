-- name: find
select since, who, because from finale.pause;

-- name: pause
insert into finale.pause (who, because) values (%(who)s, %(because)s)
on conflict (only_one) do nothing
returning since;

-- name: resume
delete from finale.pause returning since, who, because;
