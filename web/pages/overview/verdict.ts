import { isolated } from "../../format/controls.ts";
import { count } from "../../format/number.ts";
import { clockTime, dayOf } from "../../parts/chart-text.ts";
import type { Situation } from "./situation.ts";

/** How things are going, in a sentence or two. */
export interface Verdict {
  /** Safe to show as it is. */
  readonly text: string;
  /** `bad`: nothing gets through. */
  readonly tone: "good" | "bad" | "some" | "none";
}

/** @param isHeld the operator holds back all deliveries of the account */
export function verdictOf(
  { from, webhooks, failing, others, delivered, failed }: Situation,
  nowMs: number,
  isHeld = false,
): Verdict {
  if (webhooks.length === 0) return { tone: "bad", text: "No webhook is registered, so nothing is delivered." };
  if (isHeld)
    return { tone: "some", text: "Nothing is delivered until the operator of this server resumes deliveries." };
  const inactive = webhooks.filter(({ state }) => state !== "active");
  const off = new Set(inactive.map(({ id }) => id));
  const down = failing.filter(({ id, downSince }) => downSince !== null && (id === null || !off.has(id)));
  const silent = new Set([...off, ...down.map(({ id }) => id)]);
  const partly = failing
    .filter(({ id, isOngoing }) => isOngoing && id !== null && !silent.has(id))
    .map(({ name }) => `${isolated(name)} fails for some events.`);
  const whole = webhooks.length - silent.size - partly.length;
  const everything = partly.length > 0 ? " everything" : "";
  const share = whole === 0 ? "" : `${whole} of ${webhooks.length} webhooks ${verb(whole)}${everything}. `;
  if (silent.size === 0) {
    const isAnything = delivered.n > 0 || failed.n > 0 || failing.length > 0 || others > 0;
    // The first attempts may take their 10 s.
    const isUnderWay = webhooks.some(({ all }) => all !== null && all.n > 0);
    const start = since(Date.parse(from), nowMs);
    if (!isAnything)
      return { tone: "none", text: `Nothing has been ${isUnderWay ? "delivered" : "sent"} since ${start}.` };
    const lost = failed.n > 0 ? ` ${few(failed.n, failed.isExact)} failed and can be replayed.` : "";
    const tone = failed.n > 0 || partly.length > 0 ? "some" : "good";
    if (partly.length === 0)
      return {
        tone,
        text: `${delivered.n === 0 ? `Nothing has been delivered since ${start}.` : allDeliver(webhooks)}${lost}`,
      };
    return { tone, text: `${share}${partly.slice(0, mostNamed).join(" ")}${lost}` };
  }
  const causes = [
    ...down.map(({ name, downSince }) => `${isolated(name)} has failed since ${since(downSince ?? nowMs, nowMs)}.`),
    ...inactive.map(({ name, state }) => `${isolated(name)} is ${state}.`),
    ...partly,
  ];
  const shown = causes.slice(0, mostNamed).join(" ");
  const left = causes.length - mostNamed;
  const more = left > 0 ? ` ${left} more ${left === 1 ? "fails" : "fail"} as well.` : "";
  const isBad = silent.size >= webhooks.length;
  return { tone: isBad ? "bad" : "some", text: `${isBad ? "Nothing is delivered. " : share}${shown}${more}` };
}

const mostNamed = 3;

const verb = (webhooks: number): string => (webhooks === 1 ? "delivers" : "deliver");

function allDeliver(webhooks: Situation["webhooks"]): string {
  if (webhooks.length === 1) return `${isolated(webhooks[0]?.name ?? "")} delivers.`;
  return webhooks.length === 2 ? "Both webhooks deliver." : `All ${webhooks.length} webhooks deliver.`;
}

const few = (n: number, isExact: boolean): string =>
  n === 1 ? "1 delivery" : `${isExact ? "" : "More than "}${count(n)} deliveries`;

/** "08:41"; for another day "21 Nov 08:41". */
export const since = (ms: number, nowMs: number): string =>
  dayOf(ms) === dayOf(nowMs) ? clockTime(ms) : `${dayOf(ms)} ${clockTime(ms)}`;
