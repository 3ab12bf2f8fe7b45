import type { Webhook } from "../../api/types.ts";
import { isolated } from "../../format/controls.ts";
import { reasonInWords } from "../../format/failure.ts";
import { hostOf, shortenId } from "../../format/shorten.ts";
import { exactTime } from "../../format/time.ts";
import type { Filter, Span, StateChoice } from "./filter.ts";
import { isCalled } from "./receivers.ts";

export const stateWords: Readonly<Record<StateChoice, string>> = {
  "": "All states",
  delivered: "Delivered",
  waiting: "Waiting",
  failed: "Failed",
  skipped: "Skipped",
};

export const spanWords: Readonly<Record<Span, string>> = {
  "": "Any time",
  "10m": "Last 10 minutes",
  "1h": "Last hour",
  "24h": "Last 24 hours",
  "7d": "Last 7 days",
  custom: "Custom range",
};

type Webhooks = readonly Webhook[] | undefined;

/**
 * A webhook as people know it, as part of a sentence: its name, otherwise its host. One that is no longer registered has
 * only the host.
 */
export function webhookInWords(idOrUrl: string, webhooks: Webhooks): string {
  const known = webhooks?.find(isCalled(idOrUrl));
  return known?.name ? isolated(known.name) : hostOf(known?.url ?? idOrUrl);
}

/** One thing that a list is narrowed by. */
export interface Chip {
  readonly text: string;
  /** The change that removes it. */
  readonly without: Partial<Filter>;
}

/** Everything that a list is narrowed by, each in a few words. */
export function chipsOf(filter: Filter, webhooks: Webhooks): Chip[] {
  const { state, type, webhook, code, status, q, replay, span } = filter;
  const chips: (Chip | false)[] = [
    q !== "" && { text: `“${q}”`, without: { q: "" } },
    replay !== "" && { text: `Replay ${shortenId(replay)}`, without: { replay: "" } },
    state !== "" && { text: stateWords[state], without: { state: "" } },
    type !== "" && { text: isolated(type), without: { type: "" } },
    webhook !== "" && { text: webhookInWords(webhook, webhooks), without: { webhook: "" } },
    `${code}${status}` !== "" && { text: reasonInWords(code, status), without: { code: "", status: "" } },
    span !== "" && { text: timeInWords(filter), without: { span: "", from: "", to: "" } },
  ];
  return chips.filter((chip) => chip !== false);
}

function timeInWords({ span, from, to }: Filter): string {
  if (span !== "custom") return spanWords[span];
  const said = (iso: string) => exactTime(Date.parse(iso)).slice(0, 16);
  if (from === "") return `Until ${said(to)}`;
  return to === "" ? `Since ${said(from)}` : `${said(from)} to ${said(to)}`;
}
