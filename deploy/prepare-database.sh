#!/bin/sh
# The database image runs this once. The role is not a superuser, so row-level security applies to it.
set -eu
psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" <<SQL
CREATE ROLE aforesaid LOGIN PASSWORD '$AFORESAID_PASSWORD';
CREATE DATABASE aforesaid OWNER aforesaid;
\connect aforesaid
CREATE EXTENSION IF NOT EXISTS vector;
SQL
