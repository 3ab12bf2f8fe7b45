import { afterAll, afterEach, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import axe from "axe-core";
import { chromium, type Browser as Engine, type Page } from "playwright-core";
import { findChromium, isCarried } from "./chromium.ts";
import { watch } from "./faults.ts";

/**
 * A real browser for the tests of a file. Bun 1.4.5 runs the driver of playwright-core 1.65 itself, also its transport over
 * pipes (measured: 40 ms to launch, 70 ms for a page), so that these tests are tests like any other: no second runtime, no
 * open debugging port.
 */
export interface Browser {
  /** A new page in a context of its own, closed after the test. */
  page(look: Look): Promise<Page>;
  /** Holds what a page shows to what every page must be, in light and in dark, and leaves a screenshot of each. */
  inspect(page: Page, name: string): Promise<void>;
}

export interface Look {
  size: keyof typeof sizes;
  scheme?: Scheme;
  /** Faults that the test provokes, such as `/^404: .*evt_/`; any other one fails it. */
  provoked?: readonly RegExp[];
  /** What the page may do without asking the user. */
  permissions?: readonly ("clipboard-read" | "clipboard-write")[];
}

type Scheme = "light" | "dark";

const sizes = {
  desktop: { viewport: { width: 1280, height: 800 } },
  // The narrowest that is still common.
  phone: { viewport: { width: 360, height: 740 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true },
} as const;

const screenshots = join(import.meta.dir, "../../test-output/screenshots");

/** What is waited for comes in milliseconds, or in seconds on a machine that does much else, or not at all. */
const patienceMs = 30_000;

/** Why there is no browser here; null when there is one. On Linux x64 there always is: whatever goes wrong is a failure. */
export const noBrowser: string | null = isCarried ? null : await whyNoChrome();

async function whyNoChrome(): Promise<string | null> {
  try {
    await (await chromium.launch(await findChromium())).close();
    return null;
  } catch (error) {
    const [reason] = (error instanceof Error ? error.message : String(error)).split("\n");
    return `no Chrome is installed (${reason})`;
  }
}

/**
 * For the top of a test file: launches when the first page is asked for, and closes by itself. A test fails when one of its
 * pages wrote an error, threw one, lacked a file, or asked another host than `home` for anything.
 */
export function openBrowser(home: string): Browser {
  let launched: Promise<Engine> | null = null;
  const open = new Map<Page, { size: Look["size"]; scheme: Scheme; faults: readonly string[] }>();

  const launch = async () => chromium.launch(await findChromium());

  if (noBrowser !== null) test.skip(`everything in a browser: ${noBrowser}`, () => {});

  afterEach(async () => {
    const faults = [...open.values()].flatMap((page) => page.faults);
    const pages = [...open.keys()];
    open.clear();
    await Promise.all(pages.map((page) => page.context().close()));
    if (faults.length > 0) throw new Error(`The pages are not clean:\n${faults.join("\n")}`);
  });

  afterAll(async () => {
    await (await launched)?.close();
  });

  return {
    async page({ size, scheme = "light", provoked = [], permissions = [] }) {
      launched ??= launch();
      const engine = await launched;
      const context = await engine.newContext({
        ...sizes[size],
        colorScheme: scheme,
        permissions: [...permissions],
      });
      context.setDefaultTimeout(patienceMs);
      const page = await context.newPage();
      open.set(page, { size, scheme, faults: watch(page, new URL(home).origin, provoked) });
      return page;
    },

    async inspect(page, name) {
      const known = open.get(page);
      if (!known) throw new Error("The page is not of this browser, or of an earlier test");
      mkdirSync(screenshots, { recursive: true });
      await page.evaluate(axe.source);
      await page.evaluate(fadedIn);
      const problems = await sidewaysScroll(page);
      for (const scheme of [other(known.scheme), known.scheme]) {
        await page.emulateMedia({ colorScheme: scheme });
        const path = join(screenshots, `${name}-${known.size}-${scheme}.png`);
        await page.screenshot({ path, fullPage: true, scale: "css" });
        const found = await barriers(page, scheme === known.scheme ? allRules : colourRules);
        problems.push(...found.map((barrier) => `${scheme}: ${barrier}`));
      }
      if (problems.length > 0) throw new Error(`${name} on ${known.size}:\n${problems.join("\n")}`);
    },
  };
}

const other = (scheme: Scheme): Scheme => (scheme === "light" ? "dark" : "light");

// What runs in the page is text: these sources are compiled without the types of a browser.

/** What fades in is pale for a while, and is to be judged by how it stays. */
const fadedIn = `Promise.allSettled(document.getAnimations()
  .filter((animation) => animation.effect.getComputedTiming().endTime !== Infinity)
  .map((animation) => animation.finished))`;

async function sidewaysScroll(page: Page): Promise<string[]> {
  const { scrollWidth, clientWidth } = await page.evaluate<{ scrollWidth: number; clientWidth: number }>(
    "({ scrollWidth: document.documentElement.scrollWidth, clientWidth: document.documentElement.clientWidth })",
  );
  return scrollWidth > clientWidth ? [`${scrollWidth} px on a screen of ${clientWidth} px`] : [];
}

const allRules: axe.RunOptions = { resultTypes: ["violations"], preload: false };
const colourRules: axe.RunOptions = { ...allRules, runOnly: ["color-contrast"] };

async function barriers(page: Page, rules: axe.RunOptions): Promise<string[]> {
  const { violations } = await page.evaluate<axe.AxeResults>(`axe.run(${JSON.stringify(rules)})`);
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html).join(", ")}`);
}
