-- Words of a former service about why it suppressed the address, if the list that was imported had any.
alter table suppression add column note text check (length(note) <= 200);
