import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { serverNow } from "./api/server-time.ts";
import { expiresAt, isLast, isView } from "./api/session.ts";
import { isolated } from "./format/controls.ts";
import { count } from "./format/number.ts";
import { exactTime } from "./format/time.ts";
import { isUtc, showInUtc, zoneName } from "./format/zone.ts";
import { Brand } from "./parts/brand.tsx";
import { Button } from "./parts/button.tsx";
import { Dialog } from "./parts/dialog.tsx";
import { Icon, type IconName } from "./parts/icon.tsx";
import { useShortcuts } from "./parts/keyboard.tsx";
import { PlanLink } from "./parts/plan-link.tsx";
import { ReadOnly } from "./parts/read-only.ts";
import { account } from "./session/account.ts";
import { isNearlyUsedUp, isUsedUp, quotaResetsAt } from "./session/quota.ts";
import { askServer, sells } from "./session/server.ts";
import { leaveEverywhere } from "./session/tabs.ts";
import { unsaved } from "./session/unsaved.ts";
import { useLoaded } from "./stream/load.ts";
import { type StreamState, streamState, streamTrouble } from "./stream/stream.ts";

const places: readonly { path: string; name: string; icon: IconName; keys: string; isOnPhone?: boolean }[] = [
  { path: "/", name: "Overview", icon: "overview", keys: "g o", isOnPhone: true },
  { path: "/events", name: "Events", icon: "events", keys: "g e", isOnPhone: true },
  { path: "/webhooks", name: "Webhooks", icon: "webhooks", keys: "g w", isOnPhone: true },
  { path: "/replays", name: "Replays", icon: "replays", keys: "g r" },
  { path: "/inbox", name: "Inbox", icon: "inbox", keys: "g i", isOnPhone: true },
  { path: "/keys", name: "API keys", icon: "keys", keys: "g k" },
  { path: "/plan", name: "Plan", icon: "plan", keys: "g p" },
];

const nameOf = ({ path, name }: { path: string; name: string }) => (path === "/plan" && !sells() ? "Usage" : name);

/** The frame around every view while signed in. */
export function Shell({ children }: { children: ComponentChildren }) {
  const { route } = useLocation();
  useShortcuts([
    ...places.map((place) => ({ keys: place.keys, does: `Go to ${nameOf(place)}`, run: () => route(place.path) })),
    { keys: "u", does: "Show times in UTC, or in your time zone", run: toggleUtc },
  ]);
  return (
    <div class="shell">
      <a class="skip button" href="#content">
        Skip to the content
      </a>
      <header class="side">
        <Brand />
        <StreamLight />
        <Navigation />
        <Foot />
      </header>
      <main class="main" id="content" tabIndex={-1}>
        <Bars />
        <ReadOnly.Provider value={isView.value ? onlyLooking : null}>{children}</ReadOnly.Provider>
      </main>
    </div>
  );
}

const onlyLooking = "Read-only: you are looking at this account as the operator.";

const streamWords: Record<StreamState, string> = {
  connecting: "Connecting",
  live: "Live",
  offline: "Offline",
  "catching-up": "Catching up",
};

function StreamLight() {
  const state = streamState.value;
  return (
    <p class={`stream-state ${state}`}>
      <i aria-hidden="true" />
      {streamWords[state]}
    </p>
  );
}

const isAt = (path: string, here: string) => here === path || (path !== "/" && here.startsWith(`${path}/`));

function Navigation() {
  const { path: here } = useLocation();
  const [isMoreOpen, setMoreOpen] = useState(false);
  const link = ({ path, name, icon, isOnPhone = false }: (typeof places)[number]) => (
    <a
      key={path}
      href={path}
      class={isOnPhone ? "" : "wide"}
      onClick={() => setMoreOpen(false)}
      {...(isAt(path, here) && { "aria-current": "page" as const })}
    >
      <Icon name={icon} />
      {nameOf({ path, name })}
    </a>
  );
  return (
    <>
      <nav class="nav" aria-label="Main">
        {places.map(link)}
        <div class="phone-more">
          <button type="button" onClick={() => setMoreOpen(true)} aria-haspopup="dialog">
            <Icon name="more" />
            More
          </button>
        </div>
      </nav>
      {isMoreOpen && <More onClose={() => setMoreOpen(false)} />}
    </>
  );
}

/** What does not fit into the bar on a phone. */
function More({ onClose }: { onClose(): void }) {
  return (
    <Dialog title={isolated(account.value?.tenant_name ?? "More")} asksNothing onClose={onClose}>
      <ul class="rows">
        {places
          .filter(({ isOnPhone = false }) => !isOnPhone)
          .map(({ path, name, icon }) => (
            <li key={path}>
              <a class="row" href={path} onClick={onClose}>
                <Icon name={icon} /> {nameOf({ path, name })}
              </a>
            </li>
          ))}
        <li>
          <a class="row" {...reference}>
            <Icon name="docs" /> API reference
          </a>
        </li>
      </ul>
      <div class="buttons">
        <Button onClick={toggleUtc}>{zoneSwitch()}</Button>
        <Button onClick={signOut}>Sign out</Button>
      </div>
    </Dialog>
  );
}

