import { afterAll, afterEach, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type axe from "axe-core";
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
  /**
   * Holds what a page shows to what every page must be, in light and in dark. Leaves a screenshot of each in
   * `test-output/screenshots` if it fails, or if `SCREENSHOTS` is set.
   */
  inspect(page: Page, name: string): Promise<void>;
}

export interface Look {
  size: keyof typeof sizes;
  scheme?: Scheme;
  /** The time zone of the machine; UTC unless said otherwise. */
  zone?: string;
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

/** Asked for, because they take 8 % of the processor time of these tests. */
const wantsScreenshots = Boolean(process.env.SCREENSHOTS);

/** A JPEG takes half of the processor time of a PNG. */
const wholePage = { type: "jpeg", quality: 90, fullPage: true, scale: "css" } as const;

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
    await Promise.all(pages.map(close));
    if (faults.length > 0) throw new Error(`The pages are not clean:\n${faults.join("\n")}`);
  });

  afterAll(async () => {
    await (await launched)?.close();
  });

  return {
    async page({ size, scheme = "light", zone = "UTC", provoked = [], permissions = [] }) {
      launched ??= launch();
      const engine = await launched;
      const context = await engine.newContext({
        ...sizes[size],
        colorScheme: scheme,
        timezoneId: zone,
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
      await bringAxe(page);
      await page.evaluate(endFades);
      const problems = await sidewaysScroll(page);
      for (const scheme of [other(known.scheme), known.scheme]) {
        await page.emulateMedia({ colorScheme: scheme });
        await page.evaluate(endFades);
        const found = await barriers(page, scheme === known.scheme ? allRules : colourRules);
        problems.push(...found.map((barrier) => `${scheme}: ${barrier}`));
        if (problems.length === 0 && !wantsScreenshots) continue;
        await page.screenshot({ path: join(screenshots, `${name}-${known.size}-${scheme}.jpg`), ...wholePage });
      }
      if (problems.length > 0) throw new Error(`${name} on ${known.size}:\n${problems.join("\n")}`);
    },
  };
}

/** What a test answers in the server's stead may still be on its way; then it fails, and that is no fault of the test. */
async function close(page: Page): Promise<void> {
  if (!page.isClosed()) await page.unrouteAll({ behavior: "ignoreErrors" });
  await page.context().close();
}

const other = (scheme: Scheme): Scheme => (scheme === "light" ? "dark" : "light");

// What runs in the page is text: these sources are compiled without the types of a browser.

/**
 * What fades in is pale for a while, and is to be judged by how it stays. It is not waited for: in a page that draws no frame, it
 * would stay pale for ever.
 */
const endFades = `for (const animation of document.getAnimations()) {
  if (animation.effect.getComputedTiming().endTime !== Infinity) animation.finish();
}`;

async function sidewaysScroll(page: Page): Promise<string[]> {
  const widths = await page.evaluate<[what: string, scrollWidth: number, clientWidth: number][]>(
    `[...document.querySelectorAll("html, dialog[open]")]
      .map(({ localName, scrollWidth, clientWidth }) => [localName === "html" ? "screen" : localName, scrollWidth, clientWidth])`,
  );
  return widths.flatMap(([what, has, shows]) => (has > shows ? [`${has} px on a ${what} of ${shows} px`] : []));
}

const axeSource = readFileSync(join(import.meta.dir, "../../node_modules/axe-core/axe.min.js"), "utf8");

/** A text of this size costs `page.evaluate`, which wraps what it is given, half as much again. */
async function bringAxe(page: Page): Promise<void> {
  if (await page.evaluate<boolean>("'axe' in window")) return;
  const devTools = await page.context().newCDPSession(page);
  const { exceptionDetails } = await devTools.send("Runtime.evaluate", { expression: `${axeSource};0` });
  if (exceptionDetails) throw new Error(`axe cannot be loaded: ${exceptionDetails.text}`);
  await devTools.detach();
}

/** Without selectors, which take a walk over the whole page: what is told is the HTML. */
const allRules: axe.RunOptions = { resultTypes: ["violations"], preload: false, selectors: false };
const colourRules: axe.RunOptions = { ...allRules, runOnly: ["color-contrast"] };

type Barrier = Pick<axe.Result, "id" | "help"> & { nodes: readonly string[] };

/** Judged in the page: what axe has to tell of what is right is many times as much. */
async function barriers(page: Page, rules: axe.RunOptions): Promise<string[]> {
  const found = await page.evaluate<Barrier[]>(`axe.run(${JSON.stringify(rules)}).then(({ violations }) => violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, help, nodes }) => ({ id, help, nodes: nodes.map(({ html }) => html) })))`);
  return found.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.join(", ")}`);
}
