import type { AccountChange } from "../../src/stream/account-change.ts";

/** Whether what changed is part of the account as it is read. */
const isPartOfAccount: Readonly<Record<AccountChange, boolean>> = {
  tier: true,
  limits: true,
  standing: true,
  billing: true,
  login: true,
  webhooks: false,
  inbox: false,
  api_keys: false,
  signing_keys: false,
  signing_secret: false,
};

/** Whether the account has to be read again. @param changed as `account.changed` names it; a later server may add names */
export const changesAccount = (changed: string): boolean =>
  !Object.hasOwn(isPartOfAccount, changed) || isPartOfAccount[changed as AccountChange];
