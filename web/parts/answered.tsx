import { outcomeOf } from "../format/outcome.ts";
import { Icon } from "./icon.tsx";

const looks = {
  DELIVERED: { tone: "delivered", icon: "check" },
  PENDING: { tone: "waiting", icon: "wait" },
  FAILED: { tone: "failed", icon: "cross" },
} as const;

/** The status of one answer, in the colour and with the shape of what it means. @param status null: none in time */
export function Answered({ status, word }: { status: number | null; word?: string }) {
  const { tone, icon } = looks[outcomeOf(status).state];
  return (
    <span class={`state ${tone}`}>
      <Icon name={icon} />
      {word ?? (status === null ? "no response" : status)}
    </span>
  );
}
