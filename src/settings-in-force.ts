import type { Config, GivenSettings } from "./config.ts";
import { leastSpanMs } from "./domain/failing-webhook.ts";
import type { Given, Source } from "./given-settings.ts";
import { unitMs } from "./lib/duration.ts";
import { type Setting, withoutPassword } from "./setting-forms.ts";
import { settings } from "./settings.ts";

/** One setting as the server applies it. */
export interface SettingInForce {
  /** Its variable, the name that everyone knows it by. */
  readonly setting: string;
  /** What is in force, without secrets; null: nothing is set. */
  readonly value: string | null;
  readonly source: Source;
  /** The variable or flag that says so; null: the default. */
  readonly by: string | null;
  /** The file that contains it. */
  readonly file: string | null;
  /** Why what is in force is not what was written. */
  readonly note: string | null;
}

type Derived = Partial<Record<keyof typeof settings, { readonly value: string; readonly note: string }>>;

/** Every setting that counts, in the order of the help: what is in force and where it comes from. Contains no secrets. */
export function settingsInForce(given: GivenSettings, config: Config): SettingInForce[] {
  const derived = derivedFrom(given, config);
  const names = (Object.keys(settings) as (keyof typeof settings)[]).filter((name) => {
    const { sells = false }: Setting<unknown> = settings[name];
    return !sells || config.payments.kind !== "off";
  });
  return names.map((name) => {
    const { source, name: by, file, text } = given[name];
    const { value, note } = derived[name] ?? { value: shown(settings[name], text), note: null };
    return { setting: settings[name].env, value, source, by, file, note };
  });
}

/** What follows from several settings together. */
function derivedFrom(given: GivenSettings, config: Config): Derived {
  const { disableAfterMs, localMode, payments, port, retryScheduleMs, tls } = config;
  const isIgnored = (given: Given) => localMode && given.source !== "default";
  const unlimited = (given: Given) => ({
    value: "none",
    note: isIgnored(given) ? "local mode has no such limit" : "in local mode",
  });
  const address = `${tls === null ? "http" : "https"}://localhost${port === 0 ? "" : `:${port}`}`;
  const leastSpan = `${leastSpanMs / unitMs.h}h`;
  return {
    ...(given.publicUrl.text === "" && { publicUrl: { value: address, note: "of the listener" } }),
    ...(retryScheduleMs.length === 0 && { retryScheduleMs: { value: "none", note: "one attempt" } }),
    ...(disableAfterMs !== null &&
      disableAfterMs < leastSpanMs && { disableAfterMs: { value: leastSpan, note: `less counts as ${leastSpan}` } }),
    ...(given.deliveryProxy.text !== "" && {
      deliveryProxy: {
        value: withoutPassword(given.deliveryProxy.text),
        note: "it decides which addresses are reached",
      },
    }),
    ...(given.payments.text === "auto" && { payments: { value: payments.kind, note: "auto" } }),
    ...(localMode && {
      deliveryRates: unlimited(given.deliveryRates),
      bulkReplaysPerDay: unlimited(given.bulkReplaysPerDay),
    }),
  };
}

function shown({ isSecret, masked }: Setting<unknown>, text: string): string | null {
  if (text === "") return null;
  if (!isSecret) return text;
  return masked ? masked(text) : "********";
}
