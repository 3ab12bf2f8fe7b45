import http from "node:http";
import type { AddressInfo } from "node:net";
import { type Answer, refused, type StandInCard, type StandInTransaction } from "./paystack-answers.ts";
import { type CustomerReturn, createPaystackBooks } from "./paystack-books.ts";
import { type SentCallback, type StandInEvent, sendCallback } from "./paystack-callbacks.ts";
import { createPaystackFaults, hasNoEffect, type PaystackFaults, type RequestFault } from "./paystack-faults.ts";
import { type ArrivedRequest, checkRequest, type Fields, type Operation } from "./paystack-requests.ts";

export interface StandInRequest {
  readonly operation: Operation | null;
  /** From the body, or from the path of a verify. */
  readonly reference: string;
  readonly fields: Fields;
  readonly headers: ArrivedRequest["headers"];
}

/**
 * Paystack, as an HTTP server on this machine. It checks every request against the documentation, keeps the state, and
 * lets a test be the customer:
 *
 *     const paystack = await startPaystackStandIn({ secretKey: "sk_test_example" });
 *     paystack.callbackUrl = `${server.url}/v1/billing/webhook`;
 *     … the program under test runs with `paystack.url` as the processor's address …
 *     const { returnUrl } = await paystack.pay(paymentUrl);
 *     paystack.faults.next("charge", "timeout_after_effect");
 *     await paystack.received("charge");
 *     await paystack.stop(); // fails the test when a request was not as documented
 */
export interface PaystackStandIn {
  /** `http://127.0.0.1:<port>` */
  readonly url: string;
  /** Where callbacks go; none are sent while it is null, as it is initially. */
  callbackUrl: string | null;
  readonly faults: PaystackFaults;
  readonly transactions: ReadonlyMap<string, StandInTransaction>;
  /** Everything that came in, oldest first. */
  readonly requests: readonly StandInRequest[];
  /** Requests that have not been read or checked yet, except those that a fault leaves unanswered. */
  readonly underWay: number;
  readonly callbacks: readonly SentCallback[];
  /** What was wrong with requests. A test that makes a wrong one on purpose removes it. */
  readonly violations: string[];

  /**
   * The customer pays, on the page or for the reference, and returns. Resolves when the callbacks have been answered and
   * the browser has been where it was sent. @default card visa
   */
  pay(page: string, card?: StandInCard): Promise<CustomerReturn>;
  /** The customer confirms a saved-card charge, as the bank requested. */
  confirm(page: string): Promise<CustomerReturn>;
  /** The bank declines the customer's card, or the confirmation. @default text "Declined" */
  decline(page: string, text?: string): void;
  /** The customer leaves the page with its cancel button. */
  abandon(page: string): Promise<CustomerReturn>;
  /** The customer's bank asks for the money back; resolves once the callback has been answered. */
  dispute(reference: string): Promise<void>;
  /** A refund has failed, and the money is back; resolves once the callback has been answered. */
  failRefund(reference: string): Promise<void>;
  /** Sends the callback of a successful payment once more, as Paystack does when it got no 200. */
  sendAgain(reference: string): Promise<void>;

  /** Resolves when this many requests of a kind have come in and taken effect, including earlier ones. @default count 1 */
  received(operation: Operation, count?: number): Promise<void>;
  /** Resolves when all callbacks so far have been answered. */
  callbacksSent(): Promise<void>;
  /** @throws Error when there are violations */
  stop(): Promise<void>;
}

export interface PaystackStandInOptions {
  /** The key that is accepted and that signs the callbacks. Its prefix is the mode. */
  readonly secretKey: string;
  /** The customer's browser: visits where it is sent. @default goes nowhere */
  readonly browse?: (url: string) => Promise<unknown>;
}

/** The rest of a window of Paystack's rate limit. */
export const rateLimitResetSeconds = 30;

