import { Icon } from "../../parts/icon.tsx";
import type { Account } from "../api/types.ts";

/** Whether an account works, in a word and a colour. */
export function Standing({ of: { status, suspended_by } }: { of: Pick<Account, "status" | "suspended_by"> }) {
  const isWell = status === "active";
  const tone = isWell ? "delivered" : status === "suspended" ? "failed" : "waiting";
  return (
    <span class={`state ${tone}`}>
      <Icon name={isWell ? "check" : "warn"} />
      {status.replaceAll("_", " ")}
      {suspended_by?.length > 0 &&
        ` (${suspended_by.map((by) => (by === "operator" ? "by you" : "for payment")).join(", ")})`}
    </span>
  );
}
