import { Icon } from "./icon.tsx";

/** The only three meanings that have a colour, each with a shape and a word. */
const looks = {
  DELIVERED: { tone: "delivered", icon: "check", word: "Delivered" },
  PENDING: { tone: "waiting", icon: "wait", word: "Waiting" },
  FAILED: { tone: "failed", icon: "cross", word: "Failed" },
} as const;

/** The state of a record. A state that this page does not know yet is shown as is. */
export function DeliveryState({ state, isShort = false }: { state: string; isShort?: boolean }) {
  const look = state in looks ? looks[state as keyof typeof looks] : null;
  if (state === "SKIPPED") return <span class="state soft">Skipped</span>;
  if (!look) return <span class="state">{state}</span>;
  return (
    <span class={`state ${look.tone}`} title={look.word}>
      <Icon name={look.icon} />
      <span class={isShort ? "visually-hidden" : ""}>{look.word}</span>
    </span>
  );
}
