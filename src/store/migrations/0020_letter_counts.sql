-- Letters of the service that were sent within a window of time, by a keyed digest of whom they count against.
create table letter_count (
  subject bytea primary key,
  letters integer not null,
  ends_at timestamptz not null
);
create index letter_count_ends on letter_count (ends_at);
