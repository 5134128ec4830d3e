-- Locks the word index for this transaction. Requests get the lock in their order. Returns false after `wait_ms` without
-- it. Writes nothing.
create or replace function claim_words(wait_ms integer) returns boolean
language plpgsql
as $$
declare
  former text := current_setting('lock_timeout');
begin
  perform set_config('lock_timeout', greatest(wait_ms, 1) || 'ms', true);
  perform pg_advisory_xact_lock(2003985523, 0);
  perform set_config('lock_timeout', former, true);
  return true;
exception when lock_not_available then
  return false;
end $$;
