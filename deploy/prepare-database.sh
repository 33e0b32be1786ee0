#!/bin/sh
# Run once by the database's image: a role that is no superuser, so that row-level security holds for it.
set -eu
psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" <<SQL
CREATE ROLE aforesaid LOGIN PASSWORD '$AFORESAID_PASSWORD';
CREATE DATABASE aforesaid OWNER aforesaid;
\connect aforesaid
CREATE EXTENSION vector;
SQL
