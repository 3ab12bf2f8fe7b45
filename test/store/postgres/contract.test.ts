import { suites } from "../../contract/suites.ts";
import { describeWithPostgres } from "../../support/postgres.ts";
import { postgresBackend } from "../../support/postgres-backend.ts";

describeWithPostgres("with PostgreSQL", () => {
  for (const suite of suites) suite(postgresBackend);
});
