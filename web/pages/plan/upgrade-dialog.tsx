import { useRef, useState } from "preact/hooks";
import { ApiError, call } from "../../api/client.ts";
import type { About, Billing, Upgraded } from "../../api/types.ts";
import { count, naira } from "../../format/number.ts";
import { AttemptButton, Refusal, useAttempt } from "../../parts/attempt.tsx";
import { Button, LinkButton } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field } from "../../parts/field.tsx";
import { readForm } from "../../parts/form.ts";
import { NewPassword, useNewPassword } from "../../parts/new-password.tsx";
import { say } from "../../parts/said.tsx";
import { openCardPage, type Plan } from "./plan-view.ts";

/** How things stood when the upgrade was requested. */
export interface Upgrade {
  readonly to: Plan;
  readonly from: string;
  /** The plan in force, whose days are charged. */
  readonly enforced: Plan | null;
  readonly card: Billing["card"];
  readonly payments: About["payments"];
}

/** Says what an upgrade costs and when, performs it, and leads to the payment page where one is needed. */
export function UpgradeDialog({
  upgrade: { to, from, card, enforced },
  onClose,
  onDone,
}: {
  upgrade: Upgrade;
  onClose(): void;
  onDone(): void;
}) {
  const form = useRef<HTMLFormElement>(null);
  const [pending, setPending] = useState<Upgraded | null>(null);
  /** Why the bank last declined the card. */
  const [reason, setReason] = useState<string | null>(null);
  const newPassword = useNewPassword(form, "password");
  const isFromFree = from === "free";
  const attempt = useAttempt(
    async () => {
      const { email = "", password = "" } = readForm(form.current);
      const body = { tier: to.tier, ...(isFromFree && { email: email.trim(), password }) };
      const answer = await call<Upgraded>("/v1/tenants/upgrade", { method: "POST", body }).catch(async (error) => {
        if (isDecline(error)) setReason(await readReason());
        throw error;
      });
      onDone();
      if (answer.payment_status === "pending") return setPending(answer);
      say(answer.message);
      onClose();
    },
    { fields: ["email", "password"] },
  );

  const toCardPage = useAttempt(openCardPage);

  function submit(event: Event): void {
    event.preventDefault();
    if (!isFromFree || newPassword.isGood()) attempt.run();
  }

  if (pending) {
    return (
      <Dialog title={`Upgrade to ${to.tier}`} onClose={onClose}>
        <p>
          {card && from === enforced?.tier
            ? "Your bank asks you to confirm the charge. The upgrade is complete once you do."
            : "Next, verify a card on the payment page, which charges NGN 100.00 once. That completes the upgrade."}
        </p>
        {isFromFree && <p>From now on, sign in with this e-mail and the new password.</p>}
        <div class="buttons">
          <Button onClick={onClose}>Later</Button>
          {pending.payment_url !== undefined && (
            <LinkButton kind="primary" href={pending.payment_url}>
              Open the payment page
            </LinkButton>
          )}
        </div>
      </Dialog>
    );
  }

  const needsCard = attempt.refusal?.status === 402;
  return (
    <Dialog title={`Upgrade to ${to.tier}`} onClose={onClose}>
      <form ref={form} class="form" onSubmit={submit}>
        <p>
          {naira(to.priceKobo ?? 0)} a month, charged at its end for the days used: {count(to.eventsPerMonth)} events a
          month and {to.webhooks === 1 ? "1 webhook" : `${to.webhooks} webhooks`}. You cannot downgrade later.
        </p>
        {card && enforced ? (
          <p>
            Your card {card.brand} •••• {card.last4} is charged now for what the {enforced.tier} plan has cost this
            month so far, at least NGN 100.00. Any excess is credited at the end of the month.
          </p>
        ) : (
          <p>First, verify a card on the payment page, which charges NGN 100.00 once.</p>
        )}
        {isFromFree && (
          <>
            <p class="notice">
              You can then sign in with this e-mail as well as with the tenant id, and this password replaces your
              current one.
            </p>
            <Field
              label="E-mail"
              name="email"
              type="email"
              autocomplete="username"
              wrong={attempt.wrong("email")}
              required
            />
            <NewPassword label="New password" name="password" wrong={newPassword.wrong ?? attempt.wrong("password")} />
          </>
        )}
        {needsCard ? (
          <div class="notice bad" role="alert">
            <p>
              {isDecline(attempt.refusal) && reason !== null
                ? `Your card was declined (${reason}).`
                : attempt.refusal?.message}{" "}
              Nothing has changed.
            </p>
          </div>
        ) : (
          <Refusal of={attempt} />
        )}
        <Refusal of={toCardPage} />
        <div class="buttons">
          <Button onClick={onClose}>Stay on {from}</Button>
          <AttemptButton of={attempt} kind={needsCard ? "plain" : "primary"} type="submit">
            {needsCard ? "Try once more" : `Upgrade to ${to.tier}`}
          </AttemptButton>
          {needsCard && <AttemptButton of={toCardPage}>Use another card</AttemptButton>}
        </div>
      </form>
    </Dialog>
  );
}

const isDecline = (error: unknown) => error instanceof ApiError && error.code === "payment_declined";

/** Null when it cannot be read; the dialog then says only that the card was declined. */
async function readReason(): Promise<string | null> {
  const { charges } = await call<Billing>("/v1/tenants/billing").catch(() => ({ charges: [] }));
  return charges.find(({ kind, state }) => kind === "upgrade" && state === "failed")?.reason ?? null;
}
