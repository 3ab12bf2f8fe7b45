import { account } from "./account.ts";
import { server } from "./server.ts";

/** Whether the operator holds back the account's deliveries: has paused everybody's, or suspended the account. */
export const holdsDeliveries = (): boolean =>
  (server.value?.paused.includes("deliveries") || account.value?.suspended_by.includes("operator")) ?? false;
