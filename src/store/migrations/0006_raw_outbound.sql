-- Outbound mail that is sent as the bytes that a client wrote.

-- Sent: the raw row is the whole message, as it is sent. Otherwise it has only the attachments.
alter table message add column raw_whole boolean not null default false;
-- The whole message, as it is sent; null if it is composed.
alter table send_content add column raw_id uuid;
create index send_content_raw on send_content (raw_id) where raw_id is not null;
