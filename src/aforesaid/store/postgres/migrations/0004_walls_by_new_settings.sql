-- needs 4
-- The walls between spaces compare with the settings of this name: aforesaid.space and aforesaid.reach. Databases of
-- earlier versions compared with settings of another name, and their queue had another name too.
DO $$
DECLARE
    name text;
BEGIN
    FOR name IN SELECT tablename FROM pg_policies WHERE policyname = 'wall' AND schemaname = current_schema() LOOP
        EXECUTE format(
            'ALTER POLICY wall ON %I USING (current_setting(''aforesaid.space'', true) = space'
            ' OR current_setting(''aforesaid.reach'', true) = ''all'')', name);
    END LOOP;
    IF to_regclass('procrastinate_jobs') IS NOT NULL THEN
        UPDATE procrastinate_jobs SET queue_name = 'aforesaid'
         WHERE status = 'todo' AND task_name IN ('extract', 'digest', 'whole');
    END IF;
END
$$;
