import "../styles/front.css";
import { useEffect, useRef, useState } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { call } from "../api/client.ts";
import type { About, CreatedTenant } from "../api/types.ts";
import { count, naira } from "../format/number.ts";
import { AttemptButton, Refusal, useAttempt } from "../parts/attempt.tsx";
import { Choices, type Option } from "../parts/choices.tsx";
import { Field } from "../parts/field.tsx";
import { readForm } from "../parts/form.ts";
import { NewPassword, useNewPassword } from "../parts/new-password.tsx";
import { PageHead } from "../parts/page.tsx";
import { Shown, Skeleton } from "../parts/states.tsx";
import { useServer } from "../session/server.ts";
import { signIn } from "../session/sign-in.ts";
import { FrontHead, SignUpClosed } from "./front/signed-out.tsx";
import type { Plan } from "./plan/plan-view.ts";

/** Creates an account on a paid plan, and leads to the page where its card is verified. */
export function SignUpPage() {
  const about = useServer();
  return (
    <main class="front narrow">
      <FrontHead />
      <Shown of={about} skeleton={<Skeleton width="100%" height="320px" />}>
        {(known) => <SignUp about={known} />}
      </Shown>
    </main>
  );
}

function SignUp({ about }: { about: About }) {
  const { route } = useLocation();
  const isOffered = about.payments !== "off";
  // There is nothing to choose here.
  useEffect(() => {
    if (!isOffered) route("/", true);
  }, [isOffered]);
  if (!isOffered) return null;
  return (
    <>
      <PageHead title="Create a paid account" />
      {about.signup === "closed" ? <SignUpClosed /> : <SignUpForm about={about} />}
    </>
  );
}

function SignUpForm({ about: { plans = [], payments } }: { about: About }) {
  const { route } = useLocation();
  const form = useRef<HTMLFormElement>(null);
  const [tier, setTier] = useState("pro");
  const newPassword = useNewPassword(form, "password");
  /** The account by its e-mail: after a failure to sign in to it, trying again only does that. */
  const made = useRef<{ readonly email: string; readonly account: CreatedTenant } | null>(null);
  const attempt = useAttempt(
    async () => {
      const { name = "", email: typed = "", password = "" } = readForm(form.current);
      const email = typed.trim();
      if (made.current?.email !== email) {
        const body = { tier, name, email, password };
        made.current = {
          email,
          account: await call<CreatedTenant>("/v1/tenants", { method: "POST", body, credential: null }),
        };
      }
      const { tenant_id: id, payment_url: paymentUrl } = made.current.account;
      // The view to come back to from the payment page.
      await signIn(id, password, () => route("/plan", true));
      if (paymentUrl) location.assign(paymentUrl);
    },
    { fields: ["name", "email", "password"] },
  );

  function submit(event: Event): void {
    event.preventDefault();
    if (newPassword.isGood()) attempt.run();
  }

  return (
    <form ref={form} class="form" onSubmit={submit}>
      <Choices legend="Plan" name="tier" options={plans.flatMap(toOption)} value={tier} onChoose={setTier} />
      <Field label="Name" name="name" autocomplete="organization" wrong={attempt.wrong("name")} required />
      <Field
        label="E-mail"
        name="email"
        type="email"
        autocomplete="username"
        hint="You can sign in with this or with the tenant id."
        wrong={attempt.wrong("email")}
        required
      />
      <NewPassword label="Password" name="password" wrong={newPassword.wrong ?? attempt.wrong("password")} />
      <p class="soft small">
        Next is the payment page, where you verify a card, which charges {naira(10_000)} once. The plan itself is
        charged at the end of each month, for the days used.
        {payments === "sandbox" &&
          " Payments on this server are a sandbox: no real money moves, and the page offers test cards."}
      </p>
      <Refusal of={attempt} />
      <div class="buttons">
        <AttemptButton of={attempt} type="submit">
          Create the account
        </AttemptButton>
        <a href="/">Create a free account instead</a>
      </div>
    </form>
  );
}

function toOption({ tier, priceKobo, webhooks, eventsPerMonth }: Plan): Option[] {
  if (priceKobo === null || priceKobo === 0) return [];
  const hint = `${count(eventsPerMonth)} events a month, ${webhooks === 1 ? "1 webhook" : `${webhooks} webhooks`}`;
  return [{ value: tier, text: tier, aside: `${naira(priceKobo)} a month`, hint }];
}