const toggleUtc = () => showInUtc(!isUtc.peek());
const zoneSwitch = () => (isUtc.value ? "Show local times" : "Show times in UTC");

const reference = { href: "/docs", target: "_blank", rel: "noreferrer" };

function Foot() {
  const who = account.value;
  return (
    <div class="side-foot">
      {who && (
        <p class="who">
          {isolated(who.tenant_name)}
          <br />
          <span class="soft small">
            {who.tier} · {who.tenant_id}
          </span>
        </p>
      )}
      <div class="nav">
        <a {...reference}>
          <Icon name="docs" />
          API reference
        </a>
        <button type="button" onClick={toggleUtc}>
          <Icon name="wait" />
          {zoneSwitch()}
        </button>
        <button type="button" onClick={signOut}>
          <Icon name="exit" />
          Sign out
        </button>
      </div>
    </div>
  );
}

const signOut = () => leaveEverywhere("left");

const toTheMinute = (ms: number) => `${exactTime(ms).slice(0, 16)} ${zoneName(ms)}`;

/** Unobtrusive lines above every view, about things that concern all of them. */
function Bars() {
  const { path } = useLocation();
  const about = useLoaded("about", askServer);
  const held = about.data?.paused ?? [];
  const isHeld = held.length > 0;
  // No message reports what the operator does.
  useEffect(() => {
    if (!isHeld) return;
    const timer = setInterval(about.reload, 5_000);
    return () => clearInterval(timer);
  }, [isHeld, about.reload]);
  // The plan's own page says it, along with the way out.
  const who = path === "/plan" ? null : account.value;
  const standing = who?.status;
  const left = Object.entries(unsaved.value).find(([view]) => view !== path);
  return (
    <>
      {streamState.value === "offline" && (
        <p class="bar" role="status">
          {streamTrouble.value ?? "The connection to the server was lost."} This page may be out of date. It reconnects
          automatically.
        </p>
      )}
      {streamState.value === "catching-up" && (
        <p class="bar" role="status">
          Some updates were missed while you were away. Refreshing everything.
        </p>
      )}
      {left && (
        <p class="bar" role="status">
          {left[1]} <a href={left[0]}>Back to them</a>
        </p>
      )}
      {isView.value && (
        <p class="bar" role="status">
          You are looking at {isolated(account.value?.tenant_name ?? "")} as the operator. Nothing can be changed.
        </p>
      )}
      {isLast.value && !isView.value && (
        <p class="bar" role="status">
          You signed in a day ago. This session ends at {toTheMinute(expiresAt.value).slice(11)}.
          <button type="button" class="button" onClick={signOut}>
            Sign in again
          </button>
        </p>
      )}
      {held.includes("deliveries") && (
        <p class="bar" role="status">
          The operator of this server has paused deliveries. Events are still accepted and will be delivered once
          deliveries resume.
        </p>
      )}
      {held.includes("charges") && (
        <p class="bar" role="status">
          The operator of this server has paused payments. Nothing is charged.
        </p>
      )}
      {who && isUsedUp(who) && (
        <p class="bar bad" role="status">
          <span>
            This month's {count(who.enforced_events_per_month)} events are used up: new events are refused (429) until{" "}
            <span class="nowrap">{toTheMinute(Date.parse(quotaResetsAt(serverNow())))}</span>.
          </span>
          <PlanLink />
        </p>
      )}
      {who && path === "/" && !isUsedUp(who) && isNearlyUsedUp(who) && (
        <p class="bar" role="status">
          {count(who.events_this_month)} of this month's {count(who.enforced_events_per_month)} events are used. Beyond
          them new events are refused.
          <PlanLink />
        </p>
      )}
      {standing === "past_due" && (
        <p class="bar">
          A charge failed and will be retried automatically. <PlanLink />
        </p>
      )}
      {standing === "suspended" && (
        <p class="bar bad" role="status">
          Your account is suspended: new events are refused, and what waits is{" "}
          {who?.suspended_by?.includes("operator") ? "not delivered until the operator resumes it" : "still delivered"}.{" "}
          <a href="/plan">See why</a>
        </p>
      )}
      {standing === "pending_verification" && (
        <p class="bar">
          {sells() ? (
            <>
              <a href="/plan">Verify a card</a> to activate your plan.
            </>
          ) : (
            "Ask the operator of this server to activate your account."
          )}
        </p>
      )}
    </>
  );
}
