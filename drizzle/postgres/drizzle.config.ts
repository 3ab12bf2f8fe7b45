import { defineConfig } from "drizzle-kit";

export default defineConfig({
  dialect: "postgresql",
  schema: [
    "./src/store/postgres/schema.ts",
    "./src/store/postgres/event-schema.ts",
    "./src/store/postgres/node-schema.ts",
    "./src/store/postgres/billing-schema.ts",
    "./src/store/postgres/sandbox-schema.ts",
    "./src/store/postgres/inbox-schema.ts",
    "./src/store/postgres/audit-schema.ts",
    "./src/store/postgres/mail-schema.ts",
  ],
  out: "./drizzle/postgres/migrations",
  breakpoints: true,
});
