import { account } from "./account.ts";
import { server } from "./server.ts";

/**
 * Whether the operator holds back the account's deliveries: has paused everybody's, or suspended the account. A server of the
 * release before, next to this one on the same database, does not say who has suspended it.
 */
export const holdsDeliveries = (): boolean =>
  (server.value?.paused.includes("deliveries") || account.value?.suspended_by?.includes("operator")) ?? false;
