-- Finds the owner of a response by the id that the provider gave it, in all spaces. Only answers that the proxy stored
-- are in it.
CREATE INDEX log_by_response ON log (md5(details::jsonb -> 'metadata' ->> 'response'))
 WHERE details IS NOT NULL AND substr(given_id, 1, 6) = 'reply:';
