-- What made a DMARC report begin, for the shares of a day's reports: the network of the first mail, null for a trusted peer, and
-- the domain that somebody registered. Null as well: of a release before these columns.
alter table dmarc_report add column network text;
alter table dmarc_report add column registered_domain text;
