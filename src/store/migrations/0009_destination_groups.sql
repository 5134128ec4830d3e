-- The limits of destination groups that were refused for load, or whose rules count messages. They hold for all nodes.
create table destination_group (
  name text primary key,
  connections integer not null,
  -- Messages in a minute and in an hour that the group was seen to take at most.
  per_minute integer,
  per_hour integer,
  paused_until timestamptz,
  -- Refusals without a success in between.
  refusals integer not null,
  refused_first timestamptz,
  refused_at timestamptz,
  -- The rule or the status that paused it. Has no text of a server, because it may identify a message.
  reason text,
  -- Messages sent, by the length of the period in milliseconds, as pairs of a step of the period and a count.
  sent jsonb not null,
  changed_at timestamptz not null
);

-- The nodes that send to a group now. Written only while the service has several nodes.
create table destination_group_node (
  name text not null,
  node bigint not null,
  primary key (name, node)
);

-- The group of the queue's mail server, once the group has a row.
alter table route add column destination_group text;
