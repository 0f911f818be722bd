-- Reads the events without blocking changes of them.
ALTER TABLE "events" VALIDATE CONSTRAINT "events_type";
