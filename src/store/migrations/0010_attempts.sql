-- What a recipient's attempt was is one row of event: its outcome, under the last of as many sequence numbers as it tells
-- events. When its recipient was taken up, at the first attempt, is the event "queued"; when it began, "attempted".
alter table event add column queued_at timestamptz;
alter table event add column began_at timestamptz;
-- What was said, in at most 2 KiB. Array of [command, ms since the attempt began, code, enhanced status, text].
alter table event add column conversation json;
alter table event alter column conversation set statistics 0;

-- A row of event to come, of one recipient of a submission. Functions of the release before take `fact` for it.
create type recipient_fact as (submission uuid, "position" integer, id uuid, type text, recipient text, at timestamptz,
  attempt integer, remote jsonb, response text, enhanced text, classification text, queued_at timestamptz,
  began_at timestamptz, conversation json);
