-- Content of sends that belong to no inbox.

-- What the mail of a POST /v1/send is composed from: a message has no row there. It goes once nothing of the submission
-- waits and its lifetime is over.
create table send_content (
  submission_id uuid primary key,
  organization_id uuid not null,
  -- The customer's domain that it is sent from, so that what waits of it is found when that is deleted.
  domain_id uuid not null,
  internet_message_id text not null,
  recipients jsonb not null,
  text text not null,
  html text,
  headers jsonb not null,
  created_at timestamptz not null
) with (toast_tuple_target = 8160);
-- As in message: compressing and moving 5 KB out of the row costs more than the rest of its insertion.
alter table send_content alter column text set storage external;
alter table send_content alter column html set storage external;
alter table send_content alter column text set statistics 0;
alter table send_content alter column html set statistics 0;
alter table send_content alter column recipients set statistics 0;
alter table send_content alter column headers set statistics 0;
create index send_content_domain on send_content (domain_id, submission_id);
