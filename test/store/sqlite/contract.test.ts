import { suites } from "../../contract/suites.ts";
import { sqliteBackend } from "../../support/sqlite-backend.ts";

for (const suite of suites) suite(sqliteBackend);
