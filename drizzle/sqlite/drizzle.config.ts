import { defineConfig } from "drizzle-kit";

export default defineConfig({
  dialect: "sqlite",
  schema: [
    "./src/store/sqlite/schema.ts",
    "./src/store/sqlite/billing-schema.ts",
    "./src/store/sqlite/sandbox-schema.ts",
    "./src/store/sqlite/inbox-schema.ts",
    "./src/store/sqlite/audit-schema.ts",
    "./src/store/sqlite/mail-schema.ts",
  ],
  out: "./drizzle/sqlite/migrations",
  breakpoints: true,
});
