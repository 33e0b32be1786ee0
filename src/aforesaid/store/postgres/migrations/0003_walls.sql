-- A second wall between spaces. Every transaction of Aforesaid names the space that it works in, and sees no row of
-- another, whatever its queries say. Work that goes over all spaces says so. Whoever says neither sees nothing:
--     SET aforesaid.space = 'default';   or   SET aforesaid.reach = 'all';
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'space', 'writer', 'person', 'thread', 'session', 'log', 'summary', 'summary_source', 'memory', 'memory_source',
        'memory_version', 'facts', 'forgotten', 'derived', 'setting', 'audit', 'spending', 'walk', 'agenda', 'embedder',
        'meaning', 'note_meaning', 'mark'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY wall ON %I USING (current_setting(''aforesaid.space'', true) = space'
            ' OR current_setting(''aforesaid.reach'', true) = ''all'')', name);
    END LOOP;
END
$$;
