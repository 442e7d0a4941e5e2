-- When a step that failed is tried again, and whether anything is done at all.
alter table finale.season add column retry_at timestamptz;

create table finale.pause (
    only_one boolean primary key default true check (only_one),
    since    timestamptz not null default clock_timestamp(),
    who      text not null,
    because  text not null
);
