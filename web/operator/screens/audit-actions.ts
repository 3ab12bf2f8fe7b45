import type { AuditAction } from "../../../src/domain/audit.ts";

/** What can be asked for, in the order of the menu. */
const actions: Readonly<Record<AuditAction, true>> = {
  "account.created": true,
  "account.deleted": true,
  "account.resumed": true,
  "account.suspended": true,
  "account.viewed": true,
  "api_key.rotated": true,
  "api_key.shown": true,
  "backup.started": true,
  "backup_verification.started": true,
  "deliveries.resumed": true,
  "charges.resumed": true,
  "email.changed": true,
  "event.replayed": true,
  "limits.set": true,
  login: true,
  "login.failed": true,
  "logout.all": true,
  "mail.tested": true,
  "master_key.rotated": true,
  "operator.login": true,
  "operator.refused": true,
  "operator_token.rotated": true,
  "password.changed": true,
  "password.reset": true,
  "tier.set": true,
  "tier.raised": true,
  "replay.cancelled": true,
  "replay.started": true,
  "server.restarted": true,
  "signing_key.rotated": true,
  "signing_secret.rotated": true,
  "signing_secret.shown": true,
  "webhook.enabled": true,
  "webhooks.changed": true,
};

export const actionOptions = [
  { value: "", text: "Anything" },
  ...Object.keys(actions).map((value) => ({ value, text: value })),
];
