import { outcomeOf } from "../format/outcome.ts";
import { Icon } from "./icon.tsx";

const looks = {
  DELIVERED: { tone: "delivered", icon: "check" },
  PENDING: { tone: "waiting", icon: "wait" },
  FAILED: { tone: "failed", icon: "cross" },
} as const;

/** The status of one response, in the colour and shape of its meaning. @param status null: no response in time */
export function Answered({ status, word }: { status: number | null; word?: string }) {
  const { tone, icon } = looks[outcomeOf(status).state];
  return (
    <span class={`state ${tone}`}>
      <Icon name={icon} />
      {word ?? (status === null ? "no response" : status)}
    </span>
  );
}
