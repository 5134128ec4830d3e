-- The names of hosts and addresses of a destination that were asked in the present round.

alter table route add column asked text[] not null default '{}';
