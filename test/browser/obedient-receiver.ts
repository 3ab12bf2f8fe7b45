import { afterAll } from "bun:test";
import { type Receiver, startReceiver } from "../support/receiver.ts";

/** A webhook that answers as each payload says: `{"answer": 503}`, and 200 when it says nothing. */
export interface ObedientReceiver extends Receiver {
  /** From now on, whatever payloads say; null: as they say. */
  answerAlways(answer: PromisedAnswer | null, text?: string): void;
  /** What is answered `later` is answered when this is called, and at once from then on. */
  answerNow(): void;
}

/** A status; or 200, when the test says so. */
type PromisedAnswer = number | "later";

/** For the top of a test file; ends after its last test. */
export function startObedientReceiver(): ObedientReceiver {
  let always: PromisedAnswer | null = null;
  let alwaysText: string | undefined;
  let answerNow = () => {};
  const later = new Promise<void>((resolve) => {
    answerNow = resolve;
  });

  const receiver = startReceiver({
    async answer(request) {
      const { payload } = request.json() as { payload: { answer?: PromisedAnswer } };
      const promised = always ?? payload.answer ?? 200;
      if (promised === "later") await later;
      const status = promised === "later" ? 200 : promised;
      const text = status < 300 ? "thank you" : `upstream down\n  by request ${request.nth}`;
      const headers = { "X-Request": String(request.nth), ...(status === 503 && { "Retry-After": "0" }) };
      return new Response(alwaysText ?? text, { status, headers });
    },
  });
  afterAll(() => receiver.stop());

  return {
    ...receiver,
    answerAlways(answer, text) {
      always = answer;
      alwaysText = text;
    },
    answerNow,
  };
}
