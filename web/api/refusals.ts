/**
 * The dashboard's words for what the server refuses, by error code. Only codes whose server sentence is written for
 * programs (about a header, or a call to make) are listed here. Every other sentence is shown as the server sends it.
 */
export const refusals: Readonly<Record<string, string>> = {
  account_suspended: "Your account is suspended. Your account's page says why.",
  card_not_verified: "Your account is not active yet.",
  charge_outstanding: "A charge is outstanding. Your account's page says more.",
  duplicate_webhook: "Another webhook in the list has this URL.",
  payment_declined: "Your card was declined.",
  too_many_accounts: "Too many accounts were created from your network in the last hour.",
  too_many_email_changes: "The e-mail was changed too often in the last hour.",
  too_many_logins: "Too many failed sign-ins.",
  too_many_replays_today: "Your account has started all the bulk replays that it may start in 24 hours.",
  too_many_single_replays: "Your account replayed too many single events in the last minute.",
  too_many_tests: "You can send 10 test events a minute.",
  too_many_upgrades: "Too many upgrades were tried in the last minute.",
  too_many_webhook_changes: "The webhooks were changed too often in the last minute. Try again in a minute.",
  too_many_webhooks: "Your account may not have that many webhooks. Remove some first.",
  webhooks_changed: "Somebody else keeps changing the webhooks. Try again in a moment.",
};
