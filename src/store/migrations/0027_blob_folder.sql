-- A blob folder is marked once: later a folder without the mark is a mount point without its disk, and stays unmarked.
alter table database_identity add column has_blob_folder boolean not null default false;
