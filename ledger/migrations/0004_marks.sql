create table finale.bucket_mark (
    season_id int not null,
    bucket    smallint not null,
    shard     smallint not null,
    number    bigint not null,
    token     text not null,
    primary key (season_id, bucket, shard)
) with (fillfactor = 50);

insert into finale.bucket_mark (season_id, bucket, shard, number, token)
select season_id, bucket, 0, number, '' from finale.bucket_lease where number > 0;

alter table finale.bucket_lease drop column number, drop column server;
