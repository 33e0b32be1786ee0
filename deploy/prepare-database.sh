#!/bin/sh
# Run once by the database's image: a role that is no superuser, so that row-level security holds for it.
set -eu
psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" <<SQL
CREATE ROLE recollect LOGIN PASSWORD '$RECOLLECT_PASSWORD';
CREATE DATABASE recollect OWNER recollect;
\connect recollect
CREATE EXTENSION vector;
SQL
