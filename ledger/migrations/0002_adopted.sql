alter table finale.season add column adopted boolean not null default false;
