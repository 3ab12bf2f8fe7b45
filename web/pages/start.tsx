import "../styles/front.css";
import { call } from "../api/client.ts";
import { noSession } from "../api/session.ts";
import type { About, CreatedTenant } from "../api/types.ts";
import { count } from "../format/number.ts";
import { AttemptButton, Refusal, useAttempt } from "../parts/attempt.tsx";
import { LinkButton } from "../parts/button.tsx";
import { PageHead } from "../parts/page.tsx";
import { Shown, Skeleton } from "../parts/states.tsx";
import { sells, useServer } from "../session/server.ts";
import { newAccount } from "../session/unsaved.ts";
import { NewAccount } from "./front/new-account.tsx";
import { FrontHead, SignUpClosed } from "./front/signed-out.tsx";

/** For visitors who are not signed in: what this is, and an account with one click. */
export function StartPage() {
  const about = useServer();
  if (newAccount.value !== null) return <NewAccount account={newAccount.value} />;
  return (
    <main class="front">
      <FrontHead />
      {noSession.value === "deleted" && (
        <p class="notice" role="status">
          Your account has been deleted.
        </p>
      )}
      <div class="pitch">
        <PageHead title="Webhooks that arrive" />
        <p>
          Postrider is for developers whose software has to tell other software what happened. Post an event once: it is
          stored, signed and delivered to each webhook, and retried automatically until it is acknowledged. Here you see
          what was sent, what failed and why, and replay it.
        </p>
        <Shown of={about} skeleton={<Skeleton width="220px" height="40px" />}>
          {(known) => <Offers about={known} />}
        </Shown>
      </div>
      <footer class="soft small">
        {about.data && `Postrider ${about.data.version} · `}
        <a href="/docs">API reference</a>
      </footer>
    </main>
  );
}

function Offers({ about }: { about: About }) {
  const attempt = useAttempt(async () => {
    newAccount.value = await call<CreatedTenant>("/v1/tenants", { method: "POST", body: {}, credential: null });
  });
  const { limits } = about;
  if (about.signup === "closed") return <SignUpClosed />;
  return (
    <div class="stack">
      <Refusal of={attempt} />
      <div class="buttons">
        <AttemptButton of={attempt}>{sells() ? "Create a free account" : "Create an account"}</AttemptButton>
        {sells() && <LinkButton href="/sign-up">Create a paid account</LinkButton>}
      </div>
      <p class="soft">
        {sells() && "Free: "}
        {count(limits.eventsPerMonth)} events a month and {limits.webhooks} webhook. No e-mail
        {sells() && " or card"} needed.
      </p>
    </div>
  );
}