export async function startPaystackStandIn({
  secretKey,
  browse = async () => {},
}: PaystackStandInOptions): Promise<PaystackStandIn> {
  const domain = secretKey.startsWith("sk_live_") ? "live" : "test";
  const violations: string[] = [];
  const requests: StandInRequest[] = [];
  const callbacks: SentCallback[] = [];
  const watchers = new Set<() => void>();
  const sending = new Set<Promise<unknown>>();
  let news: StandInEvent[] = [];
  let callbackUrl: string | null = null;
  let url = "";
  let underWay = 0;

  const faults = createPaystackFaults();
  const books = createPaystackBooks({ domain, faults, announce: (event) => news.push(event) });

  const server = http.createServer((request, response) => {
    underWay += 1;
    serve(request, response)
      .catch((error) => {
        violations.push(`The stand-in failed: ${error}`);
        response.destroy();
      })
      .finally(() => {
        underWay -= 1;
      });
  });

  async function serve(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { method = "", url: target = "", headers } = request;
    if (target.startsWith("/page/")) return showPage(response);
    const arrived = { method, target, headers, body: Buffer.concat(chunks) };
    const checked = checkRequest(arrived);
    violations.push(...checked.problems.map((problem) => `${method} ${target}: ${problem}`));

    const fault = checked.operation ? faults.take(checked.operation) : undefined;
    const keyHolds = headers.authorization === `Bearer ${secretKey}` && fault !== "invalid_key";
    const answer = (): Answer => {
      if (!keyHolds) return refused(401, "Invalid key");
      if (checked.problems.length > 0) return refused(400, "Invalid request", "invalid_params");
      return books.answer(checked);
    };
    const noteArrival = () => {
      const { operation, fields } = checked;
      const reference = checked.reference || String(fields.reference ?? fields.transaction ?? "");
      requests.push({ operation, reference, fields, headers });
      for (const look of [...watchers]) look();
    };
    respond(response, fault, answer, noteArrival);
    void announce(takeNews());
  }

  /** `effect` does what the request asks for; `noteArrival` is called as soon as the request can have no further effect. */
  function respond(
    response: http.ServerResponse,
    fault: RequestFault | undefined,
    effect: () => Answer,
    noteArrival: () => void,
  ): void {
    const answer = hasNoEffect(fault) ? null : effect();
    const send = ({ status, body, headers }: Answer, text = JSON.stringify(body)) => {
      response.writeHead(status, { "Content-Type": "application/json; charset=utf-8", ...headers });
      response.end(text);
    };
    noteArrival();
    switch (fault) {
      case "timeout_before_effect":
      case "timeout_after_effect":
        return;
      case "reset_before_effect":
      case "reset_after_effect":
        response.destroy();
        return;
      case "rate_limited":
        send(rateLimited);
        return;
      case "unavailable":
      case "unavailable_after_effect":
        send({ status: 503, body: {}, headers: { "Content-Type": "text/html" } }, "<h1>Unavailable</h1>");
        return;
      case "redirect":
        send({ status: 307, body: {}, headers: { Location: `${url}/elsewhere` } });
        return;
    }
    if (answer === null) return;
    const text = JSON.stringify(answer.body);
    if (fault === "malformed_json") send(answer, text.slice(0, text.length / 2));
    else if (fault === "too_long") send(answer, `${" ".repeat(2 * 1024 * 1024)}${text}`);
    else if (fault === "slow") faults.hold(() => send(answer));
    else send(answer);
  }

  function takeNews(): StandInEvent[] {
    const taken = news;
    news = [];
    return taken;
  }

  /** One after another. Never rejects: a callback that gets no answer is one without a status. */
  function announce(events: readonly StandInEvent[]): Promise<void> {
    const sent = announceInTurn(events).finally(() => sending.delete(sent));
    sending.add(sent);
    return sent;
  }

  async function announceInTurn(events: readonly StandInEvent[]): Promise<void> {
    for (const event of events) {
      for (let time = 0; time < faults.callbackTimes; time++) await call(event);
    }
  }

  async function call(event: StandInEvent): Promise<void> {
    if (callbackUrl !== null) callbacks.push(await sendCallback(callbackUrl, event, secretKey));
  }

  /** The customer has done something: callbacks and browser are sent off, in the order that the test wants. */
  async function comeBack(customer: CustomerReturn): Promise<CustomerReturn> {
    const events = takeNews();
    if (faults.callbackOrder === "before") await announce(events);
    if (customer.returnUrl !== null) await browse(customer.returnUrl);
    if (faults.callbackOrder === "after") await announce(events);
    return customer;
  }

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  books.openPagesAt(url);

  return {
    url,
    faults,
    transactions: books.transactions,
    requests,
    callbacks,
    violations,
    get callbackUrl() {
      return callbackUrl;
    },
    set callbackUrl(to: string | null) {
      callbackUrl = to;
    },
    pay: async (page, card) => comeBack(books.pay(page, card)),
    confirm: async (page) => comeBack(books.confirm(page)),
    decline: (page, text = "Declined") => books.decline(page, text),
    abandon: async (page) => comeBack(books.abandon(page)),
    dispute: (reference) => call({ name: "charge.dispute.create", transaction: books.find(reference) }),
    failRefund: (reference) => call({ name: "refund.failed", transaction: books.failRefund(reference) }),
    sendAgain: (reference) => call({ name: "charge.success", transaction: books.find(reference) }),
    get underWay() {
      return underWay;
    },
    received: (operation, count = 1) =>
      new Promise((resolve) => {
        const look = () => {
          if (requests.filter((request) => request.operation === operation).length < count) return;
          watchers.delete(look);
          resolve();
        };
        watchers.add(look);
        look();
      }),
    async callbacksSent() {
      while (sending.size > 0) await Promise.all(sending);
    },
    async stop() {
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
      if (violations.length > 0) throw new Error(`Requests that Paystack does not take:\n${violations.join("\n")}`);
    },
  };
}

const rateLimited: Answer = {
  status: 429,
  body: { status: false, message: "Rate limit exceeded!", type: "api_error", code: "rate_limited" },
  headers: { "x-ratelimit-reset": String(rateLimitResetSeconds) },
};

function showPage(response: http.ServerResponse): void {
  response.writeHead(200, { "Content-Type": "text/html; charset=utf-8" });
  response.end("<!doctype html><title>Payment</title><p>The customer would pay here.");
}
