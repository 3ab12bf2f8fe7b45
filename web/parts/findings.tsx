import "./findings.css";
import { type Summary, summarize } from "../verify/summary.ts";
import type { Finding } from "../verify/verify-delivery.ts";
import { Icon, type IconName } from "./icon.tsx";

const names: Readonly<Record<Finding["check"], string>> = {
  "service-signature": "Service-Signature",
  "webhook-signature-v1": "webhook-signature, v1",
  "webhook-signature-v1a": "webhook-signature, v1a",
  "webhook-timestamp": "webhook-timestamp",
};

const looks: Readonly<Record<Finding["verdict"], { tone: string; icon: IconName; word: string }>> = {
  valid: { tone: "good", icon: "check", word: "Valid" },
  invalid: { tone: "bad", icon: "cross", word: "Invalid" },
  unknown_key: { tone: "bad", icon: "cross", word: "Unknown key" },
  warning: { tone: "warn", icon: "warn", word: "Warning" },
  missing: { tone: "soft", icon: "ring", word: "Missing" },
  not_checked: { tone: "soft", icon: "ring", word: "Not checked" },
};

const summaryLooks: Readonly<Record<Summary["verdict"], { tone: string; icon: IconName }>> = {
  genuine: { tone: "delivered", icon: "check" },
  partly: { tone: "waiting", icon: "warn" },
  not_genuine: { tone: "failed", icon: "cross" },
  nothing: { tone: "", icon: "ring" },
};

/** What the findings amount to, in colour, shape and words. */
export function FindingSummary({ findings }: { findings: readonly Finding[] }) {
  const { verdict, text } = summarize(findings);
  const { tone, icon } = summaryLooks[verdict];
  return (
    <span class={`state finding-summary ${tone}`}>
      <Icon name={icon} />
      {text}
    </span>
  );
}

export function Findings({ findings }: { findings: readonly Finding[] }) {
  return (
    <ul class="findings">
      {findings.map(({ check, verdict, message }) => {
        const { tone, icon, word } = looks[verdict];
        return (
          <li key={check}>
            <span class={tone}>
              <Icon name={icon} />
            </span>
            <p>
              <strong>{names[check]}</strong> <span class={tone}>{word}.</span> {message}
            </p>
          </li>
        );
      })}
    </ul>
  );
}
