-- Whether a window of 60 s runs. One that begins in the future is left over from a clock that was wrong; the clocks of
-- nodes differ by less than a minute. Stable, as what it is made of, so that it is inlined.
create or replace function is_running(started_at timestamptz, at timestamptz) returns boolean
language sql stable
as $$
  select started_at > at - interval '60 s' and started_at < at + interval '60 s'
$$;
