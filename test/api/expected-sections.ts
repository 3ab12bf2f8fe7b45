/**
 * The sections that rows in this folder have to prove: headings of the specification and numbers of the rules. A section
 * without a row fails `sections.test.ts`, and so does a row with a section that is not here.
 */
export const expectedSections: readonly string[] = [
  // Resources and their fields
  "spec: Tenant",
  "spec: Event record",
  "spec: Webhook entry",
  "spec: API key record",
  "spec: Replay group",
  // States and transitions
  "spec: Event state values",
  "spec: Tenant tier and activation moves",
  // Endpoints
  "spec: Accounts",
  "spec: Login",
  "spec: API keys",
  "spec: Ingestion",
  "spec: Events",
  "spec: Webhooks",
  "spec: Replays",
  "spec: Dashboard stream",
  // The rest
  "spec: Authentication",
  "spec: Errors",
  "spec: Limits",
  "spec: Versioning",
  // Rules: modes, identifiers, requests, accounts, keys, ingestion, records, delivery, webhooks, replays, stream,
  // payments, operator
  ...Array.from({ length: 13 }, (_, i) => `rules ${i + 1}`),
  // What a webhook may be told
  "rules 14",
  // Answers that are bounded
  "rules 15",
  // Who did what
  "rules 16",
  // The operator in a browser
  "rules 17",
];
