-- Returns whether a window of 60 s is running. A start 60 s or more in the future comes from a wrong clock, because the
-- clocks of nodes differ by less than a minute. `stable`, like its operators, so that it is inlined.
create or replace function is_running(started_at timestamptz, at timestamptz) returns boolean
language sql stable
as $$
  select started_at > at - interval '60 s' and started_at < at + interval '60 s'
$$;
