-- The inboxes that are searched: words are stored of their messages alone. An inbox comes here with its first search, and goes,
-- with its words, when nobody has searched it for long.
create table searched_inbox (
  inbox_id text primary key,
  organization_id uuid not null,
  -- At its first search: the number of its newest message, and its greatest id. What came later comes out of the outbox, but
  -- for what was received long before it was filed: that may come with what is older.
  until_seq bigint not null,
  newest_id text not null,
  -- Of the messages before this id some are not indexed yet; null: it is complete.
  before_id text,
  used_at timestamptz not null,
  -- Nobody searches it any more: the words of messages up to this id are gone.
  removed_to text
);
create index searched_inbox_organization on searched_inbox (organization_id, inbox_id);
create index searched_inbox_unfinished on searched_inbox (organization_id, inbox_id) where before_id is not null;
create index searched_inbox_used on searched_inbox (used_at);
create index searched_inbox_removed on searched_inbox (inbox_id) where removed_to is not null;

-- What has been indexed by now stays so; an inbox that is indexed is complete.
insert into searched_inbox (inbox_id, organization_id, until_seq, newest_id, used_at)
select b.id, b.organization_id, 0, '', now() from (select distinct inbox_id from search_part) p
join inbox b on b.id = p.inbox_id and b.status = 'active';
